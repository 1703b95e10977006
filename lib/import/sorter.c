/* sorter.c: merges records of many files by time in bounded memory. */
#include "lib/import/sorter.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/array.h"
#include "lib/base/invariant.h"

enum { RUN_ITEMS = 1 << 19, READ_ITEMS = 1 << 12 }; /* 72 MB of records at most */

/* A sorted part of the temporary file, being read. The last run never leaves memory. */
struct sorted_run {
    uint64_t next, end; /* items in the file */
    struct sorted *buffer;
    uint32_t at, filled;
};

struct sorted_place {
    uint64_t key;
    uint32_t index;
};

struct sorter {
    char directory[PATH_MAX];
    struct sorted *item;
    uint32_t items;
    struct sorted_place *place; /* the items in order */
    size_t places;              /* that there is room for */
    int file;                   /* -1: none yet */
    uint64_t written;           /* items in the file */
    struct sorted_run *run;
    uint32_t runs;
    uint32_t *heap; /* of runs, the least first */
    uint32_t heaped;
    uint32_t last;     /* the run whose item was handed out; UINT32_MAX none */
    uint64_t last_key; /* of that item */
};

struct sorter *sorter_new(const char *directory)
{
    struct sorter *sorter = calloc(1, sizeof *sorter);
    if (!sorter)
        return NULL;
    const char *temporary = getenv("TMPDIR");
    snprintf(sorter->directory, sizeof sorter->directory, "%s",
             temporary && *temporary ? temporary : directory);
    sorter->file = -1;
    sorter->last = UINT32_MAX;
    return sorter;
}

void sorter_free(struct sorter *sorter)
{
    if (!sorter)
        return;
    for (uint32_t i = 0; i < sorter->runs; i++)
        if (sorter->run[i].buffer != sorter->item)
            free(sorter->run[i].buffer);
    if (sorter->file >= 0)
        close(sorter->file);
    free(sorter->item);
    free(sorter->place);
    free(sorter->run);
    free(sorter->heap);
    free(sorter);
}

static int fail_sorter_memory(struct error *err)
{
    return error_memory(err, "can't sort what was read");
}

static int file_failed(const struct sorter *sorter, const char *doing, struct error *err)
{
    return error_set(err,
                     "can't %s a temporary file in %s: %s; set TMPDIR to a directory with room",
                     doing, sorter->directory, strerror(errno));
}

