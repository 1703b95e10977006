/* open_group.c: DC207 where nobody is stuck because of it (hang_waits.c has the rest): a wait
 * inside a group for a stream on which its calls are to run, work there that uses their buffers as
 * if they had been launched, and a process that ended with calls in an open group. */
#include <stdio.h>
#include <string.h>

#include "analyzer/findings.h"
#include "analyzer/hang/waits.h"
#include "analyzer/hazard/accesses.h"
#include "analyzer/model/process.h"
#include "lib/trace/names.h"
#include "lib/trace/lacks.h"

enum { DEFAULT_STREAM_LAST = 2 /* 0 to 2 are default streams */, KERNEL_BYTES = 256 };

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
    char name[16];
    struct draft draft = draft_new(&check_open_group, certainty, held->member->comm);
    draft.merges_ranks = true;
    struct finding_side *side = draft_side_signature(&draft, &held->signature, &held->site);
    draft_rank(&draft, side, held->member);
    draft_side_now(&draft, side, now, wait);
    draft.finding.number = number;
    draft.finding.has_number = true;
    draft.finding.first_ns = held->site.time_ns;
    draft.finding.last_ns = wait->time_ns;
    struct text what = {0};
    text_add(&what,
             "rank %d called %s #%llu of %s in an ncclGroup that it has not ended, and %s: the "
             "call is not launched "
             "before the outermost ncclGroupEnd",
             member_shown_rank(held->member), side->call ? side->call : "?",
             (unsigned long long)number, comm_name(comm, name), side->where ? side->where : "?");
    draft_say(
        &draft, &what,
        "Call ncclGroupEnd, on every path out of the group, before anything waits for its calls.");
    findings_report(analyzer, &draft, NULL);
}

/* The work of the record goes to the stream of the held call. */
static bool is_on_its_stream(const struct operation *held, const struct record *record)
{
    bool is_default = record->stream <= DEFAULT_STREAM_LAST;
    return held->record.stream == record->stream &&
           (!is_default || held->member->device == record->device);
}

/* The first call of the open group whose result the wait seems to be for; NULL if there is none. */
static const struct operation *waited_for(const struct thread *thread, const struct record *record)
{
    if (record->api != API_cudaStreamSynchronize && record->api != API_cudaDeviceSynchronize)
        return NULL;
    for (uint32_t i = 0; i < thread->group_calls; i++) {
        const struct operation *held = &thread->group[i];
        if (record->api == API_cudaStreamSynchronize ? is_on_its_stream(held, record)
                                                     : held->member->device == record->device)
            return held;
    }
    return NULL;
}

/* What the call sends is what it leaves there, if it works in place. */
static bool keeps_what_it_sends(uint16_t api)
{
    return api == API_ncclBroadcast || api == API_ncclBcast || api == API_ncclAllGather ||
           api == API_ncclGather || api == API_ncclScatter;
}

/* It reads what the call is to receive, or writes what the call is to send. A kernel that can write
 * at an address may as well read there. */
static bool is_too_early(const struct operation *held, const struct use *use)
{
    struct op_extent extent;
    if (!op_extent_of(&held->record, held->member->comm->nranks, &extent))
        return false;
    uint64_t send = held->record.op.sendbuff, send_end = send + extent.send_bytes;
    uint64_t recv = held->record.op.recvbuff, recv_end = recv + extent.recv_bytes;
    const struct stretch *stretch = &use->stretch;
    if (use->access.writes && send && stretch_meets(stretch, send, send_end))
        return true;
    if (use->access.writes && use->access.sureness == SURE)
        return false;
    if (send && keeps_what_it_sends(held->record.api) && stretch->begin >= send &&
        stretch->end <= send_end)
        return false;
    return recv && stretch_meets(stretch, recv, recv_end);
}

/* The first call of the open group whose buffer the work uses before the call is launched. */
static const struct operation *used_before(const struct thread *thread, const struct record *record,
                                           const struct use *use, uint32_t uses,
                                           const struct use **early)
{
    for (uint32_t i = 0; i < thread->group_calls; i++)
        for (uint32_t k = 0; k < uses; k++)
            if (use[k].access.sureness != GUESSED && is_on_its_stream(&thread->group[i], record) &&
                is_too_early(&thread->group[i], &use[k])) {
                *early = &use[k];
                return &thread->group[i];
            }
    return NULL;
}

static const char *early_use_words(const struct use *early)
{
    if (early->access.sureness != SURE)
        return "uses a buffer of the call";
    return early->access.writes ? "overwrites what the call sends" : "reads what the call receives";
}

