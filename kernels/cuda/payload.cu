/* payload.cu: the hash of a buffer, its NaNs and Infs, in one pass over its bytes. Reads whole
 * aligned words whatever the buffer's alignment, and not one byte outside of it. */
#include "kernels/payload.h"
#include "launch.cuh"

/* What the blocks of a launch have found so far; zero between launches: the last block takes it and
 * clears it. */
static __device__ struct {
    unsigned long long sum, nans, infs;
    unsigned differs, arrived;
} partials[PAYLOAD_PARTIALS];

struct block_tally {
    unsigned long long sum, nans, infs, differs;
};

/* Word `index` byte by byte; zeros where the buffer ends. */
static __device__ uint64_t word_by_bytes(const unsigned char *data, size_t bytes, size_t index)
{
    uint64_t word = 0;

    for (int i = 0; i < 8 && index * 8 + i < bytes; i++)
        word |= (uint64_t)data[index * 8 + i] << 8 * i;
    return word;
}

static __device__ inline void add_word(struct block_tally *tally, uint64_t word, size_t index,
                                       uint64_t first, const struct payload_masks *masks)
{
    tally->sum += payload_mix(word, index);
    tally->differs |= word ^ first;
    if (payload_nonfinite(word, masks)) {
        const int nans = __popcll(payload_nan(word, masks));
        tally->nans += nans;
        tally->infs += __popcll(payload_nonfinite(word, masks)) - nans;
    }
}

/* Words [from, to) at an address that is a multiple of 16. */
static __device__ void add_pairs(struct block_tally *tally, const unsigned char *data, size_t from,
                                 size_t to, uint64_t first, const struct payload_masks *masks)
{
    const ulonglong2 *pairs = (const ulonglong2 *)(data + from * 8);
    const size_t count = (to - from) / 2;

#pragma unroll 4
    for (size_t i = element_first(); i < count; i += element_stride()) {
        const ulonglong2 pair = pairs[i];
        add_word(tally, pair.x, from + 2 * i, first, masks);
        add_word(tally, pair.y, from + 2 * i + 1, first, masks);
    }
}

/* Words [from, to) that lie across two aligned ones, both inside the buffer. */
static __device__ void add_shifted(struct block_tally *tally, const unsigned char *data,
                                   size_t from, size_t to, uint64_t first,
                                   const struct payload_masks *masks)
{
    const unsigned before = (unsigned)((uintptr_t)data % 8);
    const uint64_t *aligned = (const uint64_t *)(data - before);

#pragma unroll 4
    for (size_t i = from + element_first(); i < to; i += element_stride())
        add_word(tally, aligned[i] >> before * 8 | aligned[i + 1] << (64 - before * 8), i, first,
                 masks);
}

/* The sum over the block, in thread 0. */
static __device__ struct block_tally block_tally(struct block_tally tally)
{
    __shared__ struct block_tally shared[PAYLOAD_BLOCK];
    const unsigned me = threadIdx.x;

    shared[me] = tally;
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (me < half) {
            shared[me].sum += shared[me + half].sum;
            shared[me].nans += shared[me + half].nans;
            shared[me].infs += shared[me + half].infs;
            shared[me].differs |= shared[me + half].differs;
        }
    }
    return shared[0];
}

static __device__ unsigned saturated(unsigned long long count)
{
    return count < 0xffffffffu ? (unsigned)count : 0xffffffffu;
}

/* The last block of the launch to get here publishes the result for the host. */
static __device__ void publish_tally(const struct block_tally *tally, size_t bytes,
                                     struct payload_found *found, size_t ticket, int partial)
{
    auto *all = &partials[partial];

    atomicAdd(&all->sum, tally->sum);
    if (tally->nans)
        atomicAdd(&all->nans, tally->nans);
    if (tally->infs)
        atomicAdd(&all->infs, tally->infs);
    if (tally->differs)
        atomicExch(&all->differs, 1u);
    __threadfence();
    if (atomicAdd(&all->arrived, 1u) != gridDim.x - 1)
        return;
    __threadfence();
    found->hash = payload_finish(atomicExch(&all->sum, 0ull), bytes);
    found->nans = saturated(atomicExch(&all->nans, 0ull));
    found->infs = saturated(atomicExch(&all->infs, 0ull));
    found->flags = atomicExch(&all->differs, 0u) ? 0 : PAYLOAD_UNIFORM;
    atomicExch(&all->arrived, 0u);
    __threadfence_system(); /* the collector reads this memory while the GPU runs */
    *(volatile uint64_t *)&found->done = ticket;
}

__global__ void ddpcheck_payload_hash(const void *buffer, size_t bytes, int datatype,
                                      struct payload_found *found, size_t ticket, int partial)
{
    const unsigned char *data = (const unsigned char *)buffer;
    const struct payload_masks masks = payload_masks_of(datatype);
    const size_t words = (bytes + 7) / 8, me = element_first();
    const uint64_t first = word_by_bytes(data, bytes, 0);
    const bool shifted = (uintptr_t)data % 8 != 0;
    struct block_tally tally = {0, 0, 0, 0};
    size_t from = shifted || (uintptr_t)data % 16 ? 1 : 0;
    size_t to = bytes / 8;

    if (shifted)
        to = words > 3 ? words - 2 : from;
    if (to < from)
        to = from;
    if (shifted) {
        add_shifted(&tally, data, from, to, first, &masks);
    } else {
        to -= (to - from) % 2;
        add_pairs(&tally, data, from, to, first, &masks);
    }
    /* At most one word before and three behind. */
    const size_t before = from < words ? from : words;
    const size_t behind = words > to ? words - to : 0;
    const size_t edges = before + behind;
    for (size_t i = me; i < edges; i += element_stride()) {
        const size_t index = i < from ? i : to + i - from;
        const uint64_t mask = index + 1 == words ? payload_last_mask(bytes) : UINT64_MAX;
        const uint64_t word = word_by_bytes(data, bytes, index);
        add_word(&tally, word, index, word ^ ((word ^ first) & mask), &masks);
    }
    tally = block_tally(tally);
    if (threadIdx.x == 0)
        publish_tally(&tally, bytes, found, ticket, partial);
}

cudaError_t kernels_payload_hash(const void *buffer, size_t bytes, int datatype,
                                 struct payload_found *found, uint64_t ticket, int partial,
                                 unsigned blocks, cudaStream_t stream)
{
    if (bytes == 0 || partial < 0 || partial >= PAYLOAD_PARTIALS || blocks == 0)
        return cudaErrorInvalidValue;
    return launch(ddpcheck_payload_hash, payload_blocks(bytes, blocks), PAYLOAD_BLOCK, stream,
                  buffer, bytes, datatype, found, ticket, partial);
}
