/* log_stalls.c: stalls that other frameworks report: Horovod's coordinator names the ranks that did
 * not submit a tensor, XLA's threads wait for each other. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/rankset.h"
#include "lib/import/log_messages.h"

enum { NAME_BYTES = 120, RANKS_BYTES = 200, RANKS_MAX = 1 << 16 };

struct log_stalls {
    bool open;       /* of Horovod's "Missing ranks:": lines of ranks follow */
    bool is_unstuck; /* XLA took its last warning back */
    bool stuck;
    char reported[RANKS_BYTES]; /* the ranks reported last: one tensor of theirs is enough */
    char what[MESSAGE_BYTES];
};

static const char todo_horovod[] =
    "Horovod's ranks submit tensors by name: look for a branch on the rank, for names that differ "
    "between ranks, and for a rank that left its loop earlier or raised an exception.";
static const char todo_xla[] = "XLA waits for devices of this process or for other hosts: see that "
                               "every process runs the same "
                               "computation, and whether another one ended or failed to start.";

static struct log_stalls *stalls_of(struct log_job *job)
{
    if (!job->stalls)
        job->stalls = calloc(1, sizeof *job->stalls);
    return job->stalls;
}

/* --- Horovod --- */

/* "1, 7, 5" up to its bracket. */
static bool parse_ranks(const char *text, struct rankset *ranks)
{
    bool any = false;
    while (isdigit((unsigned char)*text)) {
        char *end;
        unsigned long rank = strtoul(text, &end, 10);
        if (rank >= RANKS_MAX || rankset_add(ranks, (int)rank))
            return false;
        any = true;
        text = end + strspn(end, ", ");
    }
    return any && (*text == ']' || *text == ':');
}

/* The tensor's name that ends before " [missing ranks": "HorovodBroadcast_dense_1_bias_0". */
static void copy_tensor_name(const char *begin, const char *end, char *name)
{
    while (end > begin && isspace((unsigned char)end[-1]))
        end--;
    const char *at = end;
    while (at > begin && !isspace((unsigned char)at[-1]) && at[-1] != ',')
        at--;
    if (!strncmp(at, "ops:", 4)) /* "Stalled ops:HorovodBroadcast..." */
        at += 4;
    size_t bytes = (size_t)(end - at);
    snprintf(name, NAME_BYTES, "%.*s", (int)(bytes < NAME_BYTES ? bytes : NAME_BYTES - 1), at);
}

static int add_for_each(struct log_job *job, const struct rankset *ranks, const char *what)
{
    char list[RANKS_BYTES];
    int result = 1;
    struct log_stalls *stalls = stalls_of(job);
    if (!stalls)
        return -1;
    if (!strcmp(rankset_text(ranks, list, sizeof list), stalls->reported))
        return 1;
    memcpy(stalls->reported, list, sizeof stalls->reported);
    for (int rank = rankset_next(ranks, 0); rank >= 0 && result > 0;
         rank = rankset_next(ranks, rank + 1))
        result = log_messages_add(job, (struct log_speaker){.rank = rank}, SAID_ERROR, "Horovod",
                                  what, todo_horovod);
    return result;
}

static int missing_ranks(struct log_job *job, const struct rankset *ranks, const char *name)
{
    char what[MESSAGE_BYTES], list[RANKS_BYTES];
    bool one = rankset_count(ranks) == 1;
    snprintf(what, sizeof what, "%s %s did not submit %s in time: the others wait for %s",
             one ? "rank" : "ranks", rankset_text(ranks, list, sizeof list), name,
             one ? "it" : "them");
    return add_for_each(job, ranks, what);
}

static int ready_ranks(struct log_job *job, const struct rankset *ranks, const char *name)
{
    char what[MESSAGE_BYTES], list[RANKS_BYTES];
    snprintf(what, sizeof what,
             "ranks %s wait in %s for ranks that did not submit it in time: all others",
             rankset_text(ranks, list, sizeof list), name);
    return add_for_each(job, ranks, what);
}

/* "HorovodBroadcast_x [missing ranks: 1]"; the first of a line counts. */
static int stalled_op(struct log_job *job, const char *text)
{
    char name[NAME_BYTES];
    const char *missing = strstr(text, " [missing ranks: "),
               *ready = strstr(text, " [ready ranks: ");
    const char *found = missing ? missing : ready;
    struct rankset ranks = {0};
    int result = 0;
    if (!found || !(strstr(text, "orovod") || strstr(text, "Stalled ops")))
        return 0;
    copy_tensor_name(text, found, name);
    if (*name && parse_ranks(strchr(found, ':') + 2, &ranks))
        result = missing ? missing_ranks(job, &ranks, name) : ready_ranks(job, &ranks, name);
    rankset_free(&ranks);
    return result;
}

/* "1: [tensor, tensor, ...]" behind "Missing ranks:". */
static int missing_line(struct log_job *job, const char *text)
{
    char name[NAME_BYTES];
    struct rankset ranks = {0};
    const char *open = strstr(text, ": [");
    const char *digits = open;
    while (digits && digits > text && isdigit((unsigned char)digits[-1]))
        digits--;
    if (!open || digits == open || (digits > text && !strchr(" >:", digits[-1]))) {
        job->stalls->open = false;
        return 0;
    }
    size_t bytes = strcspn(open + 3, ",]");
    snprintf(name, sizeof name, "%.*s", (int)(bytes < NAME_BYTES ? bytes : NAME_BYTES - 1),
             open + 3);
    int result = parse_ranks(digits, &ranks) ? missing_ranks(job, &ranks, name) : 0;
    rankset_free(&ranks);
    return result;
}

static int horovod_line(struct log_job *job, const char *text)
{
    if (strstr(text, "Missing ranks:")) {
        struct log_stalls *stalls = stalls_of(job);
        if (!stalls)
            return -1;
        stalls->open = true;
        return 1;
    }
    int result = stalled_op(job, text);
    if (!result && job->stalls && job->stalls->open && text[strspn(text, " \t")])
        result = missing_line(job, text);
    return result;
}

/* --- XLA --- */

/* "This thread has been waiting for `...` for 20 seconds and may be stuck. Expected 8 threads ...".
 * It counts unless XLA takes it back. */
static int xla_line(struct log_job *job, const char *text)
{
    const char *found = strstr(text, "This thread has been waiting for `");
    bool is_unstuck = strstr(text, "Thread is unstuck!") != NULL;
    bool ends = strstr(text, "Termination timeout for `") != NULL;
    if (!is_unstuck && !ends && (!found || !strstr(found, "may be stuck")))
        return 0;
    struct log_stalls *stalls = stalls_of(job);
    if (!stalls)
        return -1;
    stalls->is_unstuck = is_unstuck;
    stalls->stuck |= !is_unstuck;
    if (ends || (found && !*stalls->what))
        snprintf(stalls->what, sizeof stalls->what, "%s",
                 ends ? strstr(text, "Termination timeout for `") : found);
    return 1;
}

int log_stalls_line(struct log_job *job, const char *text, size_t bytes)
{
    (void)bytes;
    int result = xla_line(job, text);
    return result ? result : horovod_line(job, text);
}

int log_stalls_end(struct log_job *job)
{
    struct log_stalls *stalls = job->stalls;
    int result = 0;
    if (stalls && stalls->stuck)
        result = log_messages_add(job, (struct log_speaker){.rank = -1},
                                  stalls->is_unstuck ? SAID_NOTE : SAID_ERROR, "XLA", stalls->what,
                                  stalls->is_unstuck ? "It went on later." : todo_xla);
    free(stalls);
    job->stalls = NULL;
    return result < 0 ? -1 : 0;
}
