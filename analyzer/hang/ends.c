/* ends.c: decides which processes ended by themselves and which because another did. */
#include "analyzer/model/own_members.h"
#include "analyzer/model/comm.h"
#include "analyzer/hang/ends.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "analyzer/hang/waits.h"
#include "analyzer/model/exact.h"
#include "analyzer/model/process.h"
#include "lib/trace/cxx_name.h"
#include "lib/trace/lacks.h"
#include "lib/trace/names.h"

#define FOLLOW_NS \
    UINT64_C(60000000000) /* launchers give ranks 30 s between SIGTERM and SIGKILL \
                           */

#define ONE_LOOK_NS \
    UINT64_C(250000000) /* ends within that time may be noticed in another order \
                         */

enum { EXIT_BY_SIGNAL = 128 }; /* shells' way to say it in an exit status */

int ends_feed(struct event *event)
{
    struct process *process = event->process;
    const struct record *record = event->record;
    exact_end(process);
    if (record->end.how > END_UNKNOWN)
        return ENGINE_SKIPPED;
    if (process->ended)
        return ENGINE_OK;
    process->ended = true;
    process->end = *record;
    process->end_ns = event->site.time_ns;
    process->end_class = END_CLASS_PENDING;
    process->analyzer->ends_pending = true;
    for (struct member *member = process->members; member; member = member->process_next)
        comm_note_end(member->comm);
    return ENGINE_OK;
}

struct site end_last_call(const struct process *process)
{
    const struct thread *last = NULL;
    for (const struct thread *thread = process->threads; thread; thread = thread->hh.next)
        if (thread->enter_site.stack && (!last || thread->tid == (uint32_t)process->info.pid ||
                                         (last->tid != (uint32_t)process->info.pid &&
                                          thread->enter.serial > last->enter.serial)))
            last = thread;
    return last ? last->enter_site
                : (struct site){.process = process->analyzer->process[process->index]};
}

/* It handled an exception, and has issued operations since: that does not end it. */
static bool issued_since_exception(const struct process *process)
{
    return process->ending.has_exception && process->ending.exception_how == EXCEPTION_HANDLED &&
           process->ending.last_operation > process->ending.raised_at;
}

/* The shim can't demangle while the process ends. */
static void name_exception(struct process *process)
{
    static const char words[] = ABORT_EXCEPTION;
    const char *text = process_string(process, process->ending.exception);
    size_t length = strlen(words), bytes = strlen(text);
    char type[ABORT_EXCEPTION_BYTES];
    process->ending.cxx_exception[0] = '\0';
    if (process->ending.exception_how == EXCEPTION_ABORT && bytes < sizeof type &&
        !strncmp(text, words, length))
        snprintf(process->ending.cxx_exception, sizeof process->ending.cxx_exception, "%s%.*s",
                 words, (int)(sizeof type - sizeof words),
                 cxx_name_of_type(text + length, type, sizeof type));
}

int ends_except(struct event *event)
{
    struct process *process = event->process;
    const struct record *record = event->record;
    if (record->range.id > EXCEPTION_ABORT)
        return ENGINE_SKIPPED;
    process->ending.has_said_end |= record->range.id == EXCEPTION_ABORT;
    bool is_final = process->ending.has_exception &&
                    process->ending.exception_how != EXCEPTION_HANDLED;
    /* Of sys.exit() in an `except` block, which is recorded when the process exits. */
    bool is_reason = is_final && process->ending.exception_how == EXCEPTION_SHUTDOWN &&
                     record->range.id == EXCEPTION_HANDLED;
    if (process->ended || (is_final && !is_reason))
        return ENGINE_OK;
    bool was_handled = process->ending.has_exception && !issued_since_exception(process);
    process->ending.has_exception = true;
    if (!is_reason)
        process->ending.exception_how = (enum exception_how)record->range.id;
    if (was_handled && !is_reason && process->ending.exception_how == EXCEPTION_SHUTDOWN)
        return ENGINE_OK; /* Python shuts down because of what it handled before */
    process->ending.exception = record->range.text;
    name_exception(process);
    process->ending.raised_by = event->thread;
    process->ending.raised = record->range.id == EXCEPTION_SHUTDOWN ? end_last_call(process)
                                                                    : event->site;
    process->ending.raised.time_ns = event->site.time_ns;
    process->ending.raised_at = process->now;
    return ENGINE_OK;
}

