/* engine.c: the analyzer: takes records and hands them to the model and the checks. */
#include "analyzer/feed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/hang/dormant.h"
#include "analyzer/match/channel.h"
#include "analyzer/model/exact.h"
#include "analyzer/model/comm.h"
#include "analyzer/findings.h"
#include "analyzer/states.h"
#include "analyzer/ticks.h"
#include "analyzer/loop/payloads.h"
#include "analyzer/model/order.h"
#include "analyzer/model/process.h"
#include "analyzer/hazard/hazards.h"
#include "analyzer/hang/waits.h"
#include "analyzer/speed/gaps.h"
#include "analyzer/speed/speed.h"
#include "lib/trace/names.h"

enum { PROCESSES_MAX = 1 << 20 };

/* Whether a check can be right about processes of which there are some records only. */
static bool judges_parts(const struct check *check)
{
    return check->scope != SCOPE_PROCESS && check->family != FAMILY_SPEED &&
           check->family != FAMILY_TRAINING;
}

static void list_handlers(struct analyzer *analyzer)
{
    for (int kind = 0; kind < EVENT_KINDS; kind++) {
        event_handler **next = analyzer->handlers[kind];
        for (int i = 0; i < CHECK_COUNT; i++)
            if (checks[i]->on[kind] && (!analyzer->options.only_job || judges_parts(checks[i])))
                *next++ = checks[i]->on[kind];
        *next = NULL;
    }
}

struct analyzer *analyzer_new(const struct analyzer_options *options)
{
    struct analyzer *analyzer = calloc(1, sizeof *analyzer);
    if (!analyzer)
        return NULL;
    if (options)
        analyzer->options = *options;
    if (!analyzer->options.hang_after_ns)
        analyzer->options.hang_after_ns = HANG_AFTER_NS;
    analyzer->wait_graph_empty = true;
    analyzer->round = 1; /* in which no host has ticked */
    list_handlers(analyzer);
    states_plan(analyzer, checks);
    return analyzer;
}

static void free_process(const struct analyzer *analyzer, struct process *process)
{
    if (!process)
        return;
    for (struct thread *thread = process->threads; thread; thread = thread->hh.next)
        states_free(analyzer, OWNER_THREAD, &thread->states);
    states_free(analyzer, OWNER_PROCESS, &process->states);
    hazards_free(process->hazards);
    process_free(process);
}

static void free_member(const struct analyzer *analyzer, struct member *member)
{
    clock_free(&member->before_last);
    free(member->empties);
    states_free(analyzer, OWNER_MEMBER, &member->states);
    free(member);
}

void analyzer_free(struct analyzer *analyzer)
{
    if (!analyzer)
        return;
    wait_graph_forget(analyzer);
    HASH_CLEAR(hh, analyzer->comms);
    for (struct comm *comm = analyzer->first_comm, *next; comm; comm = next) {
        next = comm->next;
        for (uint32_t i = 0; i < comm->members; i++)
            free_member(analyzer, comm->member[i]);
        states_free(analyzer, OWNER_COMM, &comm->states);
        comm_free(comm);
    }
    channels_free(analyzer);
    speed_free(analyzer->speed);
    dormant_free(analyzer);
    states_free(analyzer, OWNER_JOB, &analyzer->states);
    findings_free(analyzer);
    for (int i = 0; i < analyzer->processes; i++)
        free_process(analyzer, analyzer->process[i]);
    free(analyzer->process);
    struct rank_process *rank, *next_rank;
    HASH_ITER(hh, analyzer->rank_processes, rank, next_rank) {
        HASH_DEL(analyzer->rank_processes, rank);
        free(rank);
    }
    struct host *host, *next_host;
    HASH_ITER(hh, analyzer->hosts, host, next_host) {
        HASH_DEL(analyzer->hosts, host);
        free(host);
    }
    free(analyzer);
}

int analyzer_add_process(struct analyzer *analyzer, int process, const struct process_info *info)
{
    if (process < 0 || process >= PROCESSES_MAX) {
        errno = ENOMEM;
        return -1;
    }
    if (process >= analyzer->processes) {
        struct process **grown = realloc(analyzer->process, ((size_t)process + 1) * sizeof(*grown));
        if (!grown)
            return -1;
        for (int i = analyzer->processes; i <= process; i++)
            grown[i] = NULL;
        analyzer->process = grown;
        analyzer->processes = process + 1;
    }
    if (analyzer->process[process])
        return 0;
    wait_graph_forget(analyzer);
    analyzer->process[process] = process_new(analyzer, process, info);
    return analyzer->process[process] ? 0 : -1;
}

void engine_handle(struct analyzer *analyzer, enum event_kind kind, struct process *process,
                   struct thread *thread, const struct record *record)
{
    const struct event event = {
        .kind = kind, .process = process, .thread = thread, .record = record};
    event_handle(analyzer, &event);
}

