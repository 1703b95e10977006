/* report_stacks.c: groups the stacks that the threads of a hanging job had in common. */
#include "cmd/report/report_stacks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/report/report_model.h"
#include "lib/base/array.h"
#include "lib/trace/names.h"
#include "lib/trace/site.h"

enum { CALLERS = 1024, PLACE_COLUMNS = 60, NAME_BYTES = 192 };

static struct caller *caller_of(const struct standings *standings, int process, uint32_t thread)
{
    return &standings->caller[(thread * 0x9e3779b1u + (unsigned)process * 0x85ebca6bu) >> 16 &
                              (CALLERS - 1)];
}

/* The rank that a call is made for; false: for none, or several. */
static bool find_caller(int process, const struct record *record, struct caller *caller)
{
    switch (api_class_of(record->api)) {
    case CLASS_COLLECTIVE:
    case CLASS_P2P:
        *caller = (struct caller){process, record->thread, record->op.comm, record->op.rank, false};
        return true;
    case CLASS_COMM:
        *caller =
            (struct caller){process, record->thread, record->comm.comm, record->comm.rank, false};
        return record->comm.comm && record->comm.rank >= 0;
    default:
        return false;
    }
}

void standings_note_call(struct standings *standings, int process, const struct record *record)
{
    struct caller now;
    if (!find_caller(process, record, &now))
        return;
    if (!standings->caller && !(standings->caller = calloc(CALLERS, sizeof *standings->caller))) {
        standings->failed = true;
        return;
    }
    struct caller *caller = caller_of(standings, process, record->thread);
    bool same = caller->process == process && caller->thread == record->thread;
    bool other_rank = same && caller->comm == now.comm && caller->rank != now.rank;
    now.several = other_rank || (same && caller->several);
    *caller = now;
}

void standings_end(struct standings *standings)
{
    int kept = 0;
    for (int i = 0; i < standings->count && standings->has_older; i++)
        if (standings->standing[i].capture >= standings->newest[standings->standing[i].process])
            standings->standing[kept++] = standings->standing[i];
    if (standings->has_older)
        standings->count = kept;
    standings->has_older = false;
}

/* False: memory is short. */
static bool note_capture(struct standings *standings, int process, uint64_t capture)
{
    if (!ARRAY_RESERVE(standings->newest, standings->processes, process + 1))
        return false;
    uint64_t *newest = &standings->newest[process];
    standings->has_older |= *newest && *newest != capture;
    if (*newest < capture)
        *newest = capture;
    return true;
}

void standings_note(struct standings *standings, int process, const struct record *record,
                    uint64_t time_ns)
{
    bool has_room = note_capture(standings, process, record->standing.capture);
    if (has_room && (size_t)standings->count == standings->space) {
        standings_end(standings); /* rather than grow for what is dropped anyway */
        size_t wanted = 2 * (size_t)standings->count + 1;
        has_room = ARRAY_RESERVE(standings->standing, standings->space, wanted);
    }
    if (!has_room) {
        standings->failed = true;
        return;
    }
    standings->standing[standings->count++] =
        (struct report_standing){.process = process,
                                 .thread = record->standing.thread,
                                 .capture = record->standing.capture,
                                 .stack = record->stack,
                                 .name = record->standing.name,
                                 .time_ns = time_ns,
                                 .flags = record->standing.flags,
                                 .syscall = record->standing.syscall,
                                 .holder = record->standing.holder};
}

static bool append_callers(struct standings *standings, const struct caller *caller,
                           const int *process)
{
    if (!standings->caller && !(standings->caller = calloc(CALLERS, sizeof *standings->caller)))
        return false;
    for (int i = 0; i < CALLERS; i++) {
        struct caller moved = caller[i];
        if (!moved.comm)
            continue; /* nobody */
        moved.process = process[moved.process];
        *caller_of(standings, moved.process, moved.thread) = moved;
    }
    return true;
}

void standings_append(struct standings *standings, const struct standings *more, const int *process)
{
    if (!ARRAY_RESERVE(standings->standing, standings->space, standings->count + more->count) ||
        (more->caller && !append_callers(standings, more->caller, process))) {
        standings->failed = true;
        return;
    }
    for (int i = 0; i < more->count; i++) {
        struct report_standing moved = more->standing[i];
        moved.process = process[moved.process];
        standings->standing[standings->count++] = moved;
    }
}

static int compare_standings(const void *left, const void *right)
{
    const struct report_standing *a = left, *b = right;
    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns ? -1 : 1;
    if (a->process != b->process)
        return a->process < b->process ? -1 : 1;
    return (a->thread > b->thread) - (a->thread < b->thread);
}

void standings_sort(struct standings *standings)
{
    if (standings->count)
        qsort(standings->standing, (size_t)standings->count, sizeof *standings->standing,
              compare_standings);
}