int ends_exit(struct event *event)
{
    struct process *process = event->process;
    process->ending.has_said_end = true;
    if (issued_since_exception(process)) {
        process->ending.has_exception = false;
        process->ending.raised_by = NULL;
        process->ending.raised = (struct site){0};
    }
    bool is_last_call = process->ending.exception_how == EXCEPTION_SHUTDOWN &&
                        !end_exception(process);
    if (process->ending.raised_by && !(is_last_call && event->record->stack))
        return ENGINE_OK;
    process->ending.raised_by = event->thread;
    /* Python's shutdown has no line of the program: its last call has. */
    process->ending.raised = event->record->stack ? event->site : end_last_call(process);
    process->ending.raised.time_ns = event->site.time_ns;
    return ENGINE_OK;
}

bool member_gave_up(const struct member *member)
{
    const struct process *process = member->process;
    bool shuts_down = process->ending.has_exception &&
                      process->ending.exception_how == EXCEPTION_SHUTDOWN;
    return member->aborted && process->end_class == END_CLASS_CLEAN && !shuts_down;
}

bool process_is_ending(const struct process *process)
{
    return !process->ended && process->ending.has_exception &&
           process->ending.exception_how != EXCEPTION_HANDLED &&
           process->ending.exception_how != EXCEPTION_ABORT;
}

const char *end_exception(const struct process *process)
{
    const char *type =
        process->ending.has_exception ? process_string(process, process->ending.exception) : "";
    if (process->ending.has_exception && process->ending.cxx_exception[0])
        type = process->ending.cxx_exception;
    return *type ? type : NULL;
}

/* When it failed: an exception, or the call of exit(), comes before the end, which may take seconds
 * or be noticed late. */
uint64_t end_failed_ns(const struct process *process)
{
    bool was_uncaught = process->ending.has_exception &&
                        process->ending.exception_how == EXCEPTION_UNCAUGHT;
    bool is_known = was_uncaught || (process->ending.raised_by && !process->ending.has_exception);
    return is_known && process->ending.raised.time_ns < process->end_ns
               ? process->ending.raised.time_ns
               : process->end_ns;
}

/* What a rank started has the rank's variables from it, but makes no calls of NCCL. */
static bool is_helper(const struct process *process)
{
    const struct process_info *info = &process->info;
    for (const struct process *other = process->host->processes; other && info->rank >= 0;
         other = other->host_next)
        if (other != process && other->info.rank == info->rank &&
            other->info.restart == info->restart &&
            !strncmp(other->info.job, info->job, sizeof info->job) &&
            (other->member_count || other->last_ns))
            return true;
    return false;
}

bool end_is_of_rank(const struct process *process)
{
    bool is_seen = process->last_ns || end_is_uncaught(process);
    return process->member_count || (is_seen && !is_helper(process));
}

static bool is_clean(const struct process *process)
{
    return process->end.end.how == END_EXIT && process->end.end.value == 0;
}

static int signal_of(const struct process *process)
{
    int value = process->end.end.value;
    if (process->end.end.how == END_SIGNAL)
        return value;
    if (process->end.end.how == END_EXIT && value > EXIT_BY_SIGNAL && value < EXIT_BY_SIGNAL + 64)
        return value - EXIT_BY_SIGNAL;
    return 0;
}

bool end_is_interrupted(const struct process *process)
{
    static const char type[] = "KeyboardInterrupt";
    const char *exception = end_exception(process);
    return exception && !strncmp(exception, type, strlen(type));
}

bool end_is_uncaught(const struct process *process)
{
    return process->ending.has_exception && process->ending.exception_how == EXCEPTION_UNCAUGHT &&
           !end_is_interrupted(process);
}

