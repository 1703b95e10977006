/* Rank 1 is silent before the first iteration, then late in each, then never again. Each part lasts
 * until the test has seen what is said of it and makes a file in the folder that LATE_FOLDER names:
 * however busy the machine is. */
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/suite/suite.h"

enum { COUNT = 1000, LATE_MS = 20, WORK_MS = 5, PATIENCE = 60000 };

static atomic_int *last; /* the last iteration: rank 1 decides, all ranks share it */

/* Runs before the ranks are forked. */
static void __attribute__((constructor)) share_last(void)
{
    last = mmap(NULL, sizeof *last, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (last == MAP_FAILED)
        suite_failed(__FILE__, __LINE__, "mmap", "failed");
    atomic_store(last, -1);
}

static bool is_there(const char *name)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", getenv("LATE_FOLDER"), name);
    return access(path, F_OK) == 0;
}

static void await_silence_seen(void)
{
    for (int i = 0; i < PATIENCE && !is_there("silence_seen"); i++)
        suite_nap_ms(WORK_MS);
}

static void late(struct rank *me)
{
    float *gradients = suite_floats(COUNT);
    bool is_late = me->rank == 1;

    if (me->rank == 1)
        await_silence_seen();
    for (int i = 0; i < PATIENCE; i++) {
        is_late = is_late && !is_there("lateness_seen");
        suite_nap_ms(is_late ? LATE_MS : WORK_MS);
        if (me->rank == 1 && is_there("withdrawal_seen"))
            atomic_store(last, i);
        for (int bucket = 0; bucket < 2; bucket++)
            NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclAvg, me->comm,
                               me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
        if (atomic_load(last) == i)
            return;
    }
}

SUITE_CASE(.run = late, .ranks = 3, .layout = PROCESSES);
