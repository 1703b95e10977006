/* Each rank forks a loader that touches neither CUDA nor NCCL and ends with an error while the ranks train.
 * expect: none */
#include "tests/suite/suite.h"

#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 1000 };

static void helper_process_ends(struct rank *me)
{
    float *gradients = suite_floats(COUNT);

    for (int step = 0; step < 3; step++) {
        pid_t loader = fork();
        if (loader == 0)
            _exit(4);
        waitpid(loader, NULL, 0);
        NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
    }
}

SUITE_CASE(.run = helper_process_ends, .ranks = 4, .layout = PROCESSES);
