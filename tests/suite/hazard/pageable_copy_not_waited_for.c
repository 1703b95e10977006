/* cudaMemcpy from pageable memory may return before its last part is on the device, and a stream made with
 * cudaStreamNonBlocking does not wait for the default stream.
 * expect: DC303 possible ranks=0-1 place=here */
#include "tests/suite/suite.h"

#include <stdlib.h>

enum { COUNT = 1 << 18 };

static void pageable_copy_not_waited_for(struct rank *me)
{
    float *loaded = calloc(COUNT, sizeof *loaded), *device = suite_floats(COUNT);

#ifdef TWIN
    CUDA(cudaMemcpyAsync(device, loaded, COUNT * sizeof *device, cudaMemcpyHostToDevice, me->stream));
#else
    CUDA(cudaMemcpy(device, loaded, COUNT * sizeof *device, cudaMemcpyHostToDevice)); /* here */
#endif
    NCCL(ncclBroadcast(device, device, COUNT, ncclFloat32, 0, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    free(loaded);
}

SUITE_CASE(.run = pageable_copy_not_waited_for, .ranks = 2, .layout = PROCESSES);
