/* unseen_calls.c: DC903: what can't be seen from the host, and which checks are weaker for it. */
#include "analyzer/states.h"
#include "analyzer/findings.h"
#include "analyzer/model/process.h"
#include "lib/trace/lacks.h"
#include "lib/trace/names.h"
#include "lib/trace/unseen.h"

enum { NCCL_KNOWN = 23199 }; /* the newest NCCL whose calls calls.def has: 2.31 */

struct blind {
    bool reported_nccl, saw_runtime;
};

#define ALL_OPERATIONS "mismatches and hangs (DC101 to DC111, DC201 to DC210)"
#define ALL_MEMORY     "hazards and devices (DC301 to DC310, DC401 to DC407)"

static void blind_report(struct analyzer *analyzer, struct process *process,
                         const struct act *unseen, const char *weaker, uint64_t time_ns)
{
    struct draft draft = draft_new(&check_unseen_calls, CERTAIN, NULL);
    const struct site site = {.process = process};
    struct finding_side *side = draft_side(&draft, unseen, &site);
    struct text what = {0};
    int rank = process_shown_rank(process);
    if (rankset_add(&side->ranks, rank >= 0 ? rank : process->index))
        draft.failed = true;
    draft_cover(&draft, process);
    draft.merges_ranks = true;
    draft.finding.first_ns = draft.finding.last_ns = time_ns;
    text_add(&what, "not seen: %s; what goes wrong there is missed: %s",
             side->call ? side->call : "?", weaker);
    draft_say(&draft, &what, "This may be harmless, but these checks did not see every call.");
    findings_report(analyzer, &draft, NULL);
}

static struct blind *blind_of(struct analyzer *analyzer, struct process *process)
{
    return state_get(analyzer, &check_unseen_calls, OWNER_PROCESS, &process->states);
}

/* What is missed, by kind of what was not seen. */
static const char *const weaker_for[UNSEEN_KINDS] = {
    [UNSEEN_ANYTHING] = ALL_OPERATIONS ", " ALL_MEMORY,
    [UNSEEN_DEVICE_NCCL] =
        "what kernels send and receive is in no sequence of calls (DC101 to DC111, DC201 to "
        "DC210), and their buffers are not checked (DC301 to DC310)",
    [UNSEEN_PAYLOADS] = "their bytes are not compared (DC308, DC309, DC501 to DC503)",
    [UNSEEN_GRAPH] = "collectives in it are not matched (DC101 to DC111, DC201 to DC210), and its "
                     "accesses are not checked (DC301 to DC310)",
    [UNSEEN_ONE_SIDED] = "signals that nobody sends are not named (DC201 to DC211 show the hang "
                         "alone), and what is put and read is not checked (DC301 to DC310)",
    [UNSEEN_GROWN] = ALL_OPERATIONS ", " ALL_MEMORY,
};

/* The shim reports it: its text names what is not seen, its number which kind that is. */
static void blind_on_blind(struct analyzer *analyzer, const struct event *event)
{
    struct process *process = event->process;
    const struct record *record = event->record;
    const char *text = process_string(process, record->range.text);
    uint64_t kind = record->range.id < UNSEEN_KINDS ? record->range.id : UNSEEN_ANYTHING;
    const struct act act = {.name = *text ? text : "something that the shim gave no name"};
    blind_report(analyzer, process, &act, weaker_for[kind], record_realtime(process, record));
}

static void blind_on_setup(struct analyzer *analyzer, const struct event *event)
{
    struct process *process = event->process;
    const struct record *record = event->record;

    struct blind *blind = blind_of(analyzer, process);
    int version = process->info.nccl_version;
    if (!blind)
        return;
    if (version <= NCCL_KNOWN || blind->reported_nccl)
        return;
    blind->reported_nccl = true;
    const struct act unseen = {
        .did = DID_NEWER_NCCL, .value = version / 10000, .number = (uint64_t)(version / 100 % 100)};
    blind_report(analyzer, process, &unseen, ALL_OPERATIONS, record_realtime(process, record));
}

static void blind_on_runtime_call(struct analyzer *analyzer, const struct event *event)
{
    struct process *process = event->process;
    struct blind *blind = blind_of(analyzer, process);
    if (blind)
        blind->saw_runtime = true;
}

static bool issued_operations(const struct process *process)
{
    for (const struct member *member = process->members; member; member = member->process_next)
        if (member->has_last)
            return true;
    return false;
}

static bool saw_runtime(struct analyzer *analyzer, struct process *process)
{
    const struct blind *blind = blind_of(analyzer, process);
    return !blind || blind->saw_runtime;
}

/* No libcudart was loaded when the process woke the shim, and no call of it was ever seen. */
static void blind_on_finish(struct analyzer *analyzer, const struct event *event)
{
    (void)event;
    for (int i = 0; i < analyzer->processes; i++) {
        struct process *process = analyzer->process[i];
        bool unseen = process && !(process->info.lacks & LACKS_CUDA) &&
                      process->info.cuda_runtime_version < 0 && process->info.nccl_version > 0 &&
                      !saw_runtime(analyzer, process) && issued_operations(process);
        const struct act act = {.did = DID_NO_RUNTIME};
        if (unseen)
            blind_report(analyzer, process, &act, "waits of the host (DC201 to DC208), " ALL_MEMORY,
                         process->last_ns);
    }
}

const struct check check_unseen_calls = {
    .code = DC903,
    .name = "unseen-calls",
    .family = FAMILY_TRACE,
    .severity = SEVERITY_NOTE,
    .scope = SCOPE_PROCESS,
    .title = "some calls are not visible to ddpcheck",
    .text = "ddpcheck sees the calls that the program makes to libnccl and libcudart. Here "
            "something bypassed them. It may be NCCL operations that kernels start themselves "
            "(ncclDevCommCreate), one-sided operations (ncclPutSignal, ncclWaitSignal), or a "
            "communicator that grew (ncclCommGrow). It may also be a CUDA graph whose creation was "
            "not recorded, a CUDA runtime that is linked into the program (nvcc's default), or an "
            "NCCL release that is newer than those ddpcheck knows (2.31). The finding says what "
            "was not seen and which checks are less reliable because of it.\n\n"
            "If NCCL is linked into the program, nothing of it is seen, so there is no finding "
            "either: 'ddpcheck doctor -- PROGRAM' detects this, and 'ddpcheck run --plugin' sees "
            "it through NCCL's profiler plugin interface (docs/front-ends.md).\n\n"
            "Nothing is reported because of what was not seen; faults in it are missed.",
    .fix_c = "nvcc -cudart shared job.cu -lnccl    # so that the CUDA runtime can be seen\n",
    .on = {[EVENT_BLIND] = blind_on_blind,
           [EVENT_SETUP] = blind_on_setup,
           [EVENT_CALL] = blind_on_runtime_call,
           [EVENT_LAUNCH] = blind_on_runtime_call,
           [EVENT_FINISH] = blind_on_finish},
    .state_bytes = {[OWNER_PROCESS] = sizeof(struct blind)},
};