void standings_free(struct standings *standings)
{
    free(standings->standing);
    free(standings->caller);
    free(standings->newest);
    *standings = (struct standings){0};
}

char *standing_called(const struct report *report, const struct report_standing *standing,
                      char *text, size_t bytes)
{
    struct frame *frame = malloc(SITE_FRAMES_MAX * sizeof *frame);
    int count = frame ? trace_frames(report->trace, standing->process, standing->stack, false,
                                     frame, SITE_FRAMES_MAX)
                      : 0;
    char inside[NAME_BYTES];
    site_called(frame, count, text, bytes);
    if (*text && *site_inside_nccl(frame, count, inside, sizeof inside))
        snprintf(text + strlen(text), bytes - strlen(text), ", inside NCCL: %s", inside);
    free(frame);
    return text;
}

/* The process's rank; else the one whose operations the thread calls; else those of all members in
 * the process. */
static bool add_stack_ranks(const struct report *report, const struct report_standing *standing,
                            struct rankset *ranks)
{
    int rank = report->rank[standing->process];
    bool found = false;
    if (rank >= 0)
        return rankset_add(ranks, rank) == 0;
    const struct caller *caller =
        report->standings.caller
            ? caller_of(&report->standings, standing->process, standing->thread)
            : NULL;
    bool own = caller && caller->process == standing->process &&
               caller->thread == standing->thread && !caller->several;
    for (int i = 0; i < report->members; i++) {
        const struct member_state *member = &report->member[i];
        if (member->process == standing->process &&
            (!own || (member->comm == caller->comm && member->rank == caller->rank)))
            found = rankset_add(ranks,
                                member->shown_rank >= 0 ? member->shown_rank : member->rank) == 0;
    }
    return found;
}

static const struct report_standing *find_thread(const struct standings *standings, int process,
                                                 uint32_t thread)
{
    for (int i = 0; i < standings->count; i++)
        if (standings->standing[i].process == process && standings->standing[i].thread == thread)
            return &standings->standing[i];
    return NULL;
}

/* " in cudaStreamSynchronize at train.c:88" */
static void write_place(const struct report *report, const struct report_standing *standing,
                        FILE *out)
{
    char called[WHERE_BYTES], place[WHERE_BYTES];
    struct frame *frame = malloc(SITE_FRAMES_MAX * sizeof *frame);
    int count = frame ? site_frames(report->trace, standing->process, standing->stack, false, frame)
                      : 0;
    int at = site_user_frame(frame, count);
    if (*standing_called(report, standing, called, sizeof called))
        fprintf(out, " in %s", called);
    if (at >= 0)
        fprintf(out, " at %s", frame_place(&frame[at], PLACE_COLUMNS, place, sizeof place));
    free(frame);
}

static void write_holder(const struct report *report, const struct report_standing *standing,
                         FILE *out)
{
    struct rankset ranks = {0};
    const struct report_standing *holder =
        find_thread(&report->standings, standing->process, standing->holder);
    if (standing->holder == standing->thread) {
        fputs(", for a lock that it holds itself", out);
        return;
    }
    if (!holder) {
        fprintf(out, ", for a lock that thread %u holds", standing->holder);
        return;
    }
    /* Where no launcher gave the process a rank its threads may be ranks. */
    bool of_one = add_stack_ranks(report, holder, &ranks) && rankset_count(&ranks) == 1 &&
                  trace_process(report->trace, standing->process)->rank < 0;
    if (of_one)
        fprintf(out, ", for a lock that the thread of rank %d holds,", rankset_next(&ranks, 0));
    else
        fputs(", for a lock that another thread holds,", out);
    write_place(report, holder, out);
    rankset_free(&ranks);
}

char *standing_waits_in(const struct report *report, const struct report_standing *standing,
                        char *text, size_t bytes)
{
    standing_called(report, standing, text, bytes);
    if (!standing->holder || strcmp(text, "pthread_mutex_lock"))
        return text;
    size_t used = strlen(text);
    FILE *out = fmemopen(text + used, bytes - used, "w");
    if (out) {
        write_holder(report, standing, out);
        fclose(out);
    }
    text[bytes - 1] = '\0';
    return text;
}

/* What distinguishes two stacks: the program's own frames, and the call that the thread is in. */
static char *stack_text(const struct report *report, const struct report_standing *standing)
{
    struct frame *frame = malloc(SITE_FRAMES_MAX * sizeof *frame);
    char *text = NULL, called[256];
    size_t bytes;
    FILE *out = frame ? open_memstream(&text, &bytes) : NULL;
    if (out) {
        int count = site_frames(report->trace, standing->process, standing->stack, false, frame);
        for (int i = 0; i < count; i++)
            if (frame[i].function[0])
                fprintf(out, "%s %s:%d\n", frame[i].function, frame[i].file, frame[i].line);
            else
                fprintf(out, "%s+%llx\n", frame[i].module,
                        frame[i].module[0] ? 0 : (unsigned long long)frame[i].address);
        fprintf(out, "%s %u", standing_waits_in(report, standing, called, sizeof called),
                standing->flags & RECORD_THREAD_MAIN);
        fclose(out);
    }
    free(frame);
    return text;
}

