/* Rank 0 goes on to write into a message (managed memory) that rank 1 has not received yet.
 * expect: DC309 certain ranks=0 place=message_changed_while_sent
 * options: --hash */
#include "tests/suite/suite.h"

enum { COUNT = 77 };

static void message_changed_while_sent(struct rank *me)
{
    unsigned char *message;

    CUDA(cudaMallocManaged((void **)&message, COUNT, cudaMemAttachGlobal));
    CUDA(cudaMemset(message, 0, COUNT));
    CUDA(cudaDeviceSynchronize());
    if (me->rank == 1) {
        suite_await(me, 0);
        NCCL(ncclRecv(message + 1, COUNT - 1, ncclUint8, 0, me->comm, me->stream));
        return;
    }
    NCCL(ncclSend(message + 1, COUNT - 1, ncclUint8, 1, me->comm, me->stream));
#ifdef TWIN
    suite_tell(me, 0);
    CUDA(cudaStreamSynchronize(me->stream));
#endif
    suite_nap_ms(500);
    message[COUNT - 1] = 9;
    suite_tell(me, 0);
}

SUITE_CASE(.run = message_changed_while_sent, .ranks = 2, .layout = THREADS);
