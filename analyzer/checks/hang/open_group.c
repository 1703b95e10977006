/* open_group.c: DC207 where nobody is stuck because of it (missing_rank.c has the rest): a wait
 * inside a group for a stream on which its calls are to run, and a process that ended with calls in
 * an open group. */
#include <stdio.h>
#include <string.h>

#include "analyzer/findings.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"
#include "analyzer/hang/waits.h"
#include "lib/trace/names.h"
#include "lib/trace/lacks.h"

static bool open_group_is_reported(const struct analyzer *analyzer, uint64_t comm, uint64_t number,
                                   const struct process *process)
{
    for (uint32_t i = 0; i < analyzer->reported_count; i++) {
        const struct reported *reported = &analyzer->reported[i];
        if (reported->check->code == DC207 && reported->finding.comm == comm &&
            reported->finding.number == number && rankset_has(&reported->processes, process->index))
            return true;
    }
    return false;
}

static void open_group_report(struct analyzer *analyzer, const struct operation *held,
                              enum certainty certainty, const struct site *wait,
                              const struct act *now)
{
    uint64_t comm = held->member->comm->id, number = held->record.op.number;
    if (open_group_is_reported(analyzer, comm, number, held->process))
        return;
    struct draft draft = draft_new(&check_open_group, certainty, held->member->comm);
    draft.merges_ranks = true;
    struct finding_side *side = draft_side_signature(&draft, &held->signature, &held->site);
    draft_rank(&draft, side, held->member);
    draft_side_now(&draft, side, now, wait);
    draft.finding.number = number;
    draft.finding.has_number = true;
    draft.finding.first_ns = held->site.time_ns;
    draft.finding.last_ns = wait->time_ns;
    draft_headline(&draft, HEADLINE_OPEN_GROUP, ADVICE_OPEN_GROUP, NULL);
    findings_report(analyzer, &draft, NULL);
}

/* The first call of the open group whose result the wait seems to be for; NULL if there is none. */
static const struct operation *waited_for(const struct thread *thread, const struct record *record)
{
    if (record->api != API_cudaStreamSynchronize && record->api != API_cudaDeviceSynchronize)
        return NULL;
    for (uint32_t i = 0; i < thread->group_calls; i++) {
        const struct operation *held = &thread->group[i];
        if (record->api == API_cudaStreamSynchronize ? held->record.stream == record->stream
                                                     : held->member->device == record->device)
            return held;
    }
    return NULL;
}

/* Work that came on what the thread waits for after the call was made: the wait may be for that. */
static bool has_other_work(const struct thread *thread, const struct operation *held)
{
    for (uint32_t i = 0; i < thread->process->order.timelines; i++) {
        const struct stream_state *stream = thread->process->order.timeline[i];
        if (stream->position > held->record.serial &&
            clock_at(&thread->waits_for, stream->timeline) >= stream->position)
            return true;
    }
    return false;
}

static void groups_on_call(struct analyzer *analyzer, const struct event *event)
{
    struct thread *thread = event->thread;
    const struct record *record = event->record;
    const struct operation *held = thread->group_depth ? waited_for(thread, record) : NULL;
    if (!held || thread->process->lost.control)
        return;
    const struct act now = {.did = DID_WAITS_IN, .call = call_of_api(record->api)};
    struct site site = event->site;
    enum certainty certainty = has_other_work(thread, held) ? POSSIBLE : CERTAIN;
    open_group_report(analyzer, held, certainty, &site, &now);
}

/* Nobody else is stuck for it, but what was called never ran. */
static void groups_on_waits(struct analyzer *analyzer, const struct event *event)
{
    (void)event;

    for (int i = 0; i < analyzer->processes; i++) {
        const struct process *process = analyzer->process[i];
        if (!process || process->end_class != END_CLASS_CLEAN || process->lost.control)
            continue;
        struct site end = {.time_ns = process->end_ns};
        for (const struct thread *thread = process->threads; thread; thread = thread->hh.next)
            if (thread->group_depth && thread->group_calls)
                open_group_report(analyzer, &thread->group[0], CERTAIN, &end,
                                  &(struct act){.did = DID_ENDED});
    }
}

const struct check check_open_group = {
    .code = DC207,
    .name = "open-group",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_PROCESS,
    .off_without = LOSS_CALLS,
    .needs = LACKS_GROUP,
    .explains = CODES(CODES_HANGS),
    .title = "a group is not ended",
    .text =
        "Calls between ncclGroupStart and the outermost ncclGroupEnd are only collected; "
        "ncclGroupEnd launches them. Either a rank called an operation in a group that it has not "
        "ended, and others wait in it. Or the rank terminated with the group still open. Or it "
        "waits within the group for a stream on which the group's calls will run, and that wait "
        "does not include them.\n\n"
        "It shows as a hang of the other ranks, or as results that are not there yet. It is "
        "certain if others are stuck because of it, or if the process terminated with calls in an "
        "open group. It is also certain if a thread waits for such a stream or its device within "
        "the group, and no other work was queued there since the call. If there was, it is "
        "possible: the wait may be for that work. A copy of the result within the group is DC302.",
    .causes = CAUSES(
        {"A return, a continue or an exception between the two calls.",
         "Only one rank, or only one step, leaves the group open; its line is in an error path."},
        {"A wait for a result inside the group: synchronize or a copy to the host before "
         "ncclGroupEnd.",
         "The finding names a host wait of the same thread after the operation.",
         {.did = SIGN_DID(DID_WAITS_IN)}},
        {"More starts than ends: a helper that opens a group of its own and ends it in one branch "
         "only.",
         "The depth of the group is more than one: each start has a line."}),
    .source = "NCCL 2.29 user guide, \"Group Calls\"",
    .example = "ncclGroupStart();\nncclAllReduce(x, x, n, ncclFloat, ncclSum, comm, stream);\nif "
               "(rank == 1)\n    return;                             /* without ncclGroupEnd "
               "*/\nncclGroupEnd();\ncudaStreamSynchronize(stream);\n",
    .fix_c = "ncclGroupStart();\nncclAllReduce(x, x, n, ncclFloat, ncclSum, comm, "
             "stream);\nncclGroupEnd();                         /* on every path "
             "*/\ncudaStreamSynchronize(stream);\n",
    .fix_torch = "works = dist.batch_isend_irecv(operations)      # one ncclGroup, closed before "
                 "it returns\n"
                 "for work in works:\n"
                 "    work.wait()\n",
    .on = {[EVENT_CALL] = groups_on_call, [EVENT_WAITS] = groups_on_waits},
};
