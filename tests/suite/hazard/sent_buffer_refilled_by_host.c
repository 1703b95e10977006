/* The host of rank 1 fills the (managed) send buffer again while the AllReduce still waits for rank 0.
 * expect: DC309 certain ranks=1 place=sent_buffer_refilled_by_host
 * options: --hash
 * minimal: yes */
#include "tests/suite/suite.h"

enum { COUNT = 5000 };

static void sent_buffer_refilled_by_host(struct rank *me)
{
    float *gradients, *sum = suite_floats(COUNT);

    CUDA(cudaMallocManaged((void **)&gradients, COUNT * sizeof *gradients, cudaMemAttachGlobal));
    CUDA(cudaMemset(gradients, 0, COUNT * sizeof *gradients));
    CUDA(cudaDeviceSynchronize());
    if (me->rank == 0)
        suite_await(me, 0);     /* rank 0 comes late */
    NCCL(ncclAllReduce(gradients, sum, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
#ifdef TWIN
    suite_tell(me, 0);
    CUDA(cudaStreamSynchronize(me->stream));
#endif
    if (me->rank == 1) {
        suite_nap_ms(500);      /* the stream has come to the AllReduce */
        gradients[4321] = 1;
        suite_tell(me, 0);
    }
}

SUITE_CASE(.run = sent_buffer_refilled_by_host, .ranks = 2, .layout = PROCESSES);
