/* job_copy.c: fetches the database of a job's hub, once or again and again, also of each
 * argument that is a hub's address. */
#include "cmd/hub/job_copy.h"

#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd/hub/hub_directory.h"
#include "lib/base/array.h"
#include "lib/base/clock.h"
#include "lib/job/message.h"
#include "lib/nats/transport_nats.h"
#include "lib/trace/image.h"

static const double connect_wait_s = 3;
static const uint64_t answer_usual_ns = 5000000000, follow_every_ns = 500000000;
static const struct timespec slice = {.tv_nsec = 50000000};
enum { COPY_POLL_MS = 100, COPY_PATH_BYTES = PATH_MAX / 2, COPY_NAME_BYTES = 256 };

struct job_copy {
    char *address;    /* of the hub, with its token */
    double connect_s; /* how long the server may take, and the hub to answer */
    uint64_t answer_within_ns;
    char name[COPY_NAME_BYTES], folder[COPY_PATH_BYTES], database[COPY_PATH_BYTES + 16];
    struct transport *transport;
    uint64_t request;        /* id of the last */
    uint64_t image, version; /* what the database has */
    unsigned char *pages;    /* being fetched, or what the database has */
    uint32_t count;          /* of pages */
    size_t capacity;
    int lock;                  /* of the folder: the hub runs */
    bool follows, has_changed; /* pages came that the database does not have */
    pthread_t thread;
    atomic_bool stopping;
    pthread_mutex_t mutex;
    struct error trouble; /* under the mutex */
};

bool job_copy_is_address(const char *argument)
{
    return strncmp(argument, "nats://", 7) == 0 || strncmp(argument, "tls://", 6) == 0;
}

const char *job_copy_place(const char *address)
{
    const char *at = strrchr(address, '@'), *scheme = strstr(address, "://");
    if (at)
        return at + 1;
    return scheme ? scheme + strlen("://") : address;
}

/* The address without its token. */
static void name_copy(struct job_copy *copy, const char *address)
{
    const char *scheme_end = strstr(address, "://") + strlen("://");
    snprintf(copy->name, sizeof copy->name, "%.*s%s", (int)(scheme_end - address), address,
             job_copy_place(address));
}

static int reserve_pages(struct job_copy *copy, uint32_t count, struct error *err)
{
    return array_reserve(&copy->pages, &copy->capacity, count, ITEM_PAGE_BYTES)
               ? 0
               : error_memory(err, "can't read %s", copy->name);
}

static int take_page(struct job_copy *copy, const struct item_page *page, struct error *err)
{
    if (reserve_pages(copy, page->page, err) < 0)
        return -1;
    memcpy(copy->pages + (size_t)(page->page - 1) * ITEM_PAGE_BYTES, page->data, ITEM_PAGE_BYTES);
    copy->has_changed = true;
    return 0;
}

static int take_answer_of_hub(struct job_copy *copy, const struct transport_message *message,
                              struct item_image *end, struct error *err)
{
    struct message_reader reader;
    struct message_item item;
    int result = message_open(&reader, message->data, message->bytes, err) < 0 ? -1 : 1;
    *end = (struct item_image){0};
    while (result == 1 && (result = message_next(&reader, &item, err)) == 1) {
        if (item.kind == ITEM_PAGE && take_page(copy, &item.page, err) < 0)
            return -1;
        if (item.kind == ITEM_IMAGE)
            *end = item.image;
    }
    if (result < 0)
        return -1;
    if (!end->image)
        return error_set(err, "what the hub at %s answers makes no sense", copy->name);
    if (!end->pages)
        return error_set(
            err, "the hub's database is larger than 1 GB: read it on the hub's host: job.db "
                 "in the hub's folder");
    copy->count = end->pages;
    return reserve_pages(copy, end->pages, err);
}

/* *is_sent stays false while there is no connection. */
static int send_view(struct job_copy *copy, const struct item_view *view, bool *is_sent,
                     struct error *err)
{
    struct message_writer writer = {0};
    bool is_added = message_add(&writer, ITEM_VIEW, view);
    uint64_t dropped = copy->transport->dropped;
    int result = is_added ? transport_request(copy->transport, "", ++copy->request, writer.data,
                                              writer.bytes, err)
                          : error_memory(err, "can't ask %s", copy->name);
    *is_sent = copy->transport->dropped == dropped;
    message_free(&writer);
    return result;
}