/* As people, schedulers and launchers ask a program to end. */
static bool was_asked_to_end(const struct process *process)
{
    int number = signal_of(process);
    return number == SIGINT || number == SIGTERM || number == SIGHUP;
}

/* Ctrl-C is the user's own. */
bool end_was_terminated(const struct process *process)
{
    return process->end.end.how == END_SIGNAL && !end_is_uncaught(process) &&
           was_asked_to_end(process) && process->end.end.value != SIGINT;
}

static bool from_outside(const struct process *process)
{
    return !process->end.end.oom && !end_is_uncaught(process) &&
           (was_asked_to_end(process) || signal_of(process) == SIGKILL);
}

/* Processes of one job: the same launcher's, or members of a communicator. */
static bool same_job(const struct process *a, const struct process *b)
{
    if (a->info.restart != b->info.restart)
        return false;
    if (a->info.job[0] && !strncmp(a->info.job, b->info.job, sizeof a->info.job))
        return true;
    for (const struct member *mine = a->members; mine; mine = mine->process_next)
        if (own_member_first(b, mine->comm->id))
            return true;
    return !a->members || !b->members;
}

/* Both ended by signals from outside, `killed` by SIGKILL and `ended` by a softer one that
 * followed. */
static bool is_killed_before(const struct process *killed, const struct process *ended)
{
    return from_outside(killed) && from_outside(ended) && signal_of(killed) == SIGKILL &&
           signal_of(ended) != SIGKILL && killed->end_ns <= ended->end_ns + ONE_LOOK_NS &&
           ended->end_ns <= killed->end_ns + FOLLOW_NS;
}

static bool is_end_unknown(const struct process *process)
{
    return process->end.end.how != END_EXIT && process->end.end.how != END_SIGNAL;
}

bool end_is_failure(const struct process *process)
{
    if (!process->ended || process->info.lacks & LACKS_END)
        return false;
    if (end_is_uncaught(process))
        return !is_clean(process);
    return is_end_unknown(process) ? process_is_recorded(process) && !process->ending.has_said_end
                                   : !is_clean(process) && !was_asked_to_end(process);
}

bool end_is_terminated(const struct process *process)
{
    return process->ended && process->end_class == END_CLASS_CONSEQUENCE &&
           process->end.end.how == END_SIGNAL && process->end.end.value == SIGTERM;
}

/* What only says that something goes on is no failure, unless the program did not ask again. */
void ends_call(const struct event *event)
{
    struct failed_call *failed = &event->process->ending.failed_call;
    const struct record *record = event->record;
    enum api_class class = event->class;
    if (class == CLASS_QUERY && failed->result == RESULT_IN_PROGRESS)
        *failed = (struct failed_call){0};
    if (record->phase == RECORD_ENTER || !record->result || class == CLASS_QUERY ||
        record->result == RESULT_NOT_READY)
        return;
    *failed = (struct failed_call){record->api, record->result, event->process->now};
}

const struct failed_call *end_failed_call(const struct process *process)
{
    const struct failed_call *failed = &process->ending.failed_call;
    return failed->api && failed->position >= process->ending.last_operation ? failed : NULL;
}

/* Two ends that were noticed together, both of unknown cause: which was first is not known. */
static bool are_alike(const struct process *a, const struct process *b)
{
    uint64_t apart = a->end_ns > b->end_ns ? a->end_ns - b->end_ns : b->end_ns - a->end_ns;
    return is_end_unknown(a) && is_end_unknown(b) && apart <= ONE_LOOK_NS;
}

/* `other` ended wrongly, before `process` and not long before. */
static bool precedes(const struct process *other, const struct process *process)
{
    if (!other->ended || is_clean(other))
        return false;
    if (from_outside(other) != from_outside(process)) {
        uint64_t limit = process->end_ns + JUDGE_AFTER_NS;
        return !from_outside(other) && other->end_ns <= limit &&
               other->end_ns + FOLLOW_NS >= process->end_ns;
    }
    if (is_killed_before(other, process) || is_killed_before(process, other))
        return is_killed_before(other, process);
    if (are_alike(other, process))
        return false;
    uint64_t other_ns = end_failed_ns(other), process_ns = end_failed_ns(process);
    bool earlier = other_ns < process_ns ||
                   (other_ns == process_ns && other->index < process->index);
    return earlier && other_ns + FOLLOW_NS >= process_ns;
}

