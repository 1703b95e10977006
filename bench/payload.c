/* payload.c: measures the kernel of --hash against a copy of the same buffer on the same device (of
 * a GPU, or emu's): both in one run, in turns. A hash reads the buffer once, a copy reads and
 * writes it; figures are bytes moved a second. */
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/bench.h"
#include "kernels/kernels.h"
#include "kernels/payload.h"

enum { TURNS = 7, BLOCKS_PER_MULTIPROCESSOR = 4, FLOAT32 = 7 };

#define NEED(call) bench_need((int)(call), #call)

struct hash_subject {
    char *from, *to;
    struct payload_found *found; /* host memory that the device writes */
    unsigned blocks;
    uint64_t ticket;
    cudaStream_t stream;
};

/* Seconds for `times` of one or the other. */
static double seconds(struct hash_subject *on, size_t offset, size_t bytes, int times, bool hash)
{
    NEED(cudaStreamSynchronize(on->stream));
    uint64_t begin = bench_now_ns();
    for (int i = 0; i < times; i++) {
        if (hash)
            NEED(kernels_payload_hash(on->from + offset, bytes, FLOAT32, on->found, ++on->ticket, 0,
                                      on->blocks, on->stream));
        else
            NEED(cudaMemcpyAsync(on->to + offset, on->from + offset, bytes,
                                 cudaMemcpyDeviceToDevice, on->stream));
    }
    NEED(cudaStreamSynchronize(on->stream));
    if (hash && on->found->done != on->ticket)
        bench_die("the last hash was not written");
    return (double)(bench_now_ns() - begin) / 1e9;
}

static void compare_with_copy(struct hash_subject *on, const char *name, size_t offset,
                              size_t bytes, int times)
{
    double hash[TURNS], copy[TURNS];
    seconds(on, offset, bytes, times, true);
    for (int turn = 0; turn < TURNS; turn++) {
        copy[turn] = seconds(on, offset, bytes, times, false);
        hash[turn] = seconds(on, offset, bytes, times, true);
    }
    double copied = 2.0 * (double)bytes * times / bench_median(copy, TURNS);
    double hashed = (double)bytes * times / bench_median(hash, TURNS);
    printf(
        "%-34s %9.2f GB/s hashed %9.2f GB/s copied (read + written)    %.2f of it, %9.2f us each\n",
        name, hashed / 1e9, copied / 1e9, hashed / copied, (double)bytes / hashed * 1e6);
}

int main(int argc, char **argv)
{
    struct hash_subject on = {.ticket = 0};
    size_t most = argc > 1 ? (size_t)atol(argv[1]) << 20
                           : 16 << 20; /* MB; more for a GPU, whose cache is large */
    int multiprocessors = 0;
    NEED(cudaSetDevice(0));
    NEED(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
    on.blocks = (unsigned)(multiprocessors > 0 ? multiprocessors : 1) * BLOCKS_PER_MULTIPROCESSOR;
    NEED(cudaStreamCreateWithFlags(&on.stream, cudaStreamNonBlocking));
    NEED(cudaMalloc((void **)&on.from, most + 16));
    NEED(cudaMalloc((void **)&on.to, most + 16));
    NEED(cudaHostAlloc((void **)&on.found, sizeof *on.found,
                       cudaHostAllocMapped | cudaHostAllocPortable));
    NEED(cudaMemset(on.from, 0x3c, most + 16));
    NEED(cudaDeviceSynchronize());
    compare_with_copy(&on, "4 KB", 0, 4096, 200);
    compare_with_copy(&on, "1 MB", 0, 1 << 20, 20);
    char name[64];
    snprintf(name, sizeof name, "%zu MB, 4 bytes off", most >> 20);
    compare_with_copy(&on, name, 4, most, 5);
    snprintf(name, sizeof name, "%zu MB", most >> 20);
    compare_with_copy(&on, name, 0, most, 5);
    NEED(cudaFreeHost(on.found));
    NEED(cudaFree(on.from));
    NEED(cudaFree(on.to));
    return 0;
}
