/* device_report.h: what the checks of an operation's buffers and stream share. */
#ifndef DDPCHECK_DEVICE_REPORT_H
#define DDPCHECK_DEVICE_REPORT_H

#include "analyzer/findings.h"
#include "analyzer/model/memory.h"

struct used_buffer {
    const char *name; /* "send" */
    uint64_t pointer, bytes;
    const struct allocation *allocation; /* that it lies in */
};

/* The buffers of the operation that lie in memory that is known: none, one or two. A receive buffer
 * that the send buffer contains is left out. */
int device_buffers(const struct operation *operation, struct used_buffer buffers[2]);
/* Reports one call of one rank: its operation is side 0. */
void device_report(struct analyzer *analyzer, struct draft *draft,
                   const struct operation *operation, enum headline headline, enum advice advice,
                   const struct values *values);

#endif