/* Launchers end the rest of a job with a soft signal when one process has left it, in whatever way.
 */
static bool left_before(const struct process *other, const struct process *process)
{
    int number = signal_of(process);
    return other->ended && from_outside(process) && number != SIGKILL && !from_outside(other) &&
           other->end_ns <= process->end_ns + ONE_LOOK_NS &&
           other->end_ns + FOLLOW_NS >= process->end_ns;
}

/* The job was ended from outside, and this process with it, unless it crashed. */
static bool is_ended_with_job(const struct analyzer *analyzer, const struct process *process)
{
    bool ended_so = process->end.end.how != END_SIGNAL || from_outside(process);
    return ended_so && analyzer->ending_ns && process->end_ns >= analyzer->ending_ns &&
           process->end_ns <= analyzer->ending_ns + FOLLOW_NS;
}

bool end_was_timed_out(const struct process *process)
{
    const struct analyzer *analyzer = process->analyzer;
    return process->ended && process->end.end.how == END_SIGNAL && analyzer->ends_for_timeout &&
           is_ended_with_job(analyzer, process);
}

static bool is_consequence(const struct analyzer *analyzer, const struct process *process)
{
    if (is_ended_with_job(analyzer, process))
        return true;
    bool others = false, all_from_outside = from_outside(process);
    bool is_one_of_many = was_asked_to_end(process); /* as opposed to one that was killed alone */
    for (int i = 0; i < analyzer->processes; i++) {
        const struct process *other = analyzer->process[i];
        if (!other || other == process || !end_is_of_rank(other) || !same_job(other, process))
            continue;
        others = true;
        if (precedes(other, process) || left_before(other, process))
            return true;
        if (other->ended && is_clean(other))
            continue;
        is_one_of_many = true;
        uint64_t apart = other->end_ns > process->end_ns ? other->end_ns - process->end_ns
                                                         : process->end_ns - other->end_ns;
        if (!other->ended || !from_outside(other) || apart > JUDGE_AFTER_NS ||
            is_killed_before(process, other))
            all_from_outside = false;
    }
    return others && is_one_of_many && all_from_outside;
}

void ends_judge(struct analyzer *analyzer, bool final)
{
    bool pending = false;
    for (int i = 0; analyzer->ends_pending && i < analyzer->processes; i++) {
        struct process *process = analyzer->process[i];
        if (!process || process->end_class != END_CLASS_PENDING)
            continue;
        if (!final && process_known_until(process) < process->end_ns + JUDGE_AFTER_NS)
            pending = true;
        else if (is_clean(process))
            process->end_class = END_CLASS_CLEAN;
        else
            process->end_class = is_consequence(analyzer, process) ? END_CLASS_CONSEQUENCE
                                                                   : END_CLASS_CAUSE;
    }
    analyzer->ends_pending = pending;
}

struct act end_act(const struct process *process)
{
    struct act act = {.did = DID_GONE};
    bool was_cut_short = process->ended && process->end.end.how != END_EXIT &&
                         !process->end.end.oom && end_is_uncaught(process);
    if (process_is_ending(process) || was_cut_short)
        return (struct act){.did = DID_ENDING, .name = end_exception(process)};
    if (is_end_unknown(process))
        return act;
    act.value = process->end.end.value;
    if (process->end.end.how == END_EXIT) {
        act.did = DID_EXITED;
        act.name = act.value ? end_exception(process) : NULL;
    } else {
        act.did = process->end.end.oom ? DID_KILLED_FOR_MEMORY : DID_KILLED;
        if (process->ending.exception_how == EXCEPTION_ABORT && act.value == SIGABRT)
            act.name = end_exception(process);
    }
    return act;
}
