/* Each rank sends to itself before it receives, not in a group; NCCL refuses both.
 * expect: DC108 certain ranks=0-1 */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void sends_to_itself_without_group(struct rank *me)
{
    float *tokens = suite_floats(2 * COUNT);

#ifdef TWIN
    NCCL(ncclGroupStart());
#endif
    (void)ncclSend(tokens, COUNT, ncclFloat32, me->rank, me->comm, me->stream);
    (void)ncclRecv(tokens + COUNT, COUNT, ncclFloat32, me->rank, me->comm, me->stream);
#ifdef TWIN
    NCCL(ncclGroupEnd());
#endif
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = sends_to_itself_without_group, .ranks = 2, .layout = PROCESSES);
