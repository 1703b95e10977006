/* engine.c: the analyzer: takes records and hands them to the model and the checks. */
#include "analyzer/feed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/hang/dormant.h"
#include "analyzer/hang/ends.h"
#include "analyzer/model/exact.h"
#include "analyzer/model/comm.h"
#include "analyzer/findings.h"
#include "analyzer/forgotten.h"
#include "analyzer/states.h"
#include "analyzer/ticks.h"
#include "analyzer/loop/payloads.h"
#include "analyzer/model/order.h"
#include "analyzer/model/process.h"
#include "analyzer/hang/waits.h"
#include "analyzer/speed/speed.h"
#include "lib/trace/names.h"

enum { PROCESSES_MAX = 1 << 20 };

/* Whether a check can be right about processes with only a part of their records. */
static bool judges_parts(const struct check *check)
{
    return check->scope != SCOPE_PROCESS && code_family(check->code) != FAMILY_SPEED &&
           code_family(check->code) != FAMILY_TRAINING;
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
    analyzer->rounds.number = 1; /* in which no host has ticked */
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
    process_slots_free(&process->slot);
    process_free(process);
}

static void free_comms(struct analyzer *analyzer)
{
    for (int i = 0; i < analyzer->processes; i++)
        if (analyzer->process[i])
            HASH_CLEAR(hh, analyzer->process[i]->own.table);
    HASH_CLEAR(hh, analyzer->comms);
    for (struct comm *comm = analyzer->first_comm, *next; comm; comm = next) {
        next = comm->next;
        forgotten_free_comm(analyzer, comm);
    }
    free(analyzer->watched.comm);
    forgotten_free(analyzer);
}

void analyzer_free(struct analyzer *analyzer)
{
    if (!analyzer)
        return;
    wait_graph_forget(analyzer);
    free_comms(analyzer);
    job_slots_free(&analyzer->slot);
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
    analyzer->lacks |= info->lacks;
    analyzer->process[process] = process_new(analyzer, process, info);
    return analyzer->process[process] ? 0 : -1;
}

void analyzer_shift_process(struct analyzer *analyzer, int process, int64_t shift_ns)
{
    struct process *shifted =
        process >= 0 && process < analyzer->processes ? analyzer->process[process] : NULL;
    if (!shifted)
        return;
    shifted->offset_ns += (uint64_t)shift_ns;
    shifted->info.realtime_ns += (uint64_t)shift_ns;
}

/* What is known of the process from each of its records. */
static void note_times(struct process *process, const struct event *event)
{
    const struct record *record = event->record;
    uint64_t time_ns = event->site.time_ns;
    if (record->serial && record_shows_activity(record) && process->last_ns < time_ns)
        process->last_ns = time_ns;
    if (process->now < record->serial) {
        process->lost.jumps += process->now && record->serial > process->now + 1;
        process->now = record->serial;
    }
    process->now_ns = time_ns;
}

static void feed(struct analyzer *analyzer, struct process *process, const struct record *record)
{
    struct event event = {.class = api_class_of(record->api),
                          .process = process,
                          .site = {.process = process,
                                   .stack = record->stack,
                                   .time_ns = record_realtime(process, record),
                                   .stack_is_address = record->flags & RECORD_FLAG_ADDRESS},
                          .record = record};
    if (event.class == CLASS_NONE || record->phase > RECORD_LEAVE) {
        analyzer->skipped++;
        return;
    }
    ticks_give_up(analyzer, &event);
    if (record->api != API_notice_tick) {
        analyzer->changes++;
        wait_graph_forget(analyzer);
    }
    note_times(process, &event);
    if (event.class == CLASS_NOTICE)
        notices_feed(&event);
    else if (process_find_thread(&event))
        analyzer->failed = true;
    else
        calls_feed(&event);
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
    for (uint32_t i = 0; i < process->passed.count && !analyzer->options.only_job; i++)
        speed_passed(analyzer, &process->passed.operation[i]);
    process->passed.count = 0;
    analyzer->failed |= process->passed.is_short;
    process->passed.is_short = false;
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
    for (struct comm *comm = analyzer->first_comm; comm; comm = comm->next)
        payloads_finish(analyzer, comm);
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