static int compare_sorted(const void *left, const void *right)
{
    const struct sorted_place *a = left, *b = right;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

/* Puts the items at hand in order: usually they are. */
static int sort_items(struct sorter *sorter, struct error *err)
{
    if (!ARRAY_RESERVE(sorter->place, sorter->places, sorter->items + 1))
        return fail_sorter_memory(err);
    struct sorted_place *place = sorter->place;
    bool sorted = true;
    for (uint32_t i = 0; i < sorter->items; i++) {
        place[i] = (struct sorted_place){sorter->item[i].key, i};
        sorted = sorted && (!i || place[i - 1].key <= place[i].key);
    }
    if (!sorted)
        qsort(place, sorter->items, sizeof *place, compare_sorted);
    return 0;
}

static int open_spill_file(struct sorter *sorter, struct error *err)
{
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/ddpcheck-import-XXXXXX", sorter->directory);
    sorter->file = mkstemp(path);
    if (sorter->file < 0)
        return file_failed(sorter, "make", err);
    unlink(path);
    return 0;
}

static int write_spill(struct sorter *sorter, const void *bytes, size_t count, struct error *err)
{
    const char *at = bytes;
    while (count) {
        ssize_t wrote = write(sorter->file, at, count);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return file_failed(sorter, "write", err);
        at += wrote;
        count -= (size_t)wrote;
    }
    return 0;
}

static struct sorted_run *add_run(struct sorter *sorter, struct error *err)
{
    if (!ARRAY_ADD(sorter->run, sorter->runs)) {
        fail_sorter_memory(err);
        return NULL;
    }
    sorter->run[sorter->runs] = (struct sorted_run){0};
    return &sorter->run[sorter->runs++];
}

static int spill(struct sorter *sorter, struct error *err)
{
    if ((sorter->file < 0 && open_spill_file(sorter, err)) || sort_items(sorter, err))
        return -1;
    struct sorted_run *run = add_run(sorter, err);
    struct sorted *batch = malloc(READ_ITEMS * sizeof *batch);
    if (!run || !batch) {
        free(batch);
        return fail_sorter_memory(err);
    }
    *run = (struct sorted_run){.next = sorter->written, .end = sorter->written + sorter->items};
    int result = 0;
    for (uint32_t done = 0; done < sorter->items && !result; done += READ_ITEMS) {
        uint32_t count = sorter->items - done < READ_ITEMS ? sorter->items - done : READ_ITEMS;
        for (uint32_t i = 0; i < count; i++)
            batch[i] = sorter->item[sorter->place[done + i].index];
        result = write_spill(sorter, batch, count * sizeof *batch, err);
    }
    free(batch);
    sorter->written += sorter->items;
    sorter->items = 0;
    return result;
}

int sorter_add(struct sorter *sorter, const struct sorted *item, struct error *err)
{
    if (sorter->items == RUN_ITEMS && spill(sorter, err))
        return -1;
    if (!ARRAY_ADD(sorter->item, sorter->items))
        return fail_sorter_memory(err);
    sorter->item[sorter->items++] = *item;
    return 0;
}

static int refill_run(struct sorter *sorter, struct sorted_run *run, struct error *err)
{
    uint64_t left = run->end - run->next;
    uint32_t count = left < READ_ITEMS ? (uint32_t)left : READ_ITEMS;
    size_t bytes = count * sizeof *run->buffer, got = 0;
    run->at = 0;
    run->filled = count;
    while (got < bytes) {
        ssize_t part = pread(sorter->file, (char *)run->buffer + got, bytes - got,
                             (off_t)(run->next * sizeof *run->buffer + got));
        if (part < 0 && errno == EINTR)
            continue;
        if (part <= 0)
            return file_failed(sorter, "read", err);
        got += (size_t)part;
    }
    run->next += count;
    return 0;
}

static const struct sorted *head(const struct sorter *sorter, uint32_t index)
{
    const struct sorted_run *run = &sorter->run[index];
    return run->buffer == sorter->item ? &run->buffer[sorter->place[run->at].index]
                                       : &run->buffer[run->at];
}

/* Of equal keys the earlier run's came first. */
static bool is_run_before(const struct sorter *sorter, uint32_t a, uint32_t b)
{
    uint64_t key_a = head(sorter, a)->key, key_b = head(sorter, b)->key;
    return key_a != key_b ? key_a < key_b : a < b;
}

static void sift_down(struct sorter *sorter, uint32_t at)
{
    for (;;) {
        uint32_t least = at;
        for (uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < sorter->heaped; child++)
            if (is_run_before(sorter, sorter->heap[child], sorter->heap[least]))
                least = child;
        if (least == at)
            return;
        uint32_t swap = sorter->heap[at];
        sorter->heap[at] = sorter->heap[least];
        sorter->heap[least] = swap;
        at = least;
    }
}

int sorter_finish(struct sorter *sorter, struct error *err)
{
    if (sort_items(sorter, err))
        return -1;
    for (uint32_t i = 0; i < sorter->runs; i++)
        if (!(sorter->run[i].buffer = malloc(READ_ITEMS * sizeof *sorter->run[i].buffer)))
            return fail_sorter_memory(err);
        else if (refill_run(sorter, &sorter->run[i], err))
            return -1;
    if (sorter->items) {
        struct sorted_run *run = add_run(sorter, err);
        if (!run)
            return -1;
        *run = (struct sorted_run){.buffer = sorter->item, .filled = sorter->items};
    }
    if (!(sorter->heap = malloc(((size_t)sorter->runs + 1) * sizeof *sorter->heap)))
        return fail_sorter_memory(err);
    for (; sorter->heaped < sorter->runs; sorter->heaped++)
        sorter->heap[sorter->heaped] = sorter->heaped;
    for (uint32_t i = sorter->heaped / 2; i-- > 0;)
        sift_down(sorter, i);
    return 0;
}

/* The item that was handed out is used up. */
static int advance_runs(struct sorter *sorter, struct error *err)
{
    struct sorted_run *run = &sorter->run[sorter->heap[0]];
    invariant(run->at < run->filled, "a run in the heap has an item left");
    run->at++;
    if (run->at == run->filled && run->next < run->end && refill_run(sorter, run, err))
        return -1;
    if (run->at == run->filled)
        sorter->heap[0] = sorter->heap[--sorter->heaped];
    sift_down(sorter, 0);
    return 0;
}

int sorter_next(struct sorter *sorter, const struct sorted **item, struct error *err)
{
    if (sorter->last != UINT32_MAX && sorter->heaped && advance_runs(sorter, err))
        return -1;
    if (!sorter->heaped)
        return 0;
    sorter->last = sorter->heap[0];
    *item = head(sorter, sorter->last);
    invariant((*item)->key >= sorter->last_key, "sorted records come in the order of their keys");
    sorter->last_key = (*item)->key;
    return 1;
}
