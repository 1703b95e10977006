#include <cupti.h>

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
    assert_int_equal(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_KERNEL), CUPTI_ERROR_NOT_SUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_subscriber_at_a_time),
        cmocka_unit_test(the_rest_says_no),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
