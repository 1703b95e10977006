/* failing.c: a rank that reduces once and then fails as its argument says, or not. */
#include "tests/suite/suite.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int newer_has(void);

static void fail_as(const char *how)
{
    if (strcmp(how, "segv") == 0)
        raise(SIGSEGV);
    if (strcmp(how, "kill") == 0)
        raise(SIGKILL);
    if (strcmp(how, "term") == 0)
        raise(SIGTERM);
    if (strcmp(how, "function") == 0)
        newer_has();
    if (strcmp(how, "helper") == 0 && system("grep -q nothing /dev/null") != 0)
        return;
    if (strcmp(how, "status") == 0)
        exit(3);
}

static void reduce_once(void)
{
    float *x;
    ncclUniqueId id;
    ncclComm_t comm;

    NCCL(ncclGetUniqueId(&id));
    NCCL(ncclCommInitRank(&comm, 1, id, 0));
    CUDA(cudaMalloc((void **)&x, 100 * sizeof *x));
    CUDA(cudaMemset(x, 0, 100 * sizeof *x));
    NCCL(ncclAllReduce(x, x, 100, ncclFloat32, ncclSum, comm, NULL));
    CUDA(cudaDeviceSynchronize());
    suite_nap_ms(300); /* so that the collector sees it alive, whatever else the machine does */
    NCCL(ncclCommDestroy(comm));
}

int main(int count, char **argument)
{
    bool is_before = count > 2 && strcmp(argument[2], "before") == 0;
    const char *how = count > 1 ? argument[1] : "";
    if (!is_before)
        reduce_once();
    fail_as(how);
    return 0;
}

SUITE_CASE(.bare = true); /* which the library asks for */
