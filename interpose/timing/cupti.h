/* cupti.h: CUPTI, as far as `run --timing` uses it: found in the process or opened by name, never
 * linked.
 *
 * CUPTI serves one subscriber. The shim subscribes, so it knows that nobody else has it, and that
 * nobody takes its buffers later. */
#ifndef DDPCHECK_CUPTI_H
#define DDPCHECK_CUPTI_H

#include <stdbool.h>
#include <stdint.h>

#include <cuda.h>
#include <cupti.h>

/* All of them are in CUPTI since CUDA 9.0. */
#define CUPTI_FUNCTIONS                        \
    CUPTI_FUNCTION(cuptiGetVersion)            \
    CUPTI_FUNCTION(cuptiGetTimestamp)          \
    CUPTI_FUNCTION(cuptiSubscribe)             \
    CUPTI_FUNCTION(cuptiUnsubscribe)           \
    CUPTI_FUNCTION(cuptiEnableCallback)        \
    CUPTI_FUNCTION(cuptiActivityEnable)        \
    CUPTI_FUNCTION(cuptiActivityDisable)       \
    CUPTI_FUNCTION(cuptiActivityFlushAll)      \
    CUPTI_FUNCTION(cuptiActivityGetNextRecord) \
    CUPTI_FUNCTION(cuptiActivityRegisterCallbacks)

struct cupti {
#define CUPTI_FUNCTION(name) __typeof__(&name) name;
    CUPTI_FUNCTIONS
#undef CUPTI_FUNCTION
    CUpti_SubscriberHandle subscriber;
};

enum { CUPTI_WHY_BYTES = 256 };

/* Called by the launching thread. `correlation` is the number that the records of what it launches
 * have. */
typedef void cupti_launch_function(uint32_t correlation);

/* Finds CUPTI and subscribes. Returns false with the reason in `why`; then nothing is changed. */
bool cupti_open(struct cupti *cupti, cupti_launch_function *launched, char why[CUPTI_WHY_BYTES]);

/* Lets CUPTI record kernels, copies and memory sets, and say when one is launched. Returns false
 * with the reason in `why`; then it has been given back. */
bool cupti_record(struct cupti *cupti, CUpti_BuffersCallbackRequestFunc requested,
                  CUpti_BuffersCallbackCompleteFunc completed, char why[CUPTI_WHY_BYTES]);

#endif
