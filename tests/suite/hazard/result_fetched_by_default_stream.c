/* cudaMemcpy fetches the sum. It waits for the default stream, and the AllReduce runs on one made with cudaStreamNonBlocking.
 * expect: DC302 certain ranks=0 place=here
 * cause: cudaStreamNonBlocking */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void result_fetched_by_default_stream(struct rank *me)
{
    static float host[COUNT];
    float *sum = suite_floats(COUNT);

    NCCL(ncclReduce(sum, sum, COUNT, ncclFloat32, ncclSum, 0, me->comm, me->stream));
#ifdef TWIN
    CUDA(cudaStreamSynchronize(me->stream));
#endif
    if (me->rank == 0)
        CUDA(cudaMemcpy(host, sum, sizeof host, cudaMemcpyDeviceToHost));       /* here */
}

SUITE_CASE(.run = result_fetched_by_default_stream, .ranks = 3, .layout = PROCESSES);
