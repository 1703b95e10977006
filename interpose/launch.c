/* launch.c: recording of kernel launches and the memory that they are given. */
#include <string.h>

#include "interpose/buffers.h"
#include "interpose/emit.h"
#include "interpose/gpu.h"
#include "interpose/kernels.h"
#include "interpose/recording.h"

enum {
    POINTERS_MAX = 24,          /* of one launch: four records */
    GUESSES_MAX = 32,           /* words of structs that are looked at */
    RECORD_POINTERS = sizeof ((struct record *)0)->launch.pointer / sizeof(uint64_t)
};

struct pointers {
    struct { uint64_t address; bool written, inferred; } found[POINTERS_MAX];
    int count, guesses;
    bool cut;                       /* there were more */
};

/* Where a launch finds its arguments: one by one, or laid out in one block. */
struct arguments {
    void **each;
    const char *block;
};

static void add(struct pointers *pointers, struct thread *thread, uint64_t address, bool written, bool inferred)
{
    /* No memory lies at the ends of the address space; most numbers do. */
    if (address < 1 << 16 || address >> 57)
        return;
    pointers->cut |= pointers->count == POINTERS_MAX || (inferred && pointers->guesses == GUESSES_MAX);
    if (pointers->cut)
        return;
    pointers->guesses += inferred;
    if (!buffers_tell_if_known(thread, address))
        return;
    pointers->found[pointers->count].address = address;
    pointers->found[pointers->count].written = written;
    pointers->found[pointers->count++].inferred = inferred;
}

/* Each parameter by its kind; a class is searched for pointers at aligned places. */
static void find_pointers(struct pointers *pointers, struct thread *thread, const struct kernel *kernel,
                          const struct arguments *arguments)
{
    for (uint32_t i = 0; i < kernel->count; i++) {
        const char *value = arguments->each ? arguments->each[i] : arguments->block + kernel->parameter[i].offset;
        uint32_t bytes = kernel->parameter[i].bytes;
        uint64_t word;
        if (!value || bytes < sizeof word)
            continue;
        enum mangled_kind kind = kernel->parameter[i].kind;
        if (kind == MANGLED_VALUE && bytes == sizeof word)
            continue;       /* a number or a class of 8 bytes: no pointer by its type */
        for (uint32_t at = 0; at + sizeof word <= bytes; at += sizeof word) {
            memcpy(&word, value + at, sizeof word);
            add(pointers, thread, word, kind != MANGLED_READS, kind == MANGLED_VALUE);
        }
    }
}

static uint32_t cut(uint64_t value)
{
    return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

static uint32_t volume(dim3 size)
{
    return cut((uint64_t)size.x * size.y * size.z);
}

/* How a launch names its kernel and its shape. */
struct launch {
    const void *function;
    enum kernel_kind kind;
    dim3 grid, block;
    cudaStream_t stream;
};

static void launched(struct call *call, cudaError_t result, const struct launch *launch, const struct arguments *arguments)
{
    struct pointers pointers = { .count = 0 };
    cudaStream_t stream = launch->stream;
    const struct kernel *kernel = launch->function ? kernels_find(call->thread, launch->function, launch->kind) : NULL;
    bool has_arguments = arguments->each || arguments->block;
    if (kernel && has_arguments)
        find_pointers(&pointers, call->thread, kernel, arguments);
    bool known = kernel && kernel->whole && !pointers.cut && (has_arguments || !kernel->count);
    int done = 0;
    do {
        struct record record = { .launch = { .function = kernel ? kernel->name : 0, .grid = volume(launch->grid),
                                             .block = volume(launch->block), .known = known ? 0 : LAUNCH_PARTLY_KNOWN } };
        record.flags |= gpu_capture_flag(stream);
        record.flags |= done ? RECORD_FLAG_MORE : 0;
        int i = 0;
        for (; i < (int)RECORD_POINTERS && done < pointers.count; i++, done++) {
            record.launch.pointer[i] = pointers.found[done].address;
            record.launch.written |= (uint8_t)(pointers.found[done].written << i);
            record.launch.inferred |= (uint8_t)(pointers.found[done].inferred << i);
        }
        record.launch.count = (uint8_t)i;
        emit_point(call, &record, result, stream);
    } while (done < pointers.count);
}

void kernel_launched(struct call *call, cudaError_t result, const void *function, enum kernel_kind kind, dim3 grid,
                     dim3 block, void **arguments, cudaStream_t stream)
{
    launched(call, result, &(struct launch){ function, kind, grid, block, stream }, &(struct arguments){ .each = arguments });
}

void kernel_launched_by_config(struct call *call, cudaError_t result, const cudaLaunchConfig_t *config,
                               const void *function, void **arguments)
{
    if (config)
        kernel_launched(call, result, function, KERNEL_SYMBOL, config->gridDim, config->blockDim, arguments, config->stream);
}

static const char *block_of(void **extra)
{
    for (int i = 0; extra && extra[i] != CU_LAUNCH_PARAM_END; i += 2)
        if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            return extra[i + 1];
    return NULL;
}

void driver_launched(struct call *call, cudaError_t result, CUfunction function, dim3 grid, dim3 block, void **arguments,
                     void **extra, cudaStream_t stream)
{
    launched(call, result, &(struct launch){ function, KERNEL_FUNCTION, grid, block, stream },
             &(struct arguments){ .each = arguments, .block = block_of(extra) });
}

void driver_launched_by_config(struct call *call, cudaError_t result, const CUlaunchConfig *config, CUfunction function,
                               void **arguments, void **extra)
{
    if (config)
        driver_launched(call, result, function, (dim3){ config->gridDimX, config->gridDimY, config->gridDimZ },
                        (dim3){ config->blockDimX, config->blockDimY, config->blockDimZ }, arguments, extra,
                        config->hStream);
}
