/* launch.c: records kernel launches and the memory that they are given. */
#include <string.h>

#include "interpose/memory/buffers.h"
#include "interpose/record/emit_call.h"
#include "interpose/record/workload.h"
#include "interpose/ring/emit.h"
#include "interpose/real/gpu.h"
#include "interpose/memory/kernels.h"
#include "interpose/calls/recording.h"
#include "interpose/memory/selection.h"

enum {
    GUESSES_MAX = 32, /* words of structs that are examined */
    RECORD_POINTERS = sizeof((struct record *)0)->launch.pointer / sizeof(uint64_t)
};

/* Where a launch finds its arguments: one by one, or laid out in one block. */
struct launch_arguments {
    void **each;
    const char *block;
    dim3 grid;
};

/* No memory lies at the ends of the address space; most numbers do. */
static bool is_address(uint64_t word)
{
    return word >= 1 << 16 && !(word >> 57);
}

static void add_pointer(struct launch_pointers *pointers, struct shim_thread *thread,
                        uint64_t address, bool written, bool inferred)
{
    if (!is_address(address))
        return;
    pointers->cut |= pointers->count == POINTERS_MAX;
    if (pointers->cut)
        return;
    struct buffer_fact fact;
    if (!buffers_find(thread, address, &fact))
        return;
    pointers->elsewhere |= fact.device >= 0 && fact.device != thread->device;
    pointers->found[pointers->count].base = fact.base;
    pointers->found[pointers->count].address = address;
    pointers->found[pointers->count].written = written;
    pointers->found[pointers->count++].inferred = inferred;
}

/* A struct whose layout is not known is searched for addresses at aligned offsets. */
static void search_struct(struct launch_pointers *pointers, struct shim_thread *thread,
                          const char *value, uint32_t bytes, bool written)
{
    uint64_t word;
    for (uint32_t at = 0; at + sizeof word <= bytes; at += sizeof word) {
        memcpy(&word, value + at, sizeof word);
        if (!is_address(word))
            continue;
        pointers->cut |= pointers->guesses == GUESSES_MAX;
        if (pointers->cut)
            return;
        pointers->guesses++;
        add_pointer(pointers, thread, word, written, true);
    }
}

static void add_row(struct launch_pointers *pointers, struct shim_thread *thread, const char *row,
                    uint32_t count, bool written)
{
    uint64_t word;
    for (uint32_t i = 0; i < count; i++) {
        memcpy(&word, row + i * sizeof word, sizeof word);
        add_pointer(pointers, thread, word, written, true);
    }
}

static void add_lists(struct launch_pointers *pointers, struct shim_thread *thread,
                      const char *value, const struct tensor_lists *lists, dim3 grid)
{
    uint32_t count = tensor_lists_count(lists, value, grid.x, grid.y);
    for (uint32_t i = 0; i < lists->lists; i++)
        add_row(pointers, thread, value + (size_t)i * lists->room * sizeof(uint64_t), count,
                lists->written >> i & 1);
    if (lists->more_read)
        add_row(pointers, thread, value + lists->more_read, count, false);
}

static void search_class(struct launch_pointers *pointers, struct shim_thread *thread,
                         const struct kernel *kernel, uint32_t index, const char *value)
{
    uint32_t bytes = kernel->parameter[index].bytes;
    uint32_t inputs = kernel->parameter[index].addresses.inputs_end;
    if (inputs > bytes)
        inputs = bytes;
    search_struct(pointers, thread, value, inputs, false);
    search_struct(pointers, thread, value + inputs, bytes - inputs,
                  !kernel->parameter[index].reads);
}

