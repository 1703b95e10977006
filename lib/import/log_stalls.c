/* log_stalls.c: stalls that other frameworks report: Horovod's coordinator names the ranks that did
 * not submit a tensor, XLA's threads wait for each other. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/rankset.h"
#include "lib/import/log_messages.h"
#include "lib/import/scan.h"

enum { NAME_BYTES = 120, RANKS_BYTES = 200, RANKS_MAX = 1 << 16, STALLS_MAX = 64 };
enum { LINES_BETWEEN = 8 }; /* of others, between the ranks of one report */

/* Tensors that wait for, or on, the same ranks. */
struct stalled_ops {
    struct rankset ranks;
    bool are_missing; /* those that did not submit; else those that did, and wait */
    char name[NAME_BYTES];
    uint32_t tensors, report; /* counted in the report that named them first: it is repeated */
};

struct log_horovod {
    int open;        /* behind "Missing ranks:": lines that may still hold ranks */
    uint32_t report; /* how many headings there were */
    struct stalled_ops stalled[STALLS_MAX];
    uint32_t count;
};

struct log_xla {
    bool is_unstuck; /* it took its last warning back */
    bool stuck;
    char what[MESSAGE_BYTES];
};

static const char todo_horovod[] =
    "Horovod's ranks submit tensors by name: look for a branch on the rank, for names that differ "
    "between ranks, and for a rank that left its loop earlier or raised an exception.";
static const char todo_xla[] = "XLA waits for devices of this process or for other hosts: see that "
                               "every process runs the same "
                               "computation, and whether another one ended or failed to start.";

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

/* "Missing ranks:" has a line for each rank: the same tensor in the same report is one stall, and a
 * later report repeats it. */
static bool joins_report(struct log_horovod *horovod, int rank, const char *name)
{
    for (uint32_t i = 0; i < horovod->count; i++) {
        struct stalled_ops *stalled = &horovod->stalled[i];
        bool is_same = stalled->are_missing && !strcmp(stalled->name, name);
        if (is_same && rankset_has(&stalled->ranks, rank))
            return true;
        if (is_same && stalled->report == horovod->report)
            return !rankset_add(&stalled->ranks, rank);
    }
    return false;
}

/* Counts one more tensor for which these ranks are missing or ready. Takes over the set. */
static int add_stalled(struct log_job *job, struct rankset *ranks, bool are_missing,
                       const char *name)
{
    struct log_horovod *horovod = job->state[LOG_HOROVOD];
    char text[RANKS_BYTES], other[RANKS_BYTES];
    rankset_text(ranks, text, sizeof text);
    struct stalled_ops *stalled = NULL;
    for (uint32_t i = 0; i < horovod->count && !stalled; i++)
        if (horovod->stalled[i].are_missing == are_missing &&
            !strcmp(rankset_text(&horovod->stalled[i].ranks, other, sizeof other), text))
            stalled = &horovod->stalled[i];
    if (!stalled && horovod->count < STALLS_MAX) {
        stalled = &horovod->stalled[horovod->count++];
        *stalled = (struct stalled_ops){.ranks = *ranks, .are_missing = are_missing};
        *ranks = (struct rankset){0};
        stalled->report = horovod->report;
        snprintf(stalled->name, sizeof stalled->name, "%s", name);
    }
    rankset_free(ranks);
    if (stalled)
        stalled->tensors += stalled->report == horovod->report;
    return 1;
}

/* "HorovodBroadcast_x [missing ranks: 1], x [missing ranks: 1]": only Horovod writes such lists. */
static int stalled_line(struct log_job *job, const char *text)
{
    static const char missing[] = " [missing ranks: ", ready[] = " [ready ranks: ";
    int result = 0;
    for (const char *begin = text; result >= 0;) {
        char name[NAME_BYTES];
        struct rankset ranks = {0};
        const char *of_missing = strstr(begin, missing), *of_ready = strstr(begin, ready);
        bool is_missing = of_missing && (!of_ready || of_missing < of_ready);
        const char *at = is_missing ? of_missing : of_ready;
        if (!at)
            break;
        copy_tensor_name(begin, at, name);
        begin = at + strlen(is_missing ? missing : ready);
        if (*name && parse_ranks(begin, &ranks))
            result = add_stalled(job, &ranks, is_missing, name);
        else
            rankset_free(&ranks);
    }
    return result;
}

/* "1: [tensor, tensor, ...]" behind "Missing ranks:". */
static int missing_line(struct log_job *job, const char *text)
{
    struct log_horovod *horovod = job->state[LOG_HOROVOD];
    char name[NAME_BYTES];
    struct rankset ranks = {0};
    const char *open = scan_find(text, ": [");
    const char *digits = open;
    while (digits && digits > text && isdigit((unsigned char)digits[-1]))
        digits--;
    if (!open || digits == open || (digits > text && !strchr(" >:", digits[-1]))) {
        horovod->open--;
        return 0;
    }
    size_t bytes = strcspn(open + 3, ",]");
    snprintf(name, sizeof name, "%.*s", (int)(bytes < NAME_BYTES ? bytes : NAME_BYTES - 1),
             open + 3);
    int result = 0;
    if (parse_ranks(digits, &ranks)) {
        horovod->open = LINES_BETWEEN;
        result = 1;
        if (!joins_report(horovod, rankset_next(&ranks, 0), name))
            return add_stalled(job, &ranks, true, name);
    }
    rankset_free(&ranks);
    return result;
}

