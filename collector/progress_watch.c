/* progress_watch.c: the thread that reads what GPU streams have reached, and its samples. */
#include "collector/progress_watch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/invariant.h"

static const uint64_t interval_ns = 1000000;
enum { PAUSE_SHARE = 256, REST_MS = 50, STACK_BYTES = 256 << 10 };
static const uint64_t rest_ns = REST_MS * 1000000;

struct watched_progress {
    struct progress_watch *watch;
    struct watched_progress *next;
    const struct ring_reader *reader;
    uint64_t read_ns;
    struct ring_progress reached[RING_SLOTS_MAX]; /* as sampled */
    struct progress_sample sample[PROGRESS_SAMPLES];
    int count;
};

struct progress_watch {
    pthread_mutex_t lock; /* guards what follows, and the processes */
    pthread_cond_t changed;
    struct watched_progress *first;
    uint64_t changed_ns; /* when a slot changed last; 0: none has */
    bool rests, stops;
    bool has_thread; /* without one there are only the readings of the collector's passes */
    pthread_t thread;
};

/* Where nothing ran at the last reading, and what began since is done, it began after that reading;
 * its issue may be much longer ago. */
static uint32_t idle_us(const struct ring_progress *before, const struct ring_progress *reached,
                        uint64_t since_ns)
{
    if (before->started != before->done || reached->done == before->done)
        return 0;
    return since_ns < UINT32_MAX ? (uint32_t)(since_ns / 1000) : 0;
}

/* With the lock held. The time is that after the reading, so what was reached was issued before it.
 * Returns whether a slot has changed. */
static bool read_slots(struct watched_progress *watched)
{
    struct ring_progress reached[RING_SLOTS_MAX];
    int slots = ring_reader_progress(watched->reader, reached);
    uint64_t now_ns = monotonic_now_ns(), last_ns = watched->read_ns;
    bool changed = false;
    watched->read_ns = now_ns;
    for (int i = 0; i < slots; i++) {
        struct ring_progress *before = &watched->reached[i];
        if (before->started == reached[i].started && before->done == reached[i].done)
            continue;
        changed = true;
        if (watched->count == PROGRESS_SAMPLES)
            break;
        watched->sample[watched->count++] = (struct progress_sample){
            .time_ns = now_ns,
            .reached = reached[i],
            .slot = (uint32_t)i,
            .idle_us = last_ns ? idle_us(before, &reached[i], now_ns - last_ns) : 0};
        *before = reached[i];
    }
    return changed;
}

/* With the lock held: sleeps until the next reading is due. */
static void wait_for_reading(struct progress_watch *watch)
{
    uint64_t now_ns = monotonic_now_ns();
    uint64_t pause_ns = (now_ns - watch->changed_ns) / PAUSE_SHARE;
    if (pause_ns >= rest_ns) {
        watch->rests = true;
        while (watch->rests && !watch->stops)
            pthread_cond_wait(&watch->changed, &watch->lock);
        return;
    }
    uint64_t due_ns = now_ns + (pause_ns > interval_ns ? pause_ns : interval_ns);
    struct timespec due = {.tv_sec = (time_t)(due_ns / 1000000000),
                           .tv_nsec = (long)(due_ns % 1000000000)};
    pthread_cond_timedwait(&watch->changed, &watch->lock, &due);
}

static void *watch_progress(void *context)
{
    struct progress_watch *watch = context;
    pthread_mutex_lock(&watch->lock);
    while (!watch->stops) {
        for (struct watched_progress *watched = watch->first; watched; watched = watched->next)
            if (read_slots(watched))
                watch->changed_ns = watched->read_ns;
        wait_for_reading(watch);
    }
    pthread_mutex_unlock(&watch->lock);
    return NULL;
}

struct progress_watch *progress_watch_new(void)
{
    struct progress_watch *watch = calloc(1, sizeof *watch);
    pthread_condattr_t clock;
    pthread_attr_t small;
    if (!watch)
        return NULL;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&watch->changed, &clock);
    pthread_condattr_destroy(&clock);
    pthread_mutex_init(&watch->lock, NULL);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK_BYTES);
    watch->has_thread = pthread_create(&watch->thread, &small, watch_progress, watch) == 0;
    pthread_attr_destroy(&small);
    return watch;
}

void progress_watch_free(struct progress_watch *watch)
{
    if (!watch)
        return;
    pthread_mutex_lock(&watch->lock);
    watch->stops = true;
    pthread_cond_signal(&watch->changed);
    pthread_mutex_unlock(&watch->lock);
    if (watch->has_thread)
        pthread_join(watch->thread, NULL);
    pthread_cond_destroy(&watch->changed);
    pthread_mutex_destroy(&watch->lock);
    free(watch);
}

struct watched_progress *progress_watch_add(struct progress_watch *watch,
                                            const struct ring_reader *reader)
{
    struct watched_progress *watched = calloc(1, sizeof *watched);
    if (!watched)
        return NULL;
    watched->watch = watch;
    watched->reader = reader;
    pthread_mutex_lock(&watch->lock);
    watched->next = watch->first;
    watch->first = watched;
    pthread_mutex_unlock(&watch->lock);
    return watched;
}

void progress_watch_remove(struct watched_progress *watched)
{
    if (!watched)
        return;
    struct progress_watch *watch = watched->watch;
    pthread_mutex_lock(&watch->lock);
    struct watched_progress **at = &watch->first;
    while (*at != watched)
        at = &(*at)->next;
    *at = watched->next;
    pthread_mutex_unlock(&watch->lock);
    free(watched);
}

/* With the lock held: the thread reads again, every millisecond. */
static void note_change(struct progress_watch *watch, uint64_t now_ns)
{
    watch->changed_ns = now_ns;
    watch->rests = false;
    pthread_cond_signal(&watch->changed);
}

int progress_watch_take(struct watched_progress *watched, bool is_last,
                        struct progress_sample *samples, int room)
{
    struct progress_watch *watch = watched->watch;
    pthread_mutex_lock(&watch->lock);
    bool is_due = is_last || monotonic_now_ns() - watched->read_ns >= interval_ns;
    if (is_due && read_slots(watched))
        note_change(watch, watched->read_ns);
    int taken = watched->count < room ? watched->count : room;
    invariant(watched->count >= 0 && watched->count <= PROGRESS_SAMPLES,
              "samples of a process have their room");
    memcpy(samples, watched->sample, (size_t)taken * sizeof *samples);
    watched->count -= taken;
    memmove(watched->sample, watched->sample + taken, (size_t)watched->count * sizeof *samples);
    pthread_mutex_unlock(&watch->lock);
    return taken;
}
