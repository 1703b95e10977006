/* cupti.h: CUPTI, as far as `run --timing` uses it: found in the process or opened by name, never
 * linked.
 *
 * CUPTI serves one subscriber. The shim subscribes, with no callback enabled, so that it knows that
 * nobody else has it, and that nobody takes its buffers later. */
#ifndef DDPCHECK_CUPTI_H
#define DDPCHECK_CUPTI_H

#include <stdbool.h>
#include <stdint.h>

#include <cuda.h>
#include <cupti.h>

/* All of them are in CUPTI since CUDA 9.0. */
#define CUPTI_FUNCTIONS                                    \
    CUPTI_FUNCTION(cuptiGetVersion)                        \
    CUPTI_FUNCTION(cuptiGetTimestamp)                      \
    CUPTI_FUNCTION(cuptiSubscribe)                         \
    CUPTI_FUNCTION(cuptiUnsubscribe)                       \
    CUPTI_FUNCTION(cuptiActivityEnable)                    \
    CUPTI_FUNCTION(cuptiActivityDisable)                   \
    CUPTI_FUNCTION(cuptiActivityFlushAll)                  \
    CUPTI_FUNCTION(cuptiActivityGetNextRecord)             \
    CUPTI_FUNCTION(cuptiActivityRegisterCallbacks)         \
    CUPTI_FUNCTION(cuptiActivityPushExternalCorrelationId) \
    CUPTI_FUNCTION(cuptiActivityPopExternalCorrelationId)

struct cupti {
#define CUPTI_FUNCTION(name) __typeof__(&name) name;
    CUPTI_FUNCTIONS
#undef CUPTI_FUNCTION
    /* Later versions have them; else NULL. */
    __typeof__(&cuptiActivityEnableDriverApi) cuptiActivityEnableDriverApi;
    __typeof__(&cuptiActivityEnableRuntimeApi) cuptiActivityEnableRuntimeApi;
    CUpti_SubscriberHandle subscriber;
};

enum { CUPTI_WHY_BYTES = 256 };

/* Finds CUPTI and subscribes. Returns false with the reason in `why`; then nothing is changed. */
bool cupti_open(struct cupti *cupti, char why[CUPTI_WHY_BYTES]);

/* Lets CUPTI record kernels, copies, memory sets, and which of them a launch of NCCL's caused.
 * Returns false with the reason in `why`; then it has been given back. */
bool cupti_record(struct cupti *cupti, CUpti_BuffersCallbackRequestFunc requested,
                  CUpti_BuffersCallbackCompleteFunc completed, char why[CUPTI_WHY_BYTES]);

/* Whether the layouts of this version's records are known (decode.h). */
bool cupti_is_known(uint32_t version);

#endif
