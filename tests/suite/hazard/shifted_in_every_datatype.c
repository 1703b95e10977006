/* One line overlaps its buffers with every datatype: it is one fault, shown once; --json, which the
 * runner reads, has a finding for each datatype.
 * expect: DC304 certain ranks=0-1 place=here
 * findings: 4 */
#include "tests/suite/suite.h"

enum { COUNT = 1000, HEADER = 16 };

static void shifted_in_every_datatype(struct rank *me)
{
    static const ncclDataType_t types[] = {ncclFloat32, ncclInt32, ncclUint32, ncclInt8};
    float *buffer = suite_floats(2 * COUNT);
#ifdef TWIN
    float *result = buffer + COUNT;
#else
    float *result = buffer + HEADER;
#endif

    for (int i = 0; i < 4; i++) {
        NCCL(ncclAllReduce(buffer, result, COUNT, types[i], ncclSum, me->comm, me->stream)); /* here */
        CUDA(cudaStreamSynchronize(me->stream));
    }
}

SUITE_CASE(.run = shifted_in_every_datatype, .ranks = 2, .layout = THREADS);
