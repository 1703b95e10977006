/* stubs.c: a library that has functions of NCCL's names and loads the real ones when first called,
 * as XLA does. */
#include <dlfcn.h>
#include <stdlib.h>

#include "tests/loaders/body.h"

ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
int stubs_work(void);

static void *real(const char *name)
{
    static void *library;
    if (!library)
        library = dlopen("libnccl.so.2", RTLD_LAZY);
    void *found = library ? dlsym(library, name) : NULL;
    if (!found)
        abort();
    return found;
}

#define STUB(name, parameters, arguments)                          \
    ncclResult_t name parameters                                   \
    {                                                              \
        return ((ncclResult_t(*) parameters)real(#name))arguments; \
    }

STUB(ncclCommInitAll, (ncclComm_t * comm, int count, const int *devices), (comm, count, devices))
STUB(ncclAllReduce,
     (const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op,
      ncclComm_t comm, cudaStream_t stream),
     (send, recv, count, type, op, comm, stream))
STUB(ncclGroupStart, (void), ())
STUB(ncclGroupEnd, (void), ())
STUB(ncclCommDestroy, (ncclComm_t comm), (comm))

int stubs_work(void)
{
    const struct nccl nccl = {ncclCommInitAll, ncclAllReduce, ncclGroupStart, ncclGroupEnd,
                              ncclCommDestroy};
    return loader_body(&nccl);
}
