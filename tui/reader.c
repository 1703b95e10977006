/* reader.c: fills views in a thread of its own. */
#include "tui/reader.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/moment.h"

static const long look_ns = 250000000; /* between two looks for changes */
static const uint64_t anew_ns =
    1000000000; /* a view is made anew after so long anyway: times go on */
static const uint64_t least_ns = 450000000,
                      most_ns = 10000000000; /* between two pictures of one view */
enum { SHARE = 40 }; /* of its time that the reader may work without being asked: 1 / SHARE */

struct reader {
    struct source source;
    int wake_fd;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t asked_anew;
    struct query query; /* under the lock from here on */
    uint64_t asked;
    bool paused;
    atomic_bool stopping;
    struct picture newest;
    bool has_newest;
};

void picture_free(struct picture *picture)
{
    rows_free(&picture->diagnosis);
    rows_free(&picture->rows);
    *picture = (struct picture){0};
}

/* Above what the view shows: from when on it shows all. */
static void add_dropped_line(struct source *source, struct rows *rows)
{
    struct trace_dropped dropped = trace_dropped(source->trace);
    char until[32];
    if (dropped.records)
        rows_line(rows, TONE_WARNING,
                  "Not complete before %s: %llu records were dropped (--keep). What was found "
                  "while they were recorded is shown.",
                  moment_clock(dropped.until_ns, source->now_ns, until, sizeof until),
                  (unsigned long long)dropped.records);
}

int picture_make(struct source *source, const struct query *query, struct picture *picture,
                 struct error *err)
{
    *picture = (struct picture){.query = *query,
                                .live = source->live,
                                .now_ns = source->now_ns,
                                .warning = source->warning,
                                .opened = source->opened};
    int databases = trace_database_count(source->trace);
    if (source->title)
        snprintf(picture->path, sizeof picture->path, "%s", source->title);
    else if (databases == 1)
        snprintf(picture->path, sizeof picture->path, "%s", trace_database_path(source->trace, 0));
    else
        snprintf(picture->path, sizeof picture->path, "%d databases", databases);
    if (query->view < VIEWS_NUMBERED)
        add_dropped_line(source, &picture->rows);
    if (model_diagnosis(source, query, &picture->diagnosis, err) == 0 &&
        views[query->view]->load(source, &picture->query, &picture->rows, err) == 0)
        return 0;
    rows_free(&picture->diagnosis);
    rows_free(&picture->rows);
    return -1;
}

static void publish_picture(struct reader *reader, struct picture *picture)
{
    pthread_mutex_lock(&reader->lock);
    if (reader->asked == picture->asked && reader->query.comm_step && !*picture->error.text) {
        reader->query.comm =
            picture->query.comm; /* one step only, however often the view is made anew */
        reader->query.comm_step = 0;
    }
    if (reader->has_newest)
        picture_free(&reader->newest);
    reader->newest = *picture;
    reader->has_newest = true;
    pthread_mutex_unlock(&reader->lock);
    while (write(reader->wake_fd, "", 1) < 0 && errno == EINTR)
        ;
}

/* Waits until something is asked or it is time to look again. Returns false when it is time to end.
 */
static bool wait_for_work(struct reader *reader, uint64_t answered, struct query *query,
                          uint64_t *asked, bool *paused)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += look_ns;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&reader->lock);
    int result = 0;
    while (!reader->stopping && reader->asked == answered && result == 0)
        result = pthread_cond_timedwait(&reader->asked_anew, &reader->lock, &until);
    *query = reader->query;
    *asked = reader->asked;
    *paused = reader->paused;
    bool go_on = !reader->stopping;
    pthread_mutex_unlock(&reader->lock);
    return go_on;
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* A view that is much work is made less often. */
static uint64_t pause_after(uint64_t took_ns)
{
    uint64_t pause_ns = took_ns * SHARE;
    if (pause_ns < least_ns)
        return least_ns;
    return pause_ns > most_ns ? most_ns : pause_ns;
}

static void *read_on(void *argument)
{
    struct reader *reader = argument;
    uint64_t answered = 0, asked;
    struct query query;
    bool paused;
    bool failed = false;
    uint64_t made_ns = 0, took_ns = 0; /* when the last picture was begun, how much work it was */
    while (wait_for_work(reader, answered, &query, &asked, &paused)) {
        struct picture picture = {0};
        struct error err = {""};
        bool anew = asked != answered;
        if (asked == 0 || (paused && !anew))
            continue;
        uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC), since_ns = begin_ns - made_ns,
                 work_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        if (!anew && since_ns < pause_after(took_ns))
            continue;
        int changed = source_look(&reader->source, &err);
        if (changed == 0 && !anew && !failed && !(reader->source.live && since_ns >= anew_ns))
            continue;
        made_ns = begin_ns;
        failed = changed < 0 || picture_make(&reader->source, &query, &picture, &err) < 0;
        took_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - work_ns;
        if (failed)
            picture = (struct picture){.query = query,
                                       .error = err,
                                       .live = reader->source.live,
                                       .now_ns = reader->source.now_ns};
        picture.asked = answered = asked;
        publish_picture(reader, &picture);
    }
    return NULL;
}

struct reader *reader_start(struct source *source, int wake_fd, struct error *err)
{
    struct reader *reader = calloc(1, sizeof *reader);
    pthread_condattr_t attributes;
    if (!reader) {
        error_memory(err, "can't start");
        return NULL;
    }
    reader->source = *source;
    reader->wake_fd = wake_fd;
    atomic_init(&reader->stopping, false);
    source_stop_on(&reader->source, &reader->stopping);
    pthread_mutex_init(&reader->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&reader->asked_anew, &attributes);
    pthread_condattr_destroy(&attributes);
    int failure = pthread_create(&reader->thread, NULL, read_on, reader);
    if (failure == 0)
        return reader;
    error_set(err, "can't start the reader: %s", strerror(failure));
    free(reader);
    return NULL;
}

void reader_stop(struct reader *reader)
{
    pthread_mutex_lock(&reader->lock);
    atomic_store(&reader->stopping, true);
    pthread_cond_signal(&reader->asked_anew);
    pthread_mutex_unlock(&reader->lock);
    pthread_join(reader->thread, NULL);
    pthread_cond_destroy(&reader->asked_anew);
    pthread_mutex_destroy(&reader->lock);
    picture_free(&reader->newest);
    source_close_all(&reader->source);
    free(reader);
}

uint64_t reader_ask(struct reader *reader, const struct query *query)
{
    pthread_mutex_lock(&reader->lock);
    reader->query = *query;
    uint64_t asked = ++reader->asked;
    pthread_cond_signal(&reader->asked_anew);
    pthread_mutex_unlock(&reader->lock);
    return asked;
}

void reader_pause(struct reader *reader, bool paused)
{
    pthread_mutex_lock(&reader->lock);
    reader->paused = paused;
    pthread_mutex_unlock(&reader->lock);
}

bool reader_take(struct reader *reader, struct picture *picture)
{
    pthread_mutex_lock(&reader->lock);
    bool taken = reader->has_newest;
    if (taken) {
        picture_free(picture);
        *picture = reader->newest;
        reader->newest = (struct picture){0};
        reader->has_newest = false;
    }
    pthread_mutex_unlock(&reader->lock);
    return taken;
}