static int compare_groups(const void *a, const void *b)
{
    const uint32_t own = RECORD_THREAD_MAIN | RECORD_THREAD_CALLS;
    const struct stack_group *x = a, *y = b;
    int own_x = (x->first->flags & own) != 0, own_y = (y->first->flags & own) != 0;
    if (own_x != own_y)
        return own_y - own_x;
    if (x->threads != y->threads)
        return y->threads - x->threads;
    return rankset_next(&x->ranks, 0) - rankset_next(&y->ranks, 0);
}

int stack_groups(const struct report *report, struct stack_group **result)
{
    const struct standings *standings = &report->standings;
    int count = 0;
    struct stack_group *groups = calloc(standings->count + 1, sizeof *groups);
    char **texts = calloc(standings->count + 1, sizeof *texts);
    *result = groups;
    for (int i = 0; i < standings->count && groups && texts; i++) {
        const struct report_standing *standing = &standings->standing[i];
        char *text = stack_text(report, standing);
        int at = 0;
        while (text && at < count && strcmp(texts[at], text))
            at++;
        if (!text)
            break;
        if (at == count) {
            texts[count] = strdup(text);
            groups[count++] = (struct stack_group){.first = standing, .known_ranks = true};
        }
        free(text);
        if (!texts[at])
            break;
        groups[at].threads++;
        groups[at].known_ranks &= add_stack_ranks(report, standing, &groups[at].ranks);
    }
    for (int i = 0; i < count && texts; i++)
        free(texts[i]);
    free(texts);
    if (groups)
        qsort(groups, count, sizeof *groups, compare_groups);
    return count;
}

void stack_groups_free(struct stack_group *groups, int count)
{
    for (int i = 0; i < count; i++)
        rankset_free(&groups[i].ranks);
    free(groups);
}

/* How well a thread stands for the side's ranks: 0 not at all. */
static int fits(const struct report *report, const struct report_standing *standing,
                const struct finding_side *side)
{
    struct rankset ranks = {0};
    if (standing->process != side->process)
        return 0;
    bool known = add_stack_ranks(report, standing, &ranks);
    int rank = rankset_next(&ranks, 0);
    bool own = known && rankset_count(&ranks) == 1 && rankset_has(&side->ranks, rank);
    bool shared = known && rankset_has(&side->ranks, rank) && standing->flags & RECORD_THREAD_CALLS;
    bool is_main = standing->flags & RECORD_THREAD_MAIN;
    rankset_free(&ranks);
    return own ? 2 + is_main : is_main && shared;
}

/* The same for ranks that may be threads which have not come to the set-up yet. */
static int fits_unknown(const struct report *report, const struct report_standing *standing,
                        const struct finding_side *side)
{
    char called[WHERE_BYTES];
    if (standing->process != side->process || standing->flags & RECORD_THREAD_MAIN ||
        strstr(standing_called(report, standing, called, sizeof called), "ncclCommInit"))
        return 0;
    return 1 + !!(standing->flags & RECORD_THREAD_CALLS) + 2 * (standing->holder != 0);
}

/* The thread that stands best for the side's ranks; NULL: none does. */
static const struct report_standing *standing_of_side(const struct report *report,
                                                      const struct finding_side *side)
{
    const struct report_standing *found = NULL;
    int best = 0;
    for (int i = 0; i < report->standings.count; i++) {
        const struct report_standing *standing = &report->standings.standing[i];
        int fit = side->now.did == DID_MAY_BE_THREAD ? fits_unknown(report, standing, side)
                                                     : fits(report, standing, side);
        if (fit > best) {
            best = fit;
            found = standing;
        }
    }
    return found;
}

uint64_t stack_of_where(const struct report *report, const struct finding_side *side,
                        bool *is_address)
{
    const struct report_standing *standing = side->where_stack ? NULL
                                                               : standing_of_side(report, side);
    *is_address = !standing && side->where_stack_is_address;
    return standing ? standing->stack : side->where_stack;
}

const char *where_of_side(const struct report *report, const struct finding_side *side, char *text,
                          size_t bytes)
{
    char called[WHERE_BYTES];
    bool is_elsewhere = side->now.did == DID_RUNNING || side->now.did == DID_MAY_BE_THREAD;
    const struct report_standing *standing =
        is_elsewhere && !side->where_stack ? standing_of_side(report, side) : NULL;
    if (!standing || !*standing_waits_in(report, standing, called, sizeof called))
        return side->where;
    snprintf(text, bytes, "in %s", called);
    return text;
}
