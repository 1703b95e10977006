/* One thread has all GPUs; in the group of each step GPU 2 gets its two buckets in the other order.
 * expect: DC106 certain ranks=2 place=group_of_one_device_differs
 * ends: any */
#include "tests/suite/suite.h"

enum { COUNT = 500 };

static void group_of_one_device_differs(struct rank *rank, int ranks)
{
    float *first[4], *second[4];

    for (int i = 0; i < ranks; i++) {
        CUDA(cudaSetDevice(i));
        first[i] = suite_floats(COUNT);
        second[i] = suite_floats(COUNT / 2);
    }
    NCCL(ncclGroupStart());
    for (int call = 0; call < 2; call++)
        for (int i = 0; i < ranks; i++) {
#ifdef TWIN
            bool is_first = call == 0;
#else
            bool is_first = (call == 0) != (i == 2);
#endif
            if (is_first)
                NCCL(ncclAllReduce(first[i], first[i], COUNT, ncclFloat32, ncclSum, rank[i].comm, rank[i].stream));
            else
                NCCL(ncclAllReduce(second[i], second[i], COUNT / 2, ncclFloat32, ncclSum, rank[i].comm, rank[i].stream));
        }
    NCCL(ncclGroupEnd());
    for (int i = 0; i < ranks; i++)
        CUDA(cudaStreamSynchronize(rank[i].stream));
}

SUITE_CASE(.run_all = group_of_one_device_differs, .ranks = 4, .layout = ALL);
