#include <cupti.h>
#include <stdlib.h>

#include "support.h"

static void callback(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *call)
{
    (void)data, (void)domain, (void)id, (void)call;
}

static void one_subscriber_at_a_time(void **state)
{
    char name[64] = "";
    CUpti_SubscriberParams mine = {.structSize = CUpti_SubscriberParams_STRUCT_SIZE,
                                   .subscriberName = "ours"};
    CUpti_SubscriberParams theirs = {.structSize = CUpti_SubscriberParams_STRUCT_SIZE,
                                     .oldSubscriberName = name,
                                     .oldSubscriberSize = sizeof(name)};
    CUpti_SubscriberHandle first, second;
    const char *text;
    uint32_t on;

    (void)state;
    assert_int_equal(cuptiSubscribe_v2(&first, callback, NULL, &mine), CUPTI_SUCCESS);
    assert_int_equal(cuptiSubscribe_v2(&second, callback, NULL, &theirs),
                     CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    assert_string_equal(name, "ours");
    assert_int_equal(cuptiSubscribe(&second, callback, NULL),
                     CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    assert_int_equal(cuptiGetResultString(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, &text),
                     CUPTI_SUCCESS);
    assert_string_equal(text, "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED");
    assert_int_equal(cuptiEnableCallback(1, first, CUPTI_CB_DOMAIN_RUNTIME_API, 13), CUPTI_SUCCESS);
    assert_int_equal(cuptiGetCallbackState(&on, first, CUPTI_CB_DOMAIN_RUNTIME_API, 13),
                     CUPTI_SUCCESS);
    assert_int_equal(on, 1);
    assert_int_equal(cuptiGetCallbackState(&on, first, CUPTI_CB_DOMAIN_RUNTIME_API, 14),
                     CUPTI_SUCCESS);
    assert_int_equal(on, 0);
    assert_int_equal(cuptiUnsubscribe(first), CUPTI_SUCCESS);
    assert_int_equal(cuptiUnsubscribe(first), CUPTI_ERROR_INVALID_PARAMETER);
    assert_int_equal(cuptiSubscribe(&second, callback, NULL), CUPTI_SUCCESS);
    assert_int_equal(cuptiUnsubscribe(second), CUPTI_SUCCESS);
}

static void the_rest_says_no(void **state)
{
    uint32_t version;
    uint64_t early, late;

    (void)state;
    assert_int_equal(cuptiGetVersion(&version), CUPTI_SUCCESS);
    assert_int_equal(version / 10000, 13);
    assert_int_equal(cuptiGetTimestamp(&early), CUPTI_SUCCESS);
    assert_int_equal(cuptiGetTimestamp(&late), CUPTI_SUCCESS);
    assert_true(early && late >= early);
    assert_int_equal(cuptiActivityEnableLatencyTimestamps(1), CUPTI_ERROR_NOT_SUPPORTED);
}

enum { BUFFER_BYTES = 4096, COPIES = 200, BYTES = 1024, EXTERNAL = 77 };

static int buffers;
static int copies, sets, caused;
static uint32_t last_correlation;

static void request_buffer(uint8_t **buffer, size_t *bytes, size_t *most)
{
    *buffer = malloc(BUFFER_BYTES);
    *bytes = BUFFER_BYTES;
    *most = 0;
    buffers++;
}

static void take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t bytes,
                        size_t valid)
{
    CUpti_Activity *record = NULL;

    (void)context, (void)stream, (void)bytes;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        const CUpti_ActivityMemcpy6 *copy = (const CUpti_ActivityMemcpy6 *)record;
        const CUpti_ActivityExternalCorrelation *cause =
            (const CUpti_ActivityExternalCorrelation *)record;

        if (record->kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) {
            assert_int_equal(cause->externalId, EXTERNAL);
            last_correlation = cause->correlationId;
            caused++;
        }
        if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
            assert_true(copy->start && copy->end >= copy->start && copy->bytes == BYTES);
            assert_int_equal(copy->copyKind, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
            assert_true(copy->correlationId != 0);
            copies++;
        }
        sets += record->kind == CUPTI_ACTIVITY_KIND_MEMSET;
    }
    free(buffer);
}

static int launched;
static uint32_t launched_correlation;

static void count_launch(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                         const void *parameters)
{
    const CUpti_CallbackData *call = parameters;

    assert_ptr_equal(data, &launched);
    assert_int_equal(domain, CUPTI_CB_DOMAIN_DRIVER_API);
    assert_int_equal(id, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx);
    if (call->callbackSite != CUPTI_API_ENTER)
        return;
    launched++;
    launched_correlation = call->correlationId;
}

/* In the order of the calls, in as many buffers as they need; those between push and pop are
 * preceded by what caused them. */
static void activities_are_recorded(void **state)
{
    static char host[BYTES];
    CUpti_SubscriberHandle subscriber;
    void *device;
    uint64_t last;

    (void)state;
    assert_int_equal(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_INVALID), CUPTI_ERROR_INVALID_KIND);
    assert_int_equal(cuptiActivityRegisterCallbacks(request_buffer, take_buffer), CUPTI_SUCCESS);
    assert_int_equal(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY), CUPTI_SUCCESS);
    assert_int_equal(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET), CUPTI_SUCCESS);
    assert_int_equal(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION), CUPTI_SUCCESS);
    assert_int_equal(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DRIVER), CUPTI_SUCCESS);
    assert_int_equal(cuptiSubscribe(&subscriber, count_launch, &launched), CUPTI_SUCCESS);
    assert_int_equal(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API,
                                         CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx),
                     CUPTI_SUCCESS);
    assert_int_equal(cudaMalloc(&device, BYTES), cudaSuccess);
    for (int i = 0; i < COPIES; i++)
        assert_int_equal(cudaMemcpy(device, host, BYTES, cudaMemcpyHostToDevice), cudaSuccess);
    assert_int_equal(
        cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2, EXTERNAL),
        CUPTI_SUCCESS);
    assert_int_equal(cudaMemset(device, 0, BYTES), cudaSuccess);
    assert_int_equal(
        cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2, &last),
        CUPTI_SUCCESS);
    assert_int_equal(last, EXTERNAL);
    assert_int_equal(
        cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2, &last),
        CUPTI_ERROR_QUEUE_EMPTY);
    assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
    assert_int_equal(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    assert_int_equal(copies, COPIES);
    assert_int_equal(sets, 1);
    assert_int_equal(caused, 1);
    assert_int_equal(last_correlation, COPIES + 1);
    assert_int_equal(launched, COPIES + 1);
    assert_int_equal(launched_correlation, COPIES + 1);
    assert_int_equal(cuptiUnsubscribe(subscriber), CUPTI_SUCCESS);
    assert_true(buffers > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_subscriber_at_a_time),
        cmocka_unit_test(activities_are_recorded),
        cmocka_unit_test(the_rest_says_no),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
