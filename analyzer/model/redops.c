/* redops.c: tracks the reduction operators that a process has created. */
#include "analyzer/model/redops.h"

#include "analyzer/model/array.h"
#include "lib/base/invariant.h"

/* The handle is an int to NCCL; records hold it sign-extended or not. */
static uint64_t same_width(uint64_t handle)
{
    return (uint32_t)handle;
}

static uint32_t kept(const struct process *process)
{
    return process->redops.made < REDOPS_KEPT ? (uint32_t)process->redops.made : REDOPS_KEPT;
}

static struct redop_made *redop_of_handle(const struct process *process, uint64_t comm,
                                          uint64_t handle)
{
    struct redop_made *other = NULL;
    for (uint32_t i = 0; i < kept(process); i++) {
        uint64_t newest_first = process->redops.made - 1 - i;
        struct redop_made *redop = &process->redops.ring[newest_first % REDOPS_KEPT];
        if (redop->handle != same_width(handle))
            continue;
        if (redop->comm == comm)
            return redop;
        if (!other || (other->destroyed && !redop->destroyed))
            other = redop;
    }
    return other;
}

int redops_feed(struct event *event)
{
    struct process *process = event->process;
    const struct record *record = event->record;
    if (record->phase == RECORD_ENTER && record->api == API_ncclRedOpDestroy) {
        struct redop_made *redop =
            redop_of_handle(process, record->redop.comm, record->redop.handle);
        if (redop && redop->comm == record->redop.comm)
            redop->destroyed = true;
    }
    if (record->phase != RECORD_LEAVE || record->api != API_ncclRedOpCreatePreMulSum ||
        record->result != 0)
        return 0;
    if (process->redops.made < REDOPS_KEPT) {
        struct redop_made *grown = array_room(process->redops.ring, sizeof *grown,
                                              (uint32_t)process->redops.made,
                                              &process->redops.capacity, 8);
        if (!grown)
            return -1;
        process->redops.ring = grown;
    }
    invariant(process->redops.made % REDOPS_KEPT < process->redops.capacity,
              "the ring of operators has a place for the next");
    process->redops.ring[process->redops.made++ % REDOPS_KEPT] =
        (struct redop_made){record->leave.comm, same_width(record->leave.handle), false};
    return 0;
}

const struct redop_made *redop_find(const struct process *process, uint64_t comm, uint64_t handle)
{
    return redop_of_handle(process, comm, handle);
}

bool redops_complete(const struct process *process)
{
    return process->redops.made <= REDOPS_KEPT && !process->lost.control;
}
