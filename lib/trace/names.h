/* names.h: what the numbers in records are called. */
#ifndef DDPCHECK_NAMES_H
#define DDPCHECK_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/trace/kinds.h"

const char *api_name(unsigned api); /* "ncclAllReduce"; "unknown call" */
/* As it is in a program: of __cudaLaunchKernel, which compilers call for it, "cudaLaunchKernel". */
const char *api_shown_name(unsigned api);
const char *record_call(
    const struct record *record); /* the same; of a driver call, the driver's name */
enum api_class api_class_of(unsigned api);
/* Whether the record shows that its rank gets on. Notices do not: the shim may report where a
 * thread hangs. Nor do queries: a framework's watchdog may make them of idle streams for ever, as
 * XLA's. */
bool record_shows_activity(const struct record *record);
const char *datatype_name(unsigned datatype); /* "float32" */
const char *redop_name(unsigned redop);       /* "sum" */

/* Results that say that something goes on: ncclInProgress (nccl.h), cudaErrorNotReady
 * (driver_types.h). */
enum { RESULT_IN_PROGRESS = 7, RESULT_NOT_READY = 600 };
/* What a call that failed returned: "ncclInvalidUsage", "CUDA error 2". Returns text. */
char *result_name(unsigned api, int result, char *text, size_t bytes);

char *signal_text(int signal, char *text, size_t bytes); /* "SIGTERM", "signal 35". Returns text. */

/* The call with its arguments as people read it: "ncclAllReduce(count=4096, float32, sum)",
 * "ncclBroadcast(count=10, int32, root=0)", "cudaStreamSynchronize". Returns text. */
char *record_text(const struct record *record, char *text, size_t bytes);

#endif
