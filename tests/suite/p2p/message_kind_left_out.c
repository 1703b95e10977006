/* In each step stage 0 sends stage 1 an activation and a mask of the same size. In step 3 it leaves out the
 * mask, so that the next activation is taken for it, and all that follows is one off.
 * expect: DC201|DC108 possible ranks=0+1 place=here
 * origin: rank 0 left out one message .. message #7 .. send_activation .. receive_mask
 * ends: hang */
#include "tests/suite/suite.h"

#include <stdbool.h>

enum { COUNT = 1000, STEPS = 8 };

static void send_activation(struct rank *me, float *x)
{
    NCCL(ncclSend(x, COUNT, ncclFloat32, 1, me->comm, me->stream));
}

static void send_mask(struct rank *me, float *x)
{
    NCCL(ncclSend(x, COUNT, ncclFloat32, 1, me->comm, me->stream));
}

static void receive_activation(struct rank *me, float *x)
{
    NCCL(ncclRecv(x, COUNT, ncclFloat32, 0, me->comm, me->stream));
}

static void receive_mask(struct rank *me, float *x)
{
    NCCL(ncclRecv(x, COUNT, ncclFloat32, 0, me->comm, me->stream)); /* here */
}

static void message_kind_left_out(struct rank *me)
{
    float *x = suite_floats(COUNT);
    bool has_mask = true;

    for (int step = 0; step < STEPS; step++) {
#ifndef TWIN
        has_mask = step != 3;
#endif
        if (me->rank == 1) {
            receive_activation(me, x);
            receive_mask(me, x);
        } else {
            send_activation(me, x);
            if (has_mask)
                send_mask(me, x);
        }
        CUDA(cudaStreamSynchronize(me->stream));
    }
#ifndef TWIN
    if (me->rank == 0)
        suite_nap_ms(60000);
#endif
}

SUITE_CASE(.run = message_kind_left_out, .ranks = 2, .layout = PROCESSES);
