/* process.c: creates processes and threads, and hands each record to what it concerns. */
#include "analyzer/model/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/model/callbacks.h"
#include "analyzer/model/dead_streams.h"
#include "analyzer/model/devices.h"
#include "analyzer/model/memory.h"
#include "analyzer/model/order.h"
#include "analyzer/model/progress.h"
#include "lib/base/invariant.h"
#include "lib/trace/lacks.h"

enum {
    STRINGS_MAX = 16384, /* of one process; the one not used for longest goes (a range per iteration
                            is common) */
    STRING_BYTES_MAX = 4096
};

uint64_t record_realtime(const struct process *process, const struct record *record)
{
    uint64_t time_ns = record->time_ns + process->offset_ns;
    return process->info.lacks & LACKS_TIMING && time_ns < LACKS_TIME_BEGINS ? 0 : time_ns;
}

static struct host *host_find(struct analyzer *analyzer, const char boot_id[])
{
    struct host key = {0}, *host;
    snprintf(key.boot_id, sizeof key.boot_id, "%.*s", (int)sizeof key.boot_id - 1, boot_id);
    TABLE_FIND(analyzer->hosts, &key.boot_id, host);
    if (host || !(host = calloc(1, sizeof *host)))
        return host;
    memcpy(host->boot_id, key.boot_id, sizeof host->boot_id);
    TABLE_ADD(analyzer->hosts, boot_id, host);
    if (TABLE_ADDED(host))
        return host;
    free(host);
    return NULL;
}

/* Of two that have the rank: what a rank starts has its variables, and may come first. */
static bool is_rather_rank(const struct process *process, const struct process *known)
{
    if (process->info.restart != known->info.restart)
        return process->info.restart > known->info.restart;
    return !known->member_count && (process->member_count || known->ended);
}

static int add_rank_process(struct analyzer *analyzer, struct process *process, int rank,
                            int world_size)
{
    struct rank_process key = {.key = {rank, world_size}}, *known;
    TABLE_FIND(analyzer->rank_processes, &key.key, known);
    if (known) {
        if (is_rather_rank(process, known->process))
            known->process = process;
        return 0;
    }
    if (!(known = calloc(1, sizeof *known)))
        return -1;
    known->key = key.key;
    known->process = process;
    TABLE_ADD(analyzer->rank_processes, key, known);
    if (TABLE_ADDED(known))
        return 0;
    free(known);
    return -1;
}

struct process *process_of_rank(struct analyzer *analyzer, int rank, int world_size)
{
    struct rank_process key = {.key = {rank, world_size}}, *known;
    TABLE_FIND(analyzer->rank_processes, &key.key, known);
    return known ? known->process : NULL;
}

struct process *process_new(struct analyzer *analyzer, int index, const struct process_info *info)
{
    struct host *host = host_find(analyzer, info->boot_id);
    struct process *process = host ? calloc(1, sizeof *process) : NULL;
    if (!process)
        return NULL;
    process->analyzer = analyzer;
    process->index = index;
    process->info = *info;
    if (info->rank >= MEMBERS_MAX) /* of a damaged trace, or of nobody's launcher */
        process->info.rank = -1;
    process->offset_ns = info->realtime_ns - info->monotonic_ns;
    process->host = host;
    if (add_rank_process(analyzer, process, process->info.rank, info->world_size)) {
        free(process);
        return NULL;
    }
    process->host_next = host->processes;
    host->processes = process;
    return process;
}

bool process_has_communicator(const struct process *process)
{
    return process->has_communicator;
}

int process_assume_rank(struct analyzer *analyzer, struct process *process, int rank, int nranks)
{
    if (process->info.rank >= 0)
        return add_rank_process(analyzer, process, process->info.rank, process->info.world_size);
    return process_has_communicator(process) ? 0
                                             : add_rank_process(analyzer, process, rank, nranks);
}

static void thread_free(struct thread *thread)
{
    clock_free(&thread->waits_for);
    free(thread->group);
    free(thread->setup);
    free(thread->range);
    free(thread->states); /* checks keep nothing of their own in it */
    free(thread);
}

