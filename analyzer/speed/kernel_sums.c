/* kernel_sums.c: sums of what the GPUs ran, by name and by blocks of iterations.
 *
 * A rank has KERNEL_BLOCKS blocks; when they are full, two become one. So what changed at some
 * iteration is known about as exactly as it matters, in bounded memory. */
#include <stdlib.h>

#include "analyzer/model/process.h"
#include "analyzer/speed/ranks.h"

static void add_sum(struct speed_kernel_sum *to, const struct speed_kernel_sum *more)
{
    to->seconds += more->seconds;
    to->amount += more->amount;
    to->count += more->count;
}

static void halve_blocks(struct speed_rank *rank)
{
    for (struct speed_kernel *kernel = rank->kernels; kernel; kernel = kernel->hh.next)
        for (int i = 0; i < KERNEL_BLOCKS; i++) {
            struct speed_kernel_sum sum = {0};
            for (int k = 2 * i; k < 2 * i + 2 && k < KERNEL_BLOCKS; k++)
                add_sum(&sum, &kernel->block[k]);
            kernel->block[i] = sum;
        }
    rank->block_iterations *= 2;
}

static void add_to_block(struct speed_rank *rank, struct speed_kernel *kernel, uint64_t iteration,
                         const struct speed_kernel_sum *more)
{
    if (!rank->has_begun || iteration < rank->begun || speed_rank_holds(rank))
        return; /* which iteration this is becomes known later */
    if (!rank->block_iterations)
        rank->block_iterations = 1;
    while ((iteration - rank->begun) / rank->block_iterations >= KERNEL_BLOCKS)
        halve_blocks(rank);
    add_sum(&kernel->block[(iteration - rank->begun) / rank->block_iterations], more);
}

void speed_kernel_add(struct analyzer *analyzer, struct speed_rank *rank, uint64_t name,
                      uint64_t iteration, const struct speed_kernel_sum *more)
{
    struct speed_kernel *kernel;
    HASH_FIND(hh, rank->kernels, &name, sizeof name, kernel);
    if (!kernel && (kernel = calloc(1, sizeof *kernel))) {
        kernel->name = name;
        TABLE_ADD(rank->kernels, name, kernel);
        if (!TABLE_ADDED(kernel)) {
            free(kernel);
            kernel = NULL;
        }
    }
    if (!kernel) {
        analyzer->failed = true;
        return;
    }
    add_sum(&kernel->all, more);
    add_to_block(rank, kernel, iteration, more);
}

/* Blocks that only overlap with these iterations do not count. */
struct speed_kernel_sum speed_kernel_between(const struct speed_rank *rank,
                                             const struct speed_kernel *kernel, uint64_t first,
                                             uint64_t end)
{
    struct speed_kernel_sum sum = {0};
    for (uint64_t i = 0; i < KERNEL_BLOCKS && rank->block_iterations; i++) {
        uint64_t begins = rank->begun + i * rank->block_iterations;
        if (begins >= first && begins + rank->block_iterations <= end)
            add_sum(&sum, &kernel->block[i]);
    }
    return sum.count ? sum : kernel->all;
}

int speed_kernels(struct event *event)
{
    struct analyzer *analyzer = event->process->analyzer;
    const struct process *process = event->process;
    const struct record *record = event->record;
    struct speed_rank *rank = speed_rank_get(analyzer, process, record->device);
    const struct speed_kernel_sum more = {.seconds = (double)record->kernels.total_ns / 1e9,
                                          .amount = (double)record->kernels.amount,
                                          .count = record->kernels.count};
    if (rank)
        speed_kernel_add(analyzer, rank, record->kernels.name, rank->newest, &more);
    return ENGINE_OK;
}

void speed_kernels_free(struct speed_rank *rank)
{
    struct speed_kernel *kernel, *next;
    HASH_ITER(hh, rank->kernels, kernel, next) {
        HASH_DEL(rank->kernels, kernel);
        free(kernel);
    }
}
