/* failed_alone.c: reports a rank that failed before anybody waited for it: by itself, with its
 * process, or with all others of the job. */
#include "analyzer/checks/hang/failed_alone.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/checks/hang/exited_rank.h"
#include "analyzer/findings.h"
#include "analyzer/hang/ends.h"
#include "analyzer/model/process.h"

enum { RANKS_BYTES = 64 };

/* By its own code, not from outside. */
static bool has_crashed(const struct process *process)
{
    if (process->end.end.how != END_SIGNAL)
        return false;
    if (process->has_exception && process->exception_how == EXCEPTION_UNCAUGHT)
        return true; /* the signal came while it was ending */
    switch (process->end.end.value) {
    case SIGABRT:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGSEGV:
    case SIGSYS:
    case SIGTRAP:
        return true;
    default:
        return false;
    }
}

/* By itself: not by Ctrl-C, and nobody started the job again. */
static bool failed_by_itself(const struct analyzer *analyzer, const struct process *process)
{
    return process->ended && process->end_class == END_CLASS_CAUSE &&
           (end_is_of_rank(process) || has_crashed(process)) &&
           process->end.end.how <= END_SIGNAL && !exited_rank_successor(analyzer, process) &&
           !end_is_interrupted(process);
}

static bool issues_alone(const struct thread *thread)
{
    for (const struct member *member = thread->process->members; member;
         member = member->process_next)
        if (!member->more_issuers && member->issuers == 1 && member->issuer[0] == thread)
            return true;
    return false;
}

/* The thread that aborted or called exit(). After another signal, the only one of a rank that was
 * in no call, for `is_guess`. NULL: it is not known. */
static const struct thread *failed_thread(const struct process *process, bool *is_guess)
{
    *is_guess = false;
    if (process->raised_by || process->end.end.how != END_SIGNAL)
        return process->raised_by;
    const struct thread *found = NULL;
    for (const struct thread *thread = process->threads; thread; thread = thread->hh.next) {
        if (thread->in_call || thread->has_ended || !issues_alone(thread))
            continue;
        if (found)
            return NULL;
        found = thread;
    }
    *is_guess = found != NULL;
    return found;
}

/* Of a process that holds several ranks those of the thread that failed; all, where that is none's.
 */
static int add_failed_ranks(const struct process *process, const struct thread *thread,
                            struct rankset *ranks)
{
    int result = 0;
    if (!process->several_ranks) {
        int rank = process_shown_rank(process);
        return rankset_add(ranks, rank >= 0 ? rank : process->index);
    }
    for (int pass = thread ? 0 : 1; pass < 2 && !rankset_count(ranks); pass++)
        for (const struct member *member = process->members; member; member = member->process_next)
            if (pass || thread_may_issue(thread, member))
                result |= rankset_add(ranks, member_shown_rank(member));
    return result;
}

/* What the thread called last, or the first that was in a call when the process ended, or the only
 * one. */
static struct site last_site(struct process *process, const struct thread *thread)
{
    for (const struct thread *other = process->threads; other && !thread; other = other->hh.next)
        if (other->in_call)
            thread = other;
    if (!thread && process->threads && !process->threads->hh.next)
        thread = process->threads;
    return thread ? thread->enter_site : (struct site){.process = process};
}

/* What it is about, and whom it took with it. */
struct failure {
    struct process *process;
    bool has_followers; /* the launcher terminated the others because of it */
    bool all_failed;    /* every rank of the job did */
    bool has_others;    /* in other processes */
    bool is_first;      /* none of these failed before it */
    bool others_passed; /* some of them exited with status 0 */
    bool is_certain;    /* that it failed: a program may return an exit status as its result */
    bool is_doubtful;   /* what failed may be no part of the job */
};

static void add_failed_side(struct draft *draft, const struct failure *failure)
{
    char ranks[RANKS_BYTES];
    struct process *process = failure->process;
    const struct act act = end_act(process);
    bool is_guess;
    const struct thread *thread = failed_thread(process, &is_guess);
    bool is_line_known = process->has_exception || process->raised.stack;
    const struct site site = is_line_known ? process->raised : last_site(process, thread);
    if (is_guess && process->several_ranks)
        draft->finding.certainty = POSSIBLE;
    struct finding_side *side = draft_side(draft, &act, &site);
    draft->failed |= !side || add_failed_ranks(process, thread, &side->ranks);
    draft_cover(draft, process);
    if (draft->failed)
        return;
    struct text what = {0};
    bool is_one = rankset_count(&side->ranks) == 1;
    text_add(&what, "%s %s ", is_one ? "rank" : "the process of ranks",
             rankset_text(&side->ranks, ranks, sizeof ranks));
    act_add(&what, &act);
    if (failure->has_followers)
        text_add(&what, ", and the launcher terminated the other ranks");
    else if (process->several_ranks && is_one)
        text_add(&what, ", and with it the process of the other ranks");
    else if (failure->all_failed && failure->has_others)
        text_add(&what, ", and all other ranks failed%s", failure->is_first ? " after it" : "");
    struct text todo = {0};
    text_add(&todo, "%s%s", exited_rank_todo(&act, false),
             is_line_known ? "" : " The line is that of its last call of NCCL or CUDA.");
    char *said = text_take(&todo);
    draft->failed |= !said;
    draft_say(draft, &what, said ? said : "");
    free(said);
}