void engine_handle_setup(struct analyzer *analyzer, struct process *process,
                         const struct record *record, struct member *member)
{
    const struct event event = {
        .kind = EVENT_SETUP, .process = process, .record = record, .member = member};
    event_handle(analyzer, &event);
}

void engine_handle_call(struct analyzer *analyzer, struct thread *thread,
                        const struct record *record)
{
    engine_handle(analyzer, EVENT_CALL, thread->process, thread, record);
}

static void feed(struct analyzer *analyzer, struct process *process, const struct record *record)
{
    enum api_class class = api_class_of(record->api);
    if (class == CLASS_NONE || record->phase > RECORD_LEAVE) {
        analyzer->skipped++;
        return;
    }
    if (record->api != API_notice_tick) {
        analyzer->changes++;
        wait_graph_forget(analyzer);
    }
    bool is_active = record_shows_activity(record);
    if (record->serial && is_active && process->last_ns < record_realtime(process, record))
        process->last_ns = record_realtime(process, record);
    if (process->now < record->serial) {
        process->jumps += process->now && record->serial > process->now + 1;
        process->now = record->serial;
    }
    process->now_ns = record_realtime(process, record);
    if (class == CLASS_NOTICE) {
        notices_feed(analyzer, process, record);
        return;
    }
    struct thread *thread = process_thread(process, record->thread);
    if (!thread) {
        analyzer->failed = true;
        return;
    }
    if (class == CLASS_COLLECTIVE || class == CLASS_P2P)
        process->last_operation = process->now;
    if (is_active)
        thread->last_ns = record_realtime(process, record);
    thread->has_ended = false; /* another may get the number of one that ended */
    /* A watchdog's loop says nothing of where the rank is. */
    if (record_is_loop(record) && !thread->uses_nccl)
        return;
    if (!analyzer->options.only_job)
        speed_host_call(analyzer, thread, record);
    if (record->phase == RECORD_ENTER) {
        calls_enter(analyzer, thread, record, class);
        if (record->flags & RECORD_FLAG_OVER)
            calls_leave_imported(analyzer, thread, record, class);
    } else if (record->phase == RECORD_LEAVE) {
        calls_leave(analyzer, thread, record, class);
    } else {
        calls_point(analyzer, thread, record, class);
    }
}

/* 0, or -1 with errno = ENOMEM if memory was short since analyzer->failed was cleared. */
static int result_of(const struct analyzer *analyzer)
{
    if (!analyzer->failed)
        return 0;
    errno = ENOMEM;
    return -1;
}

/* What the record showed to be done. Of the last calls alone no time can be judged. */
static void hand_on_passed(struct analyzer *analyzer, struct process *process)
{
    for (uint32_t i = 0; i < process->passed_count && !analyzer->options.only_job; i++)
        speed_passed(analyzer, &process->passed[i]);
    process->passed_count = 0;
    analyzer->failed |= process->passed_short;
    process->passed_short = false;
}

int analyzer_feed(struct analyzer *analyzer, int process, const struct record *record)
{
    analyzer->failed = false;
    if (process < 0 || process >= analyzer->processes || !analyzer->process[process])
        analyzer->skipped++;
    else
        feed(analyzer, analyzer->process[process], record);
    if (process >= 0 && process < analyzer->processes && analyzer->process[process])
        hand_on_passed(analyzer, analyzer->process[process]);
    return result_of(analyzer);
}

static int judge_waits(struct analyzer *analyzer, enum moment moment)
{
    analyzer->failed = false;
    ticks_judge(analyzer, moment);
    return result_of(analyzer);
}

int analyzer_catch_up(struct analyzer *analyzer)
{
    return judge_waits(analyzer, MOMENT_TICK);
}

int analyzer_break_off(struct analyzer *analyzer)
{
    return judge_waits(analyzer, MOMENT_ENDING);
}

/* Of processes whose end was not recorded. */
static void end_exact_times(struct analyzer *analyzer)
{
    for (int i = 0; i < analyzer->processes; i++)
        if (analyzer->process[i]) {
            exact_end(analyzer->process[i]);
            hand_on_passed(analyzer, analyzer->process[i]);
        }
}

int analyzer_finish(struct analyzer *analyzer)
{
    if (analyzer->finished)
        return 0;
    analyzer->finished = true;
    analyzer->failed = false;
    end_exact_times(analyzer);
    ticks_judge(analyzer, MOMENT_FINAL);
    payloads_finish(analyzer);
    speed_judge(analyzer, true);
    const struct event event = {.kind = EVENT_FINISH};
    event_handle(analyzer, &event);
    findings_flush(analyzer);
    return result_of(analyzer);
}

uint64_t analyzer_skipped(const struct analyzer *analyzer)
{
    return analyzer->skipped;
}