/* Sends a request and waits for its answer. */
static int ask_hub(struct job_copy *copy, const struct item_view *view, struct item_image *end,
                   struct error *err)
{
    struct transport_message message;
    uint64_t until_ns = monotonic_now_ns() + copy->answer_within_ns;
    bool is_sent = false;
    while (monotonic_now_ns() < until_ns && !atomic_load(&copy->stopping)) {
        if (!is_sent && send_view(copy, view, &is_sent, err) < 0)
            return -1;
        if (transport_poll(copy->transport, COPY_POLL_MS, &message, err) < 0)
            return -1;
        if (message.event == TRANSPORT_ANSWER && message.id == copy->request)
            return take_answer_of_hub(copy, &message, end, err);
    }
    if (!is_sent)
        return error_set(err,
                         "no NATS server answers at %s; is the hub running, and can this host "
                         "reach it?",
                         copy->name);
    return error_set(err,
                     "no hub answers at %s: a NATS server is there, but no 'ddpcheck hub' of this "
                     "job and version",
                     copy->name);
}

/* Takes what changed since the version that is there (0: everything). Returns 1 if the pages are of
 * one moment, 0 if some changed meanwhile, or -1 with err. */
static int fetch_pass(struct job_copy *copy, struct error *err)
{
    struct item_view view = {.image = copy->image, .version = copy->version, .page = 1};
    struct item_image first = {0}, end;
    bool is_one = true;
    do {
        if (ask_hub(copy, &view, &end, err) < 0)
            return -1;
        bool is_another = first.image ? end.image != first.image
                                      : copy->version && end.image != copy->image;
        if (is_another) { /* another hub: nothing of the earlier one holds */
            copy->version = 0;
            return 0;
        }
        if (!first.image)
            first = end;
        is_one &= first.version == end.version;
        view.image = end.image;
        view.page = end.next;
    } while (end.next);
    copy->image = first.image;
    copy->version = first.version;
    return is_one;
}

static int fetch_copy(struct job_copy *copy, struct error *err)
{
    int result = 0;
    while (result == 0 && !atomic_load(&copy->stopping))
        result = fetch_pass(copy, err);
    if (result <= 0 || !copy->has_changed)
        return result;
    copy->has_changed = false;
    return image_write(copy->pages, copy->count, copy->database, err);
}

static void pause_copy(const struct job_copy *copy, uint64_t pause_ns)
{
    uint64_t until_ns = monotonic_now_ns() + pause_ns;
    while (!atomic_load(&copy->stopping) && monotonic_now_ns() < until_ns)
        nanosleep(&slice, NULL);
}

/* wait_s 0: the connection is opened in the background, so that following can be stopped. */
static int connect_copy(struct job_copy *copy, double wait_s, struct error *err)
{
    const struct transport_nats_options options = {
        .url = copy->address,
        .is_reader = true,
        .tls_ca = getenv("DDPCHECK_HUB_CA"),
        .tls_cert = getenv("DDPCHECK_HUB_CERT"),
        .tls_key = getenv("DDPCHECK_HUB_KEY"),
        .wait_s = wait_s,
    };
    return copy->transport ? 0 : transport_nats_open(&copy->transport, &options, err);
}

static void *follow_job(void *argument)
{
    struct job_copy *copy = argument;
    while (!atomic_load(&copy->stopping)) {
        struct error err = {""};
        pause_copy(copy, follow_every_ns);
        int result = connect_copy(copy, 0, &err) < 0 ? -1 : fetch_copy(copy, &err);
        pthread_mutex_lock(&copy->mutex);
        copy->trouble.text[0] = 0;
        if (result < 0)
            error_set(&copy->trouble, "trying again: %s", err.text);
        pthread_mutex_unlock(&copy->mutex);
    }
    return NULL;
}

static int make_copy_folder(struct job_copy *copy, struct error *err)
{
    const char *place = getenv("TMPDIR");
    if (snprintf(copy->folder, sizeof copy->folder, "%s/ddpcheck-job-XXXXXX",
                 place && *place ? place : "/tmp") >= (int)sizeof copy->folder)
        return error_set(err, "TMPDIR is too long");
    if (!mkdtemp(copy->folder)) {
        error_set(err, "can't create a directory %s: %m: set TMPDIR to a writable directory",
                  copy->folder);
        copy->folder[0] = 0;
        return -1;
    }
    snprintf(copy->database, sizeof copy->database, "%s/job.db", copy->folder);
    copy->lock = hub_lock(copy->folder);
    return 0;
}

/* Returns 0, or -1 with err. */
static int fetch_first(struct job_copy *copy, double wait_s, struct error *err)
{
    uint64_t until_ns = monotonic_now_ns() + (uint64_t)(wait_s * 1e9);
    if (connect_copy(copy, wait_s > copy->connect_s ? wait_s : copy->connect_s, err) < 0)
        return -1;
    while (fetch_copy(copy, err) < 0)
        if (monotonic_now_ns() >= until_ns)
            return -1;
    return 0;
}

