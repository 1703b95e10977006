/* host_function.c: reports host functions that keep their stream from going on (DC208). */
#include "analyzer/checks/hang/hang.h"

#include <stdio.h>
#include <string.h>

#include "analyzer/findings.h"
#include "analyzer/hang/where.h"
#include "analyzer/model/callbacks.h"
#include "analyzer/model/process.h"
#include "lib/trace/lacks.h"
#include "lib/trace/names.h"

/* What keeps the thread from going on is the host function. */
static bool waits_for(const struct blocked *blocked, const struct waiting_op *function)
{
    for (uint32_t i = 0; i < blocked->ops; i++)
        if (!blocked->op[i]->can_finish && waiting_op_culprit(blocked->op[i]) == function)
            return true;
    return false;
}

/* Another thread of the process that waits for it; NULL if there is none. */
static const struct blocked *waiter_of(const struct wait_graph *graph,
                                       const struct waiting_op *function)
{
    for (uint32_t i = 0; i < graph->blocked_count; i++) {
        const struct blocked *blocked = &graph->blocked[i];
        if (blocked->thread->process == function->process &&
            blocked->thread != function->callback->thread && waits_for(blocked, function))
            return blocked;
    }
    return NULL;
}

static bool host_function_is_reported(const struct analyzer *analyzer,
                                      const struct process *process, enum certainty certainty)
{
    for (uint32_t i = 0; i < analyzer->reported_count; i++) {
        const struct reported *reported = &analyzer->reported[i];
        if (reported->check->code == DC208 && reported->finding.state == FINDING_OPEN &&
            reported->finding.certainty <= certainty &&
            rankset_has(&reported->processes, process->index))
            return true;
    }
    return false;
}

static void host_function_add_side(struct draft *draft, const struct process *process,
                                   const struct act *act, const struct site *site,
                                   const struct act *now, const struct site *now_site)
{
    struct finding_side *side = draft_side(draft, act, site);
    int rank = process_shown_rank(process);
    if (rank >= 0 && rankset_add(&side->ranks, rank))
        draft->failed = true;
    side->process = process->index;
    draft_side_now(draft, side, now, now_site);
    draft_cover(draft, process);
}

static void host_function_report(struct analyzer *analyzer, const struct wait_graph *graph,
                                 const struct waiting_op *function, const struct blocked *waiter,
                                 enum certainty certainty)
{
    const struct callback *callback = function->callback;
    const struct thread *thread = callback->thread;
    const struct process *process = function->process;
    struct act function_act = {.did = DID_CALLED_FUNCTION, .call = call_of_api(callback->api)};
    struct act now = {.did = DID_NOT_IN_CALL};
    struct draft draft =
        draft_new(&check_host_function, process->lost.control ? POSSIBLE : certainty, NULL);
    draft.merges_ranks = true;
    draft.finding.first_ns = callback->begin_ns;
    draft.finding.last_ns = graph->now_ns > callback->begin_ns ? graph->now_ns : callback->begin_ns;
    if (thread->in_call)
        now = (struct act){.did = DID_IN_CALL, .call = call_of_record(&thread->enter)};
    host_function_add_side(&draft, process, &function_act, &callback->site, &now,
                           thread->in_call ? &thread->enter_site : NULL);
    if (waiter) {
        const struct act waits = {.did = DID_WAITS_HOST_FUNCTION},
                         call = {.did = DID_CALLED, .call = call_of_record(&waiter->thread->enter)};
        host_function_add_side(&draft, process, &call, &waiter->thread->enter_site, &waits,
                               &waiter->thread->enter_site);
    }
    draft_headline(&draft, HEADLINE_HOST_FUNCTION, ADVICE_HOST_FUNCTION,
                   &(struct values){.flag = {certainty == CERTAIN}});
    findings_report(analyzer, &draft, NULL);
}

void callbacks_report(struct analyzer *analyzer, const struct wait_graph *graph,
                      enum certainty certainty)
{
    for (const struct waiting_op *op = graph->ops; op; op = op->next) {
        if (!op->callback || !op->callback->thread || op->can_finish ||
            host_function_is_reported(analyzer, op->process, certainty))
            continue;
        const struct blocked *own = wait_graph_blocked(graph, op->callback->thread);
        const struct blocked *waiter = waiter_of(graph, op);
        if (own ? waits_for(own, op) : waiter != NULL)
            host_function_report(analyzer, graph, op, waiter, certainty);
    }
}

const struct check check_host_function = {
    .code = DC208,
    .name = "host-function",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_PROCESS,
    .weak_without = LOSS_CALLS,
    .needs = LACKS_CUDA,
    .explains = CODES(CODES_HANGS),
    .title = "the host waits for a stream that waits for the host",
    .text = "A host function (cudaLaunchHostFunc, cudaStreamAddCallback) does not return, so "
            "nothing behind it on its stream can run. Either it waits, in a call, for work that is "
            "queued behind itself; or it has done nothing visible for a long time (--hang-after) "
            "while another thread of the process waits for its stream.\n\n"
            "It shows as a hang of this rank, and of all that wait for it. It is certain if the "
            "function is in a call that waits for later work. It is possible if the function is in "
            "no such call: it may wait for a lock that the waiting thread holds, or just be busy. "
            "If it returns after all, the finding is marked as resolved.\n\n"
            "Host functions must not call CUDA (CUDA Runtime API, cudaLaunchHostFunc); most calls "
            "are refused there, those of NCCL are not. An event that was never recorded is not a "
            "cause: cudaEventSynchronize and cudaStreamWaitEvent treat it as completed.",
    .causes = CAUSES(
        {"A lock that the function takes and that the waiting thread holds (in Python: the GIL, "
         "taken by a callback).",
         "The function's stack ends in a lock; the waiting thread's stack holds it or runs "
         "Python."},
        {"The function calls CUDA or NCCL, and waits for work that is behind it on its own stream.",
         "The function's stack is in a call of either.",
         {.did = SIGN_DID(DID_IN_CALL)}},
        {"The function waits for data: a queue, a file or another process that itself waits for "
         "this rank.",
         "The function's stack is in read(), a condition variable or a queue."}),
    .source = "CUDA 13.0 Runtime API, cudaLaunchHostFunc: a host function must not make CUDA calls",
    .example = "pthread_mutex_lock(&lock);\ncudaLaunchHostFunc(stream, count_batch, &lock);     /* "
               "takes the lock */\ncudaStreamSynchronize(stream);                      /* while "
               "this thread holds it */\npthread_mutex_unlock(&lock);\n",
    .fix_c = "cudaLaunchHostFunc(stream, count_batch, "
             "&lock);\ncudaStreamSynchronize(stream);\npthread_mutex_lock(&lock);                  "
             "        /* only now */\n",
    .fix_torch = "work.wait()          # no lock held here that a future's callback takes\n",
};
