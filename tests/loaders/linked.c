/* linked.c: a library that is linked with NCCL, as libtorch_cuda.so is. */
#include "tests/loaders/body.h"

ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
int linked_work(void);

int linked_work(void)
{
    const struct nccl nccl = {ncclCommInitAll, ncclAllReduce, ncclGroupStart, ncclGroupEnd,
                              ncclCommDestroy};
    return loader_body(&nccl);
}