/* 0, or -1 with err. */
static int start_following(struct job_copy *copy, struct error *err)
{
    int number = pthread_create(&copy->thread, NULL, follow_job, copy);
    if (number)
        return error_set(err, "can't start a thread: %s", strerror(number));
    copy->follows = true;
    return 0;
}

/* NULL with err when memory is short, or there is no folder. */
static struct job_copy *copy_new(const char *address, struct error *err)
{
    struct job_copy *copy = calloc(1, sizeof *copy);
    if (!copy || !(copy->address = strdup(address))) {
        free(copy);
        error_memory(err, "can't ask the hub");
        return NULL;
    }
    copy->lock = -1;
    copy->connect_s = connect_wait_s;
    copy->answer_within_ns = answer_usual_ns;
    pthread_mutex_init(&copy->mutex, NULL);
    atomic_init(&copy->stopping, false);
    name_copy(copy, address);
    if (make_copy_folder(copy, err) == 0)
        return copy;
    job_copy_close(copy);
    return NULL;
}

int job_copy_open(struct job_copy **to, const char *address, double wait_s, bool follow,
                  struct error *err)
{
    struct job_copy *copy = copy_new(address, err);
    if (!copy)
        return -1;
    if (fetch_first(copy, wait_s, err) < 0 || (follow && start_following(copy, err) < 0)) {
        job_copy_close(copy);
        return -1;
    }
    *to = copy;
    return 0;
}

int job_copy_open_within(struct job_copy **to, const char *address, double within_s,
                         struct error *err)
{
    struct job_copy *copy = copy_new(address, err);
    if (!copy)
        return -1;
    copy->connect_s = within_s;
    copy->answer_within_ns = (uint64_t)(within_s * 1e9);
    if (fetch_first(copy, 0, err) < 0) {
        job_copy_close(copy);
        return -1;
    }
    *to = copy;
    return 0;
}

struct job_copy *job_copy_follow(const char *address)
{
    struct error err;
    struct job_copy *copy = copy_new(address, &err);
    if (!copy || start_following(copy, &err) == 0)
        return copy;
    job_copy_close(copy);
    return NULL;
}

static void remove_copy(const struct job_copy *copy)
{
    static const char *const names[] = {"job.db", "job.db-wal", "job.db-shm", "job.db-journal",
                                        HUB_LOCK_NAME};
    for (size_t i = 0; *copy->folder && i < sizeof names / sizeof *names; i++) {
        char path[sizeof copy->folder + 32];
        snprintf(path, sizeof path, "%s/%s", copy->folder, names[i]);
        unlink(path);
    }
    if (*copy->folder)
        rmdir(copy->folder);
}

void job_copy_close(struct job_copy *copy)
{
    if (!copy)
        return;
    atomic_store(&copy->stopping, true);
    if (copy->follows)
        pthread_join(copy->thread, NULL);
    transport_close(copy->transport);
    remove_copy(copy);
    if (copy->lock >= 0)
        close(copy->lock);
    pthread_mutex_destroy(&copy->mutex);
    free(copy->pages);
    free(copy->address);
    free(copy);
}

const char *job_copy_database(const struct job_copy *copy)
{
    return copy->database;
}

const char *job_copy_name(const struct job_copy *copy)
{
    return copy->name;
}

void job_copy_trouble(void *context, struct error *trouble)
{
    struct job_copy *copy = context;
    pthread_mutex_lock(&copy->mutex);
    *trouble = copy->trouble;
    pthread_mutex_unlock(&copy->mutex);
}

/* --- copies of arguments --- */

int job_copies_open(struct job_copies *copies, char **argv, int argc, struct error *err)
{
    *copies = (struct job_copies){0};
    for (int i = 0; i < argc; i++) {
        struct job_copy **copy = &copies->copy[copies->count];
        if (!job_copy_is_address(argv[i]))
            continue;
        int result = copies->count == JOB_COPIES_MAX
                         ? error_set(err, "more than %d addresses of hubs", JOB_COPIES_MAX)
                         : job_copy_open(copy, argv[i], 0, false, err);
        if (result < 0) {
            job_copies_close(copies);
            return -1;
        }
        argv[i] = (char *)job_copy_database(*copy);
        copies->count++;
    }
    return 0;
}

void job_copies_close(struct job_copies *copies)
{
    for (int i = 0; i < copies->count; i++)
        job_copy_close(copies->copy[i]);
    copies->count = 0;
}

const char *job_copies_name(const struct job_copies *copies, const char *path)
{
    for (int i = 0; i < copies->count; i++)
        if (strcmp(job_copy_database(copies->copy[i]), path) == 0)
            return job_copy_name(copies->copy[i]);
    return path;
}