void process_free(struct process *process)
{
    if (!process)
        return;
    struct thread *thread, *next_thread;
    HASH_ITER(hh, process->threads, thread, next_thread) {
        HASH_DEL(process->threads, thread);
        thread_free(thread);
    }
    struct interned *string, *next_string;
    HASH_ITER(hh, process->strings, string, next_string) {
        HASH_DEL(process->strings, string);
        free(string->text);
        free(string);
    }
    callbacks_free(process);
    order_free(process);
    progress_free(process);
    dead_streams_free(process);
    memory_free(process);
    devices_free(process);
    free(process->redops.ring);
    free(process);
}

/* Forgets the oldest thread that is in no call: programs that make a thread per task have many. */
static void drop_oldest_thread(struct process *process)
{
    struct thread *thread = process->threads;
    while (thread && thread->in_call)
        thread = thread->hh.next;
    if (!thread)
        return;
    for (struct member *member = process->members; member; member = member->process_next)
        for (uint32_t i = 0; i < member->issuers; i++)
            if (member->issuer[i] == thread) {
                member->issuer[i--] = member->issuer[--member->issuers];
                member->more_issuers = true;
            }
    callbacks_forget_thread(process, thread);
    HASH_DEL(process->threads, thread);
    if (process->last_thread == thread)
        process->last_thread = NULL;
    if (process->loop.thread == thread)
        process->loop.thread = NULL;
    thread_free(thread);
}

struct thread *process_thread(struct process *process, uint32_t tid)
{
    invariant(!process->last_thread || process->last_thread->process == process,
              "the thread that a process knows best is its own");
    if (process->last_thread && process->last_thread->tid == tid)
        return process->last_thread;
    struct thread *thread;
    TABLE_FIND(process->threads, &tid, thread);
    if (!thread) {
        if (HASH_COUNT(process->threads) >= THREADS_MAX)
            drop_oldest_thread(process);
        thread = calloc(1, sizeof *thread);
        if (!thread)
            return NULL;
        thread->tid = tid;
        thread->process = process;
        TABLE_ADD(process->threads, tid, thread);
        if (!TABLE_ADDED(thread)) {
            free(thread);
            return NULL;
        }
    }
    return process->last_thread = thread;
}

int process_find_thread(struct event *event)
{
    event->thread = process_thread(event->process, event->record->thread);
    if (!event->thread)
        return -1;
    event->site.phase = thread_phase(event->thread);
    return 0;
}

void thread_enter(const struct event *event)
{
    struct thread *thread = event->thread;
    struct analyzer *analyzer = event->process->analyzer;
    thread_leave(thread); /* its LEAVE was lost */
    thread->in_call = true;
    thread->enter = *event->record;
    thread->enter_site = event->site;
    thread->blocked_prev = NULL;
    thread->blocked_next = analyzer->blocked;
    if (analyzer->blocked)
        analyzer->blocked->blocked_prev = thread;
    analyzer->blocked = thread;
}

void thread_leave(struct thread *thread)
{
    struct analyzer *analyzer = thread->process->analyzer;
    if (!thread->in_call)
        return;
    invariant(thread->blocked_prev ? thread->blocked_prev->blocked_next == thread
                                   : analyzer->blocked == thread,
              "the analyzer lists the threads that are in a call");
    thread->in_call = false;
    clock_clear(&thread->waits_for);
    if (thread->blocked_prev)
        thread->blocked_prev->blocked_next = thread->blocked_next;
    else
        analyzer->blocked = thread->blocked_next;
    if (thread->blocked_next)
        thread->blocked_next->blocked_prev = thread->blocked_prev;
}

/* Puts a string that is used last in the order of eviction. */
static void touch_string(struct process *process, uint64_t id)
{
    struct interned *string;
    TABLE_FIND(process->strings, &id, string);
    if (!string)
        return;
    HASH_DEL(process->strings, string);
    TABLE_ADD(process->strings, id, string);
    if (!TABLE_ADDED(string)) { /* a name less is no reason to stop */
        free(string->text);
        free(string);
    }
}

struct range_meaning process_range_meaning(struct process *process, uint64_t text)
{
    if (HASH_COUNT(process->strings) > STRINGS_MAX / 2)
        touch_string(process, text);
    struct interned *string;
    TABLE_FIND(process->strings, &text, string);
    if (!string)
        return (struct range_meaning){0};
    if (!string->is_range) {
        string->is_range = true;
        string->meaning =
            range_meaning_of(string->text, process_string(process, process->loop.iteration_name));
    }
    return string->meaning;
}

