/* support.h: what the tests of the emulated machine share: gates that hold a stream back, and
 * checks of results by name. */
#ifndef DDPCHECK_TESTS_EMU_SUPPORT_H
#define DDPCHECK_TESTS_EMU_SUPPORT_H

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <cmocka.h>

/* Checks a CUDA result and says both by name. */
#define EXPECT(call, wanted)                                                     \
    do {                                                                         \
        cudaError_t got_ = (call);                                               \
        if (got_ != (wanted))                                                    \
            fail_msg("%s: expected %s, got %s", #call, cudaGetErrorName(wanted), \
                     cudaGetErrorName(got_));                                    \
    } while (0)
#define OK(call) EXPECT(call, cudaSuccess)

/* A stream that runs gate_pass stands still until the gate opens; a test that fails does not hang.
 */
struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open, reached, timed_out;
};
#define GATE_CLOSED                                                            \
    {                                                                          \
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER \
    }

enum { GATE_SECONDS = 30 };

static inline void gate_pass(void *arg)
{
    struct gate *gate = arg;
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += GATE_SECONDS;
    pthread_mutex_lock(&gate->lock);
    gate->reached = true;
    pthread_cond_broadcast(&gate->changed);
    while (!gate->open && !gate->timed_out)
        gate->timed_out = pthread_cond_timedwait(&gate->changed, &gate->lock, &until) != 0;
    pthread_mutex_unlock(&gate->lock);
}

static inline void gate_open(void *arg)
{
    struct gate *gate = arg;

    pthread_mutex_lock(&gate->lock);
    gate->open = true;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

/* Waits until a stream stands at the gate. */
static inline void gate_await(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    while (!gate->reached)
        pthread_cond_wait(&gate->changed, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
}

static inline bool gate_is_open(struct gate *gate)
{
    bool open;

    pthread_mutex_lock(&gate->lock);
    open = gate->open;
    pthread_mutex_unlock(&gate->lock);
    return open;
}

/* Opens the gate from another thread after a while; for calls that must block until then. */
static inline void *gate_open_later(void *arg)
{
    const struct timespec pause = {0, 50000000};

    nanosleep(&pause, NULL);
    gate_open(arg);
    return NULL;
}

/* Each test begins with devices as new. */
static inline int reset_devices(void **state)
{
    int count;

    (void)state;
    OK(cudaGetDeviceCount(&count));
    for (int i = count - 1; i >= 0; i--) {
        (void)cudaSetDevice(i); /* becomes current, but says that the device has failed if it has */
        OK(cudaDeviceReset());
    }
    OK(cudaSetDevice(0));
    (void)cudaGetLastError();
    return 0;
}

#endif
