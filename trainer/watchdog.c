/* watchdog.c: the thread that ends a rank whose collectives time out. */
#include "trainer/watchdog.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "trainer/check.h"
#include "trainer/clock.h"

enum { MAX_COMMUNICATORS = 8, POLL_NS = 50 * 1000 * 1000 };

struct expected {
    struct expected *next;
    cudaEvent_t done;
    double issued_s;
    char what[96];
};

struct watchdog {
    pthread_t thread;
    int device;
    double timeout_s;

    pthread_mutex_t lock; /* of all below */
    bool stopping;
    struct expected *oldest, *newest, *unused;
    double last_completion_s;
    ncclComm_t communicators[MAX_COMMUNICATORS];
    int communicator_count;
};

/* Moves what has completed to the unused ones. The lock is held. */
static void collect_completed(struct watchdog *watchdog, double now_s)
{
    struct expected **link = &watchdog->oldest;
    watchdog->newest = NULL;
    while (*link) {
        struct expected *expected = *link;
        if (cudaEventQuery(expected->done) == cudaErrorNotReady) {
            watchdog->newest = expected;
            link = &expected->next;
            continue;
        }
        *link = expected->next;
        expected->next = watchdog->unused;
        watchdog->unused = expected;
        watchdog->last_completion_s = now_s;
    }
}

static double waited_s(const struct watchdog *watchdog, double now_s)
{
    if (!watchdog->oldest)
        return 0;
    double since = watchdog->oldest->issued_s;
    if (watchdog->last_completion_s > since)
        since = watchdog->last_completion_s;
    return now_s - since;
}

/* The main thread may be blocked in CUDA, so nobody runs exit handlers: the messages are flushed
 * here. The lock is held, so that threads that the abort wakes stop in watchdog_pass(). */
static void end_process(struct watchdog *watchdog)
{
    notice("no collective has completed for %.1f s (--timeout); still waiting for %s; aborting",
           watchdog->timeout_s, watchdog->oldest->what);
    for (int i = 0; i < watchdog->communicator_count; i++)
        ncclCommAbort(watchdog->communicators[i]);
    fflush(NULL);
    _exit(1);
}

static void *watchdog_run(void *argument)
{
    struct watchdog *watchdog = argument;
    CHECK_CUDA(cudaSetDevice(watchdog->device));
    pthread_mutex_lock(&watchdog->lock);
    while (!watchdog->stopping) {
        double now_s = clock_seconds();
        collect_completed(watchdog, now_s);
        if (waited_s(watchdog, now_s) > watchdog->timeout_s)
            end_process(watchdog);
        pthread_mutex_unlock(&watchdog->lock);
        nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
        pthread_mutex_lock(&watchdog->lock);
    }
    pthread_mutex_unlock(&watchdog->lock);
    return NULL;
}

struct watchdog *watchdog_start(int device, double timeout_s)
{
    struct watchdog *watchdog = allocate(1, sizeof *watchdog);
    watchdog->device = device;
    watchdog->timeout_s = timeout_s;
    pthread_mutex_init(&watchdog->lock, NULL);
    if (pthread_create(&watchdog->thread, NULL, watchdog_run, watchdog) != 0)
        fatal("can't start the thread of --timeout");
    return watchdog;
}

void watchdog_stop(struct watchdog *watchdog)
{
    if (!watchdog)
        return;
    pthread_mutex_lock(&watchdog->lock);
    watchdog->stopping = true;
    pthread_mutex_unlock(&watchdog->lock);
    pthread_join(watchdog->thread, NULL);
    collect_completed(watchdog, clock_seconds());
    while (watchdog->unused) {
        struct expected *expected = watchdog->unused;
        watchdog->unused = expected->next;
        CHECK_CUDA(cudaEventDestroy(expected->done));
        free(expected);
    }
    pthread_mutex_destroy(&watchdog->lock);
    free(watchdog);
}

void watchdog_guard(struct watchdog *watchdog, ncclComm_t communicator)
{
    if (!watchdog)
        return;
    pthread_mutex_lock(&watchdog->lock);
    if (watchdog->communicator_count == MAX_COMMUNICATORS)
        fatal("more than %d communicators for --timeout to watch", MAX_COMMUNICATORS);
    watchdog->communicators[watchdog->communicator_count++] = communicator;
    pthread_mutex_unlock(&watchdog->lock);
}

/* end_process() keeps the lock. */
void watchdog_pass(struct watchdog *watchdog)
{
    if (!watchdog)
        return;
    pthread_mutex_lock(&watchdog->lock);
    pthread_mutex_unlock(&watchdog->lock);
}

static struct expected *take_unused(struct watchdog *watchdog)
{
    struct expected *expected = watchdog->unused;
    if (expected) {
        watchdog->unused = expected->next;
        expected->next = NULL;
        return expected;
    }
    expected = allocate(1, sizeof *expected);
    CHECK_CUDA(cudaEventCreateWithFlags(&expected->done, cudaEventDisableTiming));
    return expected;
}

void watchdog_expect(struct watchdog *watchdog, cudaStream_t stream, const char *format, ...)
{
    if (!watchdog)
        return;
    pthread_mutex_lock(&watchdog->lock);
    struct expected *expected = take_unused(watchdog);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(expected->what, sizeof expected->what, format, arguments);
    va_end(arguments);
    expected->issued_s = clock_seconds();
    CHECK_CUDA(cudaEventRecord(expected->done, stream));
    if (watchdog->newest)
        watchdog->newest->next = expected;
    else
        watchdog->oldest = expected;
    watchdog->newest = expected;
    pthread_mutex_unlock(&watchdog->lock);
}