static bool is_of_attempt(const struct process *other, const struct process *process)
{
    return other && other != process && other->info.restart == process->info.restart;
}

/* The others, which failed as well, by how they ended. */
static void add_other_sides(struct analyzer *analyzer, struct draft *draft,
                            const struct process *failed)
{
    for (int i = 0; i < analyzer->processes && !draft->failed; i++) {
        struct process *process = analyzer->process[i];
        if (!is_of_attempt(process, failed) || !end_is_of_rank(process))
            continue;
        const struct act act = end_act(process);
        struct finding_side *side = NULL;
        for (int k = 1; k < draft->finding.sides && !side; k++)
            if (act_equal(&draft->finding.side[k].act, &act))
                side = &draft->finding.side[k];
        if (!side && draft->finding.sides < FINDING_SIDES_MAX)
            side = draft_side(draft, &act, process->raised.stack ? &process->raised : NULL);
        if (!side)
            continue;
        draft->failed |= add_failed_ranks(process, NULL, &side->ranks) != 0;
        draft_cover(draft, process);
    }
}

/* Whom the launcher terminated because of it. */
static bool had_followers(const struct analyzer *analyzer, const struct process *process)
{
    for (int i = 0; i < analyzer->processes; i++) {
        const struct process *other = analyzer->process[i];
        if (is_of_attempt(other, process) && other->ended &&
            other->end_class == END_CLASS_CONSEQUENCE && other->end.end.how == END_SIGNAL &&
            other->end.end.value == SIGTERM)
            return true;
    }
    return false;
}

/* Exited with another status than 0, or crashed. */
static bool ended_in_failure(const struct process *process)
{
    bool by_status = process->end.end.how == END_EXIT && process->end.end.value;
    return process->ended && (by_status || has_crashed(process));
}

/* So many processes of its job were seen; are those all? */
static bool are_all_seen(const struct process *process, int processes)
{
    for (const struct member *member = process->members; member; member = member->process_next)
        if ((int)member->comm->members != member->comm->nranks)
            return false;
    return processes >= process->info.world_size;
}

static void find_others(const struct analyzer *analyzer, struct failure *failure)
{
    const struct process *process = failure->process;
    int processes = 1;
    failure->all_failed = ended_in_failure(process);
    failure->is_first = true;
    for (int i = 0; i < analyzer->processes; i++) {
        const struct process *other = analyzer->process[i];
        if (!is_of_attempt(other, process) || !end_is_of_rank(other))
            continue;
        processes++;
        failure->all_failed &= ended_in_failure(other);
        failure->others_passed |= other->end_class == END_CLASS_CLEAN;
        failure->is_first &= other->end_class != END_CLASS_CAUSE ||
                             end_failed_ns(other) >= end_failed_ns(process);
    }
    failure->has_others = processes > 1;
    failure->all_failed &= are_all_seen(process, processes);
}

/* Its ranks had not made the same calls: some had still to come. */
static bool was_cut_short(const struct process *process)
{
    for (const struct member *member = process->members; member; member = member->process_next)
        for (const struct member *other = process->members; other; other = other->process_next)
            if (other->comm == member->comm && other->next != member->next)
                return true;
    return false;
}

/* False: it only exited with a status, and others did not fail. */
static bool find_failure(const struct analyzer *analyzer, struct process *process,
                         struct failure *failure)
{
    *failure = (struct failure){.process = process};
    if (!process || !failed_by_itself(analyzer, process))
        return false;
    failure->has_followers = had_followers(analyzer, process);
    find_others(analyzer, failure);
    bool by_exception = end_is_uncaught(process) && ended_in_failure(process);
    bool by_the_job = failure->has_followers || has_crashed(process) || was_cut_short(process);
    failure->is_certain = by_the_job || by_exception;
    failure->is_doubtful = !by_the_job && failure->others_passed;
    return failure->is_certain || failure->all_failed;
}

static bool is_error(const struct failure *failure)
{
    return failure->is_certain || failure->process->has_exception;
}

/* A warning hides no error; of two alike the one that failed first is why the other did. */
static bool comes_before(const struct failure *failure, const struct failure *other)
{
    if (is_error(failure) != is_error(other))
        return is_error(failure);
    return end_failed_ns(failure->process) < end_failed_ns(other->process);
}

void failed_alone_on_finish(struct analyzer *analyzer, const struct event *event)
{
    (void)event;
    struct failure failure = {0}, other;
    if (hang_has_open_error(analyzer))
        return;
    for (int i = 0; i < analyzer->processes; i++)
        if (find_failure(analyzer, analyzer->process[i], &other) &&
            (!failure.process || comes_before(&other, &failure)))
            failure = other;
    if (!failure.process)
        return;
    struct draft draft =
        draft_new(&check_exited_rank, failure.is_doubtful ? POSSIBLE : CERTAIN, NULL);
    draft.finding.first_ns = draft.finding.last_ns = failure.process->end_ns;
    if (!is_error(&failure))
        draft.finding.severity = SEVERITY_WARNING;
    add_failed_side(&draft, &failure);
    if (failure.all_failed)
        add_other_sides(analyzer, &draft, failure.process);
    findings_report(analyzer, &draft, NULL);
}
