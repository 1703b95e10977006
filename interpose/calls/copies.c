/* copies.c: records copies and memsets of more than one row, to symbols, in batches, and the values
 * that streams write. */
#include "interpose/calls/copies.h"

#include <cuda.h>

#include "interpose/record/emit_call.h"
#include "interpose/ring/emit.h"
#include "interpose/real/gpu.h"
#include "interpose/calls/recording.h"
#include "interpose/real/resolve.h"

enum { SLICES_MAX = 64 };

/* One side of a copy; address 0: an array, or none. `slice` is the distance in bytes of a slice
 * from the previous one. */
struct copy_side {
    uint64_t address, pitch, slice;
};

struct copy_box {
    struct copy_side dst, src;
    uint64_t width, height, depth, kind;
};

static bool slices_are_adjacent(const struct copy_side *side, uint64_t height)
{
    return !side->address || side->slice == side->pitch * height;
}

/* Slices that follow each other are one copy of more rows. */
static void flatten(struct copy_box *box)
{
    if (box->depth > 1 && slices_are_adjacent(&box->dst, box->height) &&
        slices_are_adjacent(&box->src, box->height)) {
        box->height *= box->depth;
        box->depth = 1;
    }
}

static uint64_t slice_address(const struct copy_side *side, uint64_t index)
{
    return side->address ? side->address + index * side->slice : 0;
}

static void point_box(struct recorded_call *call, cudaError_t result, cudaStream_t stream,
                      struct copy_box box)
{
    flatten(&box);
    for (uint64_t i = 0; i < box.depth && i < SLICES_MAX; i++)
        point_copy(call, result, stream,
                   &(struct copy_arguments){.dst = slice_address(&box.dst, i),
                                            .src = slice_address(&box.src, i),
                                            .bytes = box.width,
                                            .kind = box.kind,
                                            .dst_pitch = box.dst.pitch,
                                            .src_pitch = box.src.pitch,
                                            .height = box.height});
}

/* A call that blocks has one record: of slices that lie apart it names the first. */
static void enter_box(struct recorded_call *call, struct copy_box box)
{
    flatten(&box);
    wait_enter(call, 0,
               &(struct wait_arguments){.dst = box.dst.address,
                                        .src = box.src.address,
                                        .bytes = box.width * box.height,
                                        .kind = box.kind,
                                        .dst_pitch = box.dst.pitch,
                                        .src_pitch = box.src.pitch,
                                        .height = box.height});
}

static struct copy_side side_of(const struct cudaPitchedPtr *pointer, const struct cudaPos *at)
{
    uint64_t slice = pointer->pitch * pointer->ysize;
    uint64_t address = (uintptr_t)pointer->ptr;
    return (struct copy_side){address ? address + at->x + at->y * pointer->pitch + at->z * slice
                                      : 0,
                              pointer->pitch, slice};
}

/* With an array, widths count its elements, whose size is not known here: one byte is certain. */
static struct copy_box box_of(const struct cudaMemcpy3DParms *p)
{
    return (struct copy_box){
        .dst = p->dstArray ? (struct copy_side){0} : side_of(&p->dstPtr, &p->dstPos),
        .src = p->srcArray ? (struct copy_side){0} : side_of(&p->srcPtr, &p->srcPos),
        .width = p->dstArray || p->srcArray ? p->extent.width > 0 : p->extent.width,
        .height = p->extent.height,
        .depth = p->extent.depth,
        .kind = p->kind,
    };
}

void copy_3d_enter(struct recorded_call *call, const struct cudaMemcpy3DParms *p)
{
    enter_box(call, p ? box_of(p) : (struct copy_box){.depth = 1});
}

void copy_3d(struct recorded_call *call, cudaError_t result, cudaStream_t stream,
             const struct cudaMemcpy3DParms *p)
{
    if (p)
        point_box(call, result, stream, box_of(p));
}

void copy_3d_peer(struct recorded_call *call, cudaError_t result, cudaStream_t stream,
                  const struct cudaMemcpy3DPeerParms *p)
{
    if (!p)
        return;
    struct cudaMemcpy3DParms same = {.srcArray = p->srcArray,
                                     .srcPos = p->srcPos,
                                     .srcPtr = p->srcPtr,
                                     .dstArray = p->dstArray,
                                     .dstPos = p->dstPos,
                                     .dstPtr = p->dstPtr,
                                     .extent = p->extent,
                                     .kind = cudaMemcpyDeviceToDevice};
    point_box(call, result, stream, box_of(&same));
}

static struct copy_box memset_box(const struct cudaPitchedPtr *pitched, int value,
                                  const struct cudaExtent *extent)
{
    struct copy_box box = {.dst = side_of(pitched, &(struct cudaPos){0, 0, 0}),
                           .width = extent->width,
                           .height = extent->height,
                           .depth = extent->depth};
    flatten(&box);
    box.src.address = box.depth == 1 ? (unsigned char)value : 0;
    return box;
}

void memset_3d_enter(struct recorded_call *call, const struct cudaPitchedPtr *pitched, int value,
                     const struct cudaExtent *extent)
{
    enter_box(call, memset_box(pitched, value, extent));
}

void memset_3d(struct recorded_call *call, cudaError_t result, cudaStream_t stream,
               const struct cudaPitchedPtr *pitched, int value, const struct cudaExtent *extent)
{
    point_box(call, result, stream, memset_box(pitched, value, extent));
}

/* Queried after the real call or just before it, which loads what the query would load as well. */
uint64_t symbol_address(const void *symbol, size_t offset)
{
    __typeof__(&cudaGetSymbolAddress) get = REAL_HELPER(cudaGetSymbolAddress);
    void *address = NULL;
    if (!get || atomic_load_explicit(&shim.captures, memory_order_relaxed) > 0 || !gpu_may_query())
        return 0;
    if (get(&address, symbol) != cudaSuccess) {
        gpu_forget_error();
        return 0;
    }
    return (uintptr_t)address + offset;
}

