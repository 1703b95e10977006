/* errors.h: what ncclGetLastError returns, and NCCL_DEBUG's warnings. */
#ifndef DDPCHECK_EMU_NCCL_ERRORS_H
#define DDPCHECK_EMU_NCCL_ERRORS_H

#include <nccl.h>

/* Keeps the message for ncclGetLastError, prints it if NCCL_DEBUG asks for warnings, and returns
 * `result`, so that `return fail(...)` reads well. */
ncclResult_t fail(ncclResult_t result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A call that is not emulated: names it on stderr, once for each name. Returns ncclInvalidUsage. */
int fail_unsupported(const char *call);

/* A second, public name: pncclX for ncclX. */
#define PUBLIC(name)                                              \
    __attribute__((visibility("default"))) __typeof__(name) name; \
    extern __typeof__(name) p##name __attribute__((visibility("default"), alias(#name)))

/* The release that is emulated, as ncclGetVersion gives it. */
int emulated_nccl_version(void);

#endif
