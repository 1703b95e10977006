/* callbacks.c: CUPTI's callback interface: one subscriber at a time, which may enable callbacks and
 * query what is enabled. Those of launches are delivered, as cuLaunchKernelEx whatever the call is;
 * no others. */
#include <cupti.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "emu/core.h"
#include "emu/cupti/callbacks.h"

enum { CALLBACKS = 1024 }; /* more than any domain has */

struct CUpti_Subscriber_st {
    CUpti_CallbackFunc callback;
    void *data;
    char name[CUPTI_SUBSCRIBER_NAME_MAX_LEN];
    bool enabled[CUPTI_CB_DOMAIN_SIZE][CALLBACKS];
};

static struct {
    pthread_mutex_t lock;
    struct CUpti_Subscriber_st *one;
} subscriber = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Gives the name of the one who is there to the one who comes too late. */
static void announce_subscriber(const CUpti_SubscriberParams *parameters)
{
    if (parameters && parameters->oldSubscriberName && parameters->oldSubscriberSize)
        snprintf(parameters->oldSubscriberName, parameters->oldSubscriberSize, "%s",
                 subscriber.one->name);
}

static CUptiResult subscribe(CUpti_SubscriberHandle *handle, CUpti_CallbackFunc callback,
                             void *data, const CUpti_SubscriberParams *parameters)
{
    CUptiResult result = CUPTI_SUCCESS;

    if (!handle)
        return CUPTI_ERROR_INVALID_PARAMETER;
    pthread_mutex_lock(&subscriber.lock);
    if (subscriber.one) {
        result = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
        announce_subscriber(parameters);
    } else {
        *handle = subscriber.one = calloc(1, sizeof(*subscriber.one));
        if (*handle) {
            (*handle)->callback = callback;
            (*handle)->data = data;
            snprintf((*handle)->name, sizeof((*handle)->name), "%s",
                     parameters && parameters->subscriberName ? parameters->subscriberName
                                                              : "CUPTI client");
        } else {
            result = CUPTI_ERROR_OUT_OF_MEMORY;
        }
    }
    pthread_mutex_unlock(&subscriber.lock);
    return result;
}

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *handle, CUpti_CallbackFunc callback, void *data)
{
    return subscribe(handle, callback, data, NULL);
}

CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle *handle, CUpti_CallbackFunc callback,
                              void *data, CUpti_SubscriberParams *parameters)
{
    return subscribe(handle, callback, data, parameters);
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle handle)
{
    CUptiResult result = CUPTI_ERROR_INVALID_PARAMETER;

    pthread_mutex_lock(&subscriber.lock);
    if (handle && handle == subscriber.one) {
        subscriber.one = NULL;
        free(handle);
        result = CUPTI_SUCCESS;
    }
    pthread_mutex_unlock(&subscriber.lock);
    return result;
}

static void deliver_callback(const struct CUpti_Subscriber_st *to, CUpti_ApiCallbackSite site,
                             uint32_t correlation)
{
    CUpti_CallbackData call = {
        .callbackSite = site, .functionName = "cuLaunchKernelEx", .correlationId = correlation};

    to->callback(to->data, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
                 &call);
}

void cupti_call_back(uint32_t correlation)
{
    struct CUpti_Subscriber_st to = {0};

    pthread_mutex_lock(&subscriber.lock);
    if (subscriber.one)
        to = *subscriber.one;
    pthread_mutex_unlock(&subscriber.lock);
    if (!to.callback ||
        !to.enabled[CUPTI_CB_DOMAIN_DRIVER_API][CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx])
        return;
    deliver_callback(&to, CUPTI_API_ENTER, correlation);
    deliver_callback(&to, CUPTI_API_EXIT, correlation);
}

CUptiResult cuptiFinalize(void)
{
    pthread_mutex_lock(&subscriber.lock);
    free(subscriber.one);
    subscriber.one = NULL;
    pthread_mutex_unlock(&subscriber.lock);
    return CUPTI_SUCCESS;
}

/* Enables (or disables) callbacks [first, end) of a domain. */
static CUptiResult enable(uint32_t on, CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain,
                          unsigned first, unsigned end)
{
    CUptiResult result = CUPTI_ERROR_INVALID_PARAMETER;

    pthread_mutex_lock(&subscriber.lock);
    if (handle && handle == subscriber.one && domain > CUPTI_CB_DOMAIN_INVALID &&
        domain < CUPTI_CB_DOMAIN_SIZE && end <= CALLBACKS) {
        for (unsigned i = first; i < end; i++)
            handle->enabled[domain][i] = on != 0;
        result = CUPTI_SUCCESS;
    }
    pthread_mutex_unlock(&subscriber.lock);
    return result;
}

CUptiResult cuptiEnableCallback(uint32_t on, CUpti_SubscriberHandle handle,
                                CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
    return id < CALLBACKS ? enable(on, handle, domain, id, id + 1) : CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult cuptiEnableDomain(uint32_t on, CUpti_SubscriberHandle handle,
                              CUpti_CallbackDomain domain)
{
    if (on)
        emu_unsupported("CUPTI callbacks",
                        "all may be enabled, but only those of launches are delivered");
    return enable(on, handle, domain, 0, CALLBACKS);
}

CUptiResult cuptiEnableAllDomains(uint32_t on, CUpti_SubscriberHandle handle)
{
    CUptiResult result = CUPTI_SUCCESS;

    for (int domain = CUPTI_CB_DOMAIN_INVALID + 1; domain < CUPTI_CB_DOMAIN_SIZE && !result;
         domain++)
        result = cuptiEnableDomain(on, handle, (CUpti_CallbackDomain)domain);
    return result;
}

CUptiResult cuptiGetCallbackState(uint32_t *on, CUpti_SubscriberHandle handle,
                                  CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
    CUptiResult result = CUPTI_ERROR_INVALID_PARAMETER;

    pthread_mutex_lock(&subscriber.lock);
    if (on && handle && handle == subscriber.one && domain > CUPTI_CB_DOMAIN_INVALID &&
        domain < CUPTI_CB_DOMAIN_SIZE && id < CALLBACKS) {
        *on = handle->enabled[domain][id];
        result = CUPTI_SUCCESS;
    }
    pthread_mutex_unlock(&subscriber.lock);
    return result;
}