static void find_pointers(struct launch_pointers *pointers, struct shim_thread *thread,
                          const struct kernel *kernel, const struct launch_arguments *arguments)
{
    for (uint32_t i = 0; i < kernel->count; i++) {
        const char *value = arguments->each ? arguments->each[i]
                                            : arguments->block + kernel->parameter[i].offset;
        enum mangled_kind kind = kernel->parameter[i].kind;
        const struct by_value *known = &kernel->parameter[i].addresses;
        uint64_t word;
        if (!value || kernel->parameter[i].bytes < sizeof word || kind == MANGLED_NUMBER)
            continue;
        if (kernel->parameter[i].lists.room) {
            add_lists(pointers, thread, value, &kernel->parameter[i].lists, arguments->grid);
        } else if (known->count) {
            for (uint32_t k = 0; k < known->count; k++)
                add_row(pointers, thread, value + known->offset + k * known->step, 1,
                        known->written >> k & 1);
        } else if (kind == MANGLED_CLASS) {
            search_class(pointers, thread, kernel, i, value);
        } else {
            memcpy(&word, value, sizeof word);
            add_pointer(pointers, thread, word, kind != MANGLED_READS, false);
        }
    }
}

/* Of a kernel that is known: which of its pointers it writes. */
static void order_pointers(struct launch_pointers *pointers, const struct known_kernel *known)
{
    bool is_first = true;
    for (int i = 0; i < pointers->count && known->order != POINTERS_UNKNOWN; i++) {
        if (!pointers->found[i].inferred && !known->of_all)
            continue;
        pointers->found[i].written = is_first == (known->order == POINTERS_WRITES_FIRST);
        is_first = false;
    }
}

/* Bytes that the kernel touches from each pointer in a struct on, 0 not known. */
static uint32_t find_extent(const struct kernel *kernel, const struct launch_arguments *arguments)
{
    int32_t elements = 0;
    const char *first = arguments->each ? arguments->each[0] : arguments->block;
    if (!kernel->known.element || !first || kernel->parameter[0].kind != MANGLED_NUMBER)
        return 0;
    memcpy(&elements, first, sizeof elements);
    uint64_t bytes = elements > 0 ? (uint64_t)elements * kernel->known.element : 0;
    return bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes;
}

