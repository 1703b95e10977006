/* The kernel kills rank 2 for lack of memory while it writes its checkpoint. The others have written theirs, and exit.
 * expect: DC205 certain ranks=2
 * says: was killed by SIGKILL
 * ends: error */
#include "tests/suite/suite.h"

#include <signal.h>
#include <unistd.h>

enum { COUNT = 1000 };

static void killed_while_others_finish(struct rank *me)
{
    float *gradients = suite_floats(COUNT);

    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    suite_nap_ms(300); /* writes */
#ifndef TWIN
    if (me->rank == 2)
        kill(getpid(), SIGKILL);
#endif
}

SUITE_CASE(.run = killed_while_others_finish, .ranks = 3, .layout = PROCESSES);