static int read_horovod_line(struct log_job *job, const char *text, size_t bytes)
{
    struct log_horovod *horovod = job->state[LOG_HOROVOD];
    (void)bytes;
    horovod->report += scan_find(text, "waiting for remainder of ranks") != NULL;
    if (scan_find(text, "Missing ranks:")) {
        horovod->open = LINES_BETWEEN;
        return 1;
    }
    int result = stalled_line(job, text);
    if (!result && horovod->open && text[strspn(text, " \t")])
        result = missing_line(job, text);
    return result;
}

/* The ranks below the highest that is ready are there, so the others of them are missing. */
static void describe_unready(const struct stalled_ops *stalled, char *to, size_t bytes)
{
    struct rankset others = {0};
    char list[RANKS_BYTES];
    int highest = 0;
    for (int rank = rankset_next(&stalled->ranks, 0); rank >= 0;
         rank = rankset_next(&stalled->ranks, rank + 1))
        highest = rank;
    for (int rank = 0; rank < highest; rank++)
        if (!rankset_has(&stalled->ranks, rank) && rankset_add(&others, rank))
            break;
    if (rankset_count(&others))
        snprintf(to, bytes, "%s did not submit it in time (ranks above %d may be missing, too)",
                 rankset_words(&others, list, sizeof list), highest);
    else
        snprintf(to, bytes, "all others, above %d, did not submit it in time", highest);
    rankset_free(&others);
}

static int import_stalled(struct log_job *job, const struct stalled_ops *stalled)
{
    char what[MESSAGE_BYTES], list[RANKS_BYTES], tensors[64] = "", others[2 * RANKS_BYTES];
    bool one = rankset_count(&stalled->ranks) == 1;
    rankset_words(&stalled->ranks, list, sizeof list);
    if (stalled->tensors > 1)
        snprintf(tensors, sizeof tensors, " (the first of %u tensors)", stalled->tensors);
    if (stalled->are_missing) {
        snprintf(what, sizeof what, "%s did not submit %s%s in time: the others wait for %s", list,
                 stalled->name, tensors, one ? "it" : "them");
    } else {
        describe_unready(stalled, others, sizeof others);
        snprintf(what, sizeof what, "%s %s in %s%s: %s", list, one ? "waits" : "wait",
                 stalled->name, tensors, others);
    }
    int result = 1;
    for (int rank = rankset_next(&stalled->ranks, 0); rank >= 0 && result > 0;
         rank = rankset_next(&stalled->ranks, rank + 1))
        result = log_messages_add(job, (struct log_speaker){.rank = rank}, SAID_ERROR, "Horovod",
                                  what, todo_horovod);
    return result < 0 ? -1 : 0;
}

static int end_horovod(struct log_job *job)
{
    struct log_horovod *horovod = job->state[LOG_HOROVOD];
    int result = 0;
    for (uint32_t i = 0; i < horovod->count; i++) {
        if (!result)
            result = import_stalled(job, &horovod->stalled[i]);
        rankset_free(&horovod->stalled[i].ranks);
    }
    return result;
}

const struct log_reader log_horovod = {sizeof(struct log_horovod), read_horovod_line, end_horovod};

/* --- XLA --- */

/* "This thread has been waiting for `...` for 20 seconds and may be stuck. Expected 8 threads ...".
 * It counts unless XLA takes it back. */
static int read_xla_line(struct log_job *job, const char *text, size_t bytes)
{
    struct log_xla *xla = job->state[LOG_XLA];
    (void)bytes;
    const char *found = scan_find(text, "This thread has been waiting for `");
    bool is_unstuck = scan_find(text, "Thread is unstuck!") != NULL;
    bool ends = scan_find(text, "Termination timeout for `") != NULL;
    if (!is_unstuck && !ends && (!found || !strstr(found, "may be stuck")))
        return 0;
    xla->is_unstuck = is_unstuck;
    xla->stuck |= !is_unstuck;
    if (ends || (found && !*xla->what))
        snprintf(xla->what, sizeof xla->what, "%s",
                 ends ? scan_find(text, "Termination timeout for `") : found);
    return 1;
}

static int end_xla(struct log_job *job)
{
    const struct log_xla *xla = job->state[LOG_XLA];
    if (!xla->stuck)
        return 0;
    int result = log_messages_add(job, LOG_NOBODY, xla->is_unstuck ? SAID_NOTE : SAID_ERROR, "XLA",
                                  xla->what, xla->is_unstuck ? "It went on later." : todo_xla);
    return result < 0 ? -1 : 0;
}

const struct log_reader log_xla = {sizeof(struct log_xla), read_xla_line, end_xla};