void process_name_iterations(struct process *process, uint64_t text)
{
    process->loop.iteration_name = text;
    for (struct interned *string = process->strings; string; string = string->hh.next)
        string->is_range = false;
}

bool thread_may_issue(const struct thread *thread, const struct member *member)
{
    if (!thread->process->several_ranks || member->more_issuers)
        return true;
    for (uint32_t i = 0; i < member->issuers; i++)
        if (member->issuer[i] == thread)
            return true;
    return !member->issuers && (!member->creator || member->creator == thread->tid);
}

bool record_is_loop(const struct record *record)
{
    return record->api == API_cudaStreamQuery_loop || record->api == API_cudaEventQuery_loop;
}

struct site thread_site(const struct thread *thread, const struct record *record)
{
    return (struct site){
        .process = thread->process,
        .stack = record->stack,
        .stack_is_address = record->flags & RECORD_FLAG_ADDRESS,
        .phase = thread_phase(thread),
        .time_ns = record_realtime(thread->process, record),
    };
}

static void drop_oldest_string(struct process *process)
{
    struct interned *oldest = process->strings; /* uthash iterates in order of addition */
    HASH_DEL(process->strings, oldest);
    free(oldest->text);
    free(oldest);
}

static struct interned *string_new(struct process *process, uint64_t id, uint32_t bytes)
{
    if (HASH_COUNT(process->strings) >= STRINGS_MAX)
        drop_oldest_string(process);
    invariant(HASH_COUNT(process->strings) < STRINGS_MAX, "a process keeps STRINGS_MAX strings");
    struct interned *string = calloc(1, sizeof *string);
    char *text = calloc(1, (size_t)bytes + 1);
    if (string && text) {
        string->id = id;
        string->bytes = bytes;
        string->text = text;
        TABLE_ADD(process->strings, id, string);
        if (TABLE_ADDED(string))
            return string;
    }
    free(string);
    free(text);
    return NULL;
}

int process_add_string(struct event *event)
{
    struct process *process = event->process;
    const struct record *record = event->record;
    uint32_t bytes = record->string.bytes < STRING_BYTES_MAX ? record->string.bytes
                                                             : STRING_BYTES_MAX;
    uint32_t offset = record->string.offset;
    uint64_t id = record->string.id;
    struct interned *string;
    TABLE_FIND(process->strings, &id, string);
    if (!string && !(string = string_new(process, id, bytes)))
        return ENGINE_FAILED;
    if (offset > string->bytes)
        return record->string.offset >= record->string.bytes ? ENGINE_SKIPPED : ENGINE_OK;
    uint32_t piece = string->bytes - offset < sizeof record->string.text
                         ? string->bytes - offset
                         : (uint32_t)sizeof record->string.text;
    invariant(offset + piece <= string->bytes, "a piece of a string is inside of the string");
    memcpy(string->text + offset, record->string.text, piece);
    return ENGINE_OK;
}

bool process_is_recorded(const struct process *process)
{
    return !process->info.lacks || process->info.start_ticks;
}

const char *process_string(const struct process *process, uint64_t id)
{
    struct interned *string = NULL;
    if (id)
        TABLE_FIND(process->strings, &id, string);
    return string ? string->text : "";
}

uint64_t process_phase(const struct process *process)
{
    for (const struct thread *thread = process->threads; thread; thread = thread->hh.next)
        if (thread->uses_nccl && thread->ranges && thread->ranges <= THREAD_RANGES_MAX)
            return thread_phase(thread);
    return 0;
}

const char *site_phase(const struct site *site)
{
    return site->process ? process_string(site->process, site->phase) : "";
}

int process_shown_rank(const struct process *process)
{
    if (process->info.rank >= 0 && !process->several_ranks)
        return process->info.rank;
    if (process->top && !process->several_ranks)
        return process->top->top_rank;
    return process->member_count ? process->own.first_rank : process->info.rank;
}

int member_shown_rank(const struct member *member)
{
    const struct process *process = member->process;
    if (!process || process->several_ranks)
        return member->top_rank;
    if (process->info.rank >= 0)
        return process->info.rank;
    bool is_above = process->top && process->top->comm->nranks > member->comm->nranks;
    return is_above ? process->top->top_rank : member->top_rank;
}