void copies_batch(struct recorded_call *call, int result, const uint64_t *words)
{
    enum { DSTS, SRCS, SIZES, COUNT, STREAM_OF_13 = 7, STREAM_OF_12, CUDA_13 = 13000 };
    __typeof__(&cudaRuntimeGetVersion) get = REAL_HELPER(cudaRuntimeGetVersion);
    const uint64_t *dst = (const uint64_t *)(uintptr_t)words[DSTS],
                   *src = (const uint64_t *)(uintptr_t)words[SRCS];
    const size_t *bytes = (const size_t *)(uintptr_t)words[SIZES];
    int version = 0;
    if (!get || get(&version) != cudaSuccess || result || !dst || !src || !bytes)
        return;
    cudaStream_t stream =
        (cudaStream_t)(uintptr_t)words[version >= CUDA_13 ? STREAM_OF_13 : STREAM_OF_12];
    for (uint64_t i = 0; i < words[COUNT]; i++)
        point_copy(call, cudaSuccess, stream,
                   &(struct copy_arguments){
                       .dst = dst[i], .src = src[i], .bytes = bytes[i], .kind = cudaMemcpyDefault});
}

static struct copy_side driver_side(CUmemorytype type, const void *host, CUdeviceptr device,
                                    size_t x, size_t y, size_t pitch)
{
    uint64_t address = type == CU_MEMORYTYPE_HOST ? (uintptr_t)host : device;
    if (type == CU_MEMORYTYPE_ARRAY)
        address = 0;
    return (struct copy_side){address ? address + x + y * pitch : 0, pitch, 0};
}

static uint64_t driver_kind(CUmemorytype src, CUmemorytype dst)
{
    if (src == CU_MEMORYTYPE_UNIFIED || dst == CU_MEMORYTYPE_UNIFIED)
        return cudaMemcpyDefault;
    if (dst == CU_MEMORYTYPE_HOST)
        return src == CU_MEMORYTYPE_HOST ? cudaMemcpyHostToHost : cudaMemcpyDeviceToHost;
    return src == CU_MEMORYTYPE_HOST ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToDevice;
}

static struct copy_box driver_box_2d(const CUDA_MEMCPY2D *p)
{
    return (struct copy_box){
        .dst = driver_side(p->dstMemoryType, p->dstHost, p->dstDevice, p->dstXInBytes, p->dstY,
                           p->dstPitch),
        .src = driver_side(p->srcMemoryType, p->srcHost, p->srcDevice, p->srcXInBytes, p->srcY,
                           p->srcPitch),
        .width = p->WidthInBytes,
        .height = p->Height,
        .depth = 1,
        .kind = driver_kind(p->srcMemoryType, p->dstMemoryType),
    };
}

static struct copy_box driver_box_3d(const CUDA_MEMCPY3D *p)
{
    struct copy_box box = {
        .dst = driver_side(p->dstMemoryType, p->dstHost, p->dstDevice, p->dstXInBytes, p->dstY,
                           p->dstPitch),
        .src = driver_side(p->srcMemoryType, p->srcHost, p->srcDevice, p->srcXInBytes, p->srcY,
                           p->srcPitch),
        .width = p->WidthInBytes,
        .height = p->Height,
        .depth = p->Depth,
        .kind = driver_kind(p->srcMemoryType, p->dstMemoryType),
    };
    box.dst.slice = p->dstPitch * p->dstHeight;
    box.src.slice = p->srcPitch * p->srcHeight;
    box.dst.address += box.dst.address ? p->dstZ * box.dst.slice : 0;
    box.src.address += box.src.address ? p->srcZ * box.src.slice : 0;
    return box;
}

void driver_copy_2d_enter(struct recorded_call *call, const CUDA_MEMCPY2D *copy)
{
    enter_box(call, copy ? driver_box_2d(copy) : (struct copy_box){.depth = 1});
}

void driver_copy_3d_enter(struct recorded_call *call, const CUDA_MEMCPY3D *copy)
{
    enter_box(call, copy ? driver_box_3d(copy) : (struct copy_box){.depth = 1});
}

void driver_copy_2d(struct recorded_call *call, cudaError_t result, cudaStream_t stream,
                    const CUDA_MEMCPY2D *copy)
{
    if (copy)
        point_box(call, result, stream, driver_box_2d(copy));
}

void driver_copy_3d(struct recorded_call *call, cudaError_t result, cudaStream_t stream,
                    const CUDA_MEMCPY3D *copy)
{
    if (copy)
        point_box(call, result, stream, driver_box_3d(copy));
}

void driver_mem_ops(struct recorded_call *call, cudaError_t result, cudaStream_t stream,
                    const CUstreamBatchMemOpParams *operation, unsigned count)
{
    for (unsigned i = 0; operation && i < count; i++, operation++) {
        struct recorded_call part = *call;
        switch (operation->operation) {
        case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        case CU_STREAM_MEM_OP_WAIT_VALUE_64:
            point_event(&part, result, stream, NULL, operation->waitValue.flags);
            break;
        case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        case CU_STREAM_MEM_OP_WRITE_VALUE_64:
            part.api = API_cuStreamWriteValue;
            point_copy(
                &part, result, stream,
                &(struct copy_arguments){
                    .dst = operation->writeValue.address,
                    .src = operation->writeValue.value64,
                    .bytes = operation->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64 ? 8 : 4});
            break;
        default:
            break;
        }
    }
}