static void report_early_use(struct analyzer *analyzer, const struct operation *held,
                             const struct use *early, const struct act *act,
                             const struct site *site)
{
    uint64_t comm = held->member->comm->id, number = held->record.op.number;
    if (open_group_is_reported(analyzer, comm, number, held->process))
        return;
    char name[16];
    struct draft draft = draft_new(
        &check_open_group, early->access.sureness == SURE ? CERTAIN : POSSIBLE, held->member->comm);
    draft.merges_ranks = true;
    draft.merges_sides = true;
    struct finding_side *side = draft_side_signature(&draft, &held->signature, &held->site);
    draft_rank(&draft, side, held->member);
    struct finding_side *user = draft_side(&draft, act, site);
    draft_rank(&draft, user, held->member);
    draft.finding.number = number;
    draft.finding.has_number = true;
    draft.finding.first_ns = held->site.time_ns;
    draft.finding.last_ns = site->time_ns;
    struct text what = {0};
    text_add(&what,
             "rank %d called %s #%llu of %s in an ncclGroup, and before it ended the group it "
             "issued ",
             member_shown_rank(held->member), side->call ? side->call : "?",
             (unsigned long long)number, comm_name(comm, name));
    act_add(&what, act);
    text_add(&what,
             " on the same stream, which %s: the call is not launched before the outermost "
             "ncclGroupEnd, so it comes second",
             early_use_words(early));
    draft_say(&draft, &what,
              "Call ncclGroupEnd before anything on the stream uses the results or refills the "
              "buffers.");
    findings_report(analyzer, &draft, NULL);
}

static void groups_on_copy(struct analyzer *analyzer, struct thread *thread,
                           const struct record *record)
{
    struct use use[USES_MAX];
    const struct use *early;
    uint32_t uses = uses_of_copy(thread->process, record, use);
    const struct operation *held = used_before(thread, record, use, uses, &early);
    if (!held)
        return;
    const struct act act = {.did = DID_CALLED_FUNCTION, .call = call_of_api(record->api)};
    const struct site site = thread_site(thread, record);
    report_early_use(analyzer, held, early, &act, &site);
}

/* A copy that blocks the host is a wait as well; what its memory shows is more. */
static bool copies(const struct record *record)
{
    enum api_class class = api_class_of(record->api);
    return class == CLASS_COPY || (class == CLASS_WAIT && (record->wait.dst || record->wait.src));
}

static void groups_on_call(struct analyzer *analyzer, const struct event *event)
{
    struct thread *thread = event->thread;
    const struct record *record = event->record;
    if (!thread->group_depth || !thread->group_calls || thread->process->lost_control ||
        record->result != 0)
        return;
    if (copies(record)) {
        groups_on_copy(analyzer, thread, record);
        return;
    }
    const struct operation *held = waited_for(thread, record);
    if (!held)
        return;
    const struct act now = {.did = DID_WAITS_IN, .call = call_of_api(record->api)};
    struct site site = thread_site(thread, record);
    open_group_report(analyzer, held, CERTAIN, &site, &now);
}

static void groups_on_launch(struct analyzer *analyzer, const struct event *event)
{
    const struct record *record = event->record;
    struct thread *thread = event->thread;
    struct use use[USES_MAX];
    const struct use *early;
    if (!thread->group_depth || !thread->group_calls || thread->process->lost_control ||
        record->result != 0 || record->api == API_cudaLaunchHostFunc ||
        record->api == API_cudaStreamAddCallback)
        return;
    const struct operation *held =
        used_before(thread, record, use, uses_of_kernel(record, use), &early);
    if (!held)
        return;
    char name[KERNEL_BYTES];
    const struct act act = kernel_act(thread->process, record, name, sizeof name);
    const struct site site = thread_site(thread, record);
    report_early_use(analyzer, held, early, &act, &site);
}

/* Nobody else is stuck for it, but what was called never ran. */
static void groups_on_waits(struct analyzer *analyzer, const struct event *event)
{
    (void)event;

    for (int i = 0; i < analyzer->processes; i++) {
        const struct process *process = analyzer->process[i];
        if (!process || process->end_class != END_CLASS_CLEAN || process->lost_control)
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
    .family = FAMILY_HANG,
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_PROCESS,
    .needs = LACKS_GROUP,
    .explains = CODES(CODES_HANGS),
    .title = "a group is not ended",
    .text = "Calls between ncclGroupStart and the outermost ncclGroupEnd are only collected; "
            "ncclGroupEnd launches them. Either a rank called an operation in a group that it has "
            "not ended, and others wait in it; or the rank terminated with the group still open; "
            "or it waits within the group for a stream on which the group's calls will run, and "
            "that wait does not include them; or work that it puts on that stream within the group "
            "reads what a call is to receive, or overwrites what it is to send: this work runs "
            "before the call.\n\n"
            "It shows as a hang of the other ranks, or as results that are not there yet. It is "
            "certain if others are stuck because of it, if the process terminated with calls in an "
            "open group, if the thread waits for such a stream or its device within the group, or "
            "if a copy or memset uses such a buffer. It is possible of a kernel, of which only the "
            "pointers are known; a kernel that gets them in a structure is missed.\n\n"
            "Usual causes: a return, an exception or a continue between the two calls; more starts "
            "than ends.",
    .source = "NCCL user guide, \"Group Calls\"",
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
    .on = {[EVENT_CALL] = groups_on_call,
           [EVENT_LAUNCH] = groups_on_launch,
           [EVENT_WAITS] = groups_on_waits},
};
