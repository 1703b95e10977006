/* The last stage receives into host memory to write a file from it.
 * expect: DC404 certain ranks=1 place=here
 * ends: any */
#include "tests/suite/suite.h"

#include <stdlib.h>

enum { COUNT = 1000 };

static void received_into_host_array(struct rank *me)
{
    float *device = suite_floats(COUNT), *host = NULL;

    if (me->rank == 0)
        NCCL(ncclSend(device, COUNT, ncclFloat32, 1, me->comm, me->stream));
    if (me->rank == 1) {
#ifdef TWIN
        CUDA(cudaMallocHost((void **)&host, COUNT * sizeof *host));
#else
        host = malloc(COUNT * sizeof *host);
#endif
        NCCL(ncclRecv(host, COUNT, ncclFloat32, 0, me->comm, me->stream)); /* here */
    }
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = received_into_host_array, .ranks = 2, .layout = PROCESSES);