static uint32_t saturate(uint64_t value)
{
    return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

static uint32_t volume(dim3 size)
{
    return saturate((uint64_t)size.x * size.y * size.z);
}

/* Before the launch: a kernel that fails at once makes CUDA answer nothing any more. */
static void prepare_launch(struct recorded_call *call, const void *function, enum kernel_kind kind,
                           const struct launch_arguments *arguments)
{
    struct launch_pointers *pointers = &call->thread->caches->launch;
    pointers->count = pointers->guesses = 0;
    pointers->cut = pointers->elsewhere = false;
    const struct kernel *kernel = function ? kernels_find(call->thread, function, kind) : NULL;
    call->token = (void *)kernel;
    bool has_arguments = arguments->each || arguments->block;
    pointers->extent = 0;
    if (kernel && has_arguments) {
        find_pointers(pointers, call->thread, kernel, arguments);
        order_pointers(pointers, &kernel->known);
        pointers->extent = kernel->count ? find_extent(kernel, arguments) : 0;
    }
    pointers->cut |= !kernel || !kernel->whole || (!has_arguments && kernel->count);
}

/* The part of the launch's pointers that one record holds, from `done` on. Returns how far they are
 * done. */
static int fill_record(struct record *record, const struct launch_pointers *pointers, int done,
                       struct touch *touch)
{
    int i = 0;
    for (; i < (int)RECORD_POINTERS && done < pointers->count; i++, done++) {
        uint64_t address = record->launch.pointer[i] = pointers->found[done].address;
        record->launch.written |= (uint8_t)(pointers->found[done].written << i);
        record->launch.inferred |= (uint8_t)(pointers->found[done].inferred << i);
        uint64_t extent = pointers->found[done].inferred && pointers->extent ? pointers->extent : 1;
        touch[i] = (struct touch){address, address + extent, pointers->found[done].base,
                                  pointers->found[done].written};
    }
    record->launch.count = (uint8_t)i;
    record->launch.extent = pointers->extent;
    return done;
}

static struct record launch_record(const struct recorded_call *call, dim3 grid, dim3 block,
                                   uint16_t flags)
{
    const struct kernel *kernel = call->token;
    const struct launch_pointers *pointers = &call->thread->caches->launch;
    struct record record = {.flags = flags,
                            .launch = {.grid = volume(grid), .block = volume(block)}};
    if (kernel)
        record.launch.function = kernel->name;
    if (pointers->cut)
        record.launch.known = LAUNCH_PARTLY_KNOWN;
    return record;
}

/* A launch with more pointers than fit is kept in pieces; each names a part of what the kernel
 * touches. */
static bool keep_launch(struct recorded_call *call, cudaError_t result, dim3 grid, dim3 block,
                        cudaStream_t stream, uint16_t flags)
{
    const struct launch_pointers *pointers = &call->thread->caches->launch;
    int done = 0;
    if (pointers->elsewhere)
        return false; /* access to another device's memory is always recorded */
    do {
        struct touch touch[RECORD_POINTERS];
        struct record record = launch_record(call, grid, block, flags);
        record.result = result;
        int next = fill_record(&record, pointers, done, touch);
        if (pointers->count > (int)RECORD_POINTERS)
            record.launch.known |= LAUNCH_PARTLY_KNOWN;
        if (!selection_keeps(call, &record, stream, touch, next - done))
            return false;
        done = next;
    } while (done < pointers->count);
    return true;
}

void kernel_launched(struct recorded_call *call, cudaError_t result, dim3 grid, dim3 block,
                     cudaStream_t stream)
{
    const struct launch_pointers *pointers = &call->thread->caches->launch;
    uint16_t flags = gpu_capture_flag(stream);
    if (!result && !flags)
        workload_add(gpu_thread_device(call->thread), (uint64_t)volume(grid) * volume(block));
    if (keep_launch(call, result, grid, block, stream, flags))
        return;
    for (int i = 0; i < pointers->count; i++)
        buffers_record_if_known(call->thread, pointers->found[i].address);
    int done = 0;
    do {
        struct touch touch[RECORD_POINTERS];
        struct record record =
            launch_record(call, grid, block, flags | (done ? RECORD_FLAG_MORE : 0));
        done = fill_record(&record, pointers, done, touch);
        emit_point(call, &record, result, stream);
    } while (done < pointers->count);
}

void kernel_prepare(struct recorded_call *call, const void *function, enum kernel_kind kind,
                    dim3 grid, void **arguments)
{
    prepare_launch(call, function, kind,
                   &(struct launch_arguments){.each = arguments, .grid = grid});
}

void kernel_prepare_by_config(struct recorded_call *call, const void *function,
                              const cudaLaunchConfig_t *config, void **arguments)
{
    dim3 none = {0, 0, 0};
    kernel_prepare(call, function, KERNEL_SYMBOL, config ? config->gridDim : none, arguments);
}

void kernel_launched_by_config(struct recorded_call *call, cudaError_t result,
                               const cudaLaunchConfig_t *config)
{
    if (config)
        kernel_launched(call, result, config->gridDim, config->blockDim, config->stream);
}

static const char *argument_block(void **extra)
{
    for (int i = 0; extra && extra[i] != CU_LAUNCH_PARAM_END; i += 2)
        if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            return extra[i + 1];
    return NULL;
}

void driver_prepare(struct recorded_call *call, CUfunction function, dim3 grid, void **arguments,
                    void **extra)
{
    prepare_launch(call, function, KERNEL_FUNCTION,
                   &(struct launch_arguments){
                       .each = arguments, .block = argument_block(extra), .grid = grid});
}

void driver_prepare_by_config(struct recorded_call *call, CUfunction function,
                              const CUlaunchConfig *config, void **arguments, void **extra)
{
    dim3 grid = {0, 0, 0};
    if (config)
        grid = (dim3){config->gridDimX, config->gridDimY, config->gridDimZ};
    driver_prepare(call, function, grid, arguments, extra);
}

void driver_launched_by_config(struct recorded_call *call, cudaError_t result,
                               const CUlaunchConfig *config)
{
    if (config)
        kernel_launched(call, result, (dim3){config->gridDimX, config->gridDimY, config->gridDimZ},
                        (dim3){config->blockDimX, config->blockDimY, config->blockDimZ},
                        config->hStream);
}
