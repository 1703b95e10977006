/* unseen_calls.c: DC903: what can't be seen from the host, and which checks are weaker for it. */
#include <stdlib.h>

#include "analyzer/states.h"
#include "analyzer/findings.h"
#include "analyzer/model/process.h"
#include "lib/trace/lacks.h"
#include "lib/trace/names.h"
#include "lib/trace/unseen.h"

enum { NCCL_KNOWN = 23299 }; /* the newest NCCL whose calls calls.def has: 2.32 */

struct blind {
    bool reported_nccl, saw_runtime;
};

/* What is missed: a sentence, and the families of checks that it is about. */
struct weaker {
    enum headline headline;
    unsigned families[PAIR]; /* bits of enum family, for its names; 0: checks of payload hashes */
};

enum {
    OPERATIONS = 1 << FAMILY_MATCH | 1 << FAMILY_HANG,
    WAITS = 1 << FAMILY_HANG,
    HAZARDS = 1 << FAMILY_HAZARD,
    MEMORY = 1 << FAMILY_HAZARD | 1 << FAMILY_DEVICE,
    PAYLOADS = 0,
};

static bool is_of_families(const struct check *check, unsigned families)
{
    return families ? (1U << code_family(check->code) & families) != 0
                    : (check->weak_without & LOSS_HASHES) != 0;
}

static void say_weaker(struct draft *draft, const struct weaker *weaker)
{
    struct text list[PAIR] = {0};
    struct values values = {0};
    char *listed[PAIR];
    for (int i = 0; i < PAIR; i++) {
        check_list_add(&list[i], is_of_families, weaker->families[i]);
        values.name[i] = listed[i] = text_take(&list[i]);
        draft->failed |= !listed[i];
    }
    draft_headline(draft, weaker->headline, ADVICE_UNSEEN_CALLS, &values);
    for (int i = 0; i < PAIR; i++)
        free(listed[i]);
}

static void blind_report(struct analyzer *analyzer, struct process *process,
                         const struct act *unseen, const struct weaker *weaker, uint64_t time_ns)
{
    struct draft draft = draft_new(&check_unseen_calls, CERTAIN, NULL);
    const struct site site = {.process = process};
    struct finding_side *side = draft_side(&draft, unseen, &site);
    int rank = process_shown_rank(process);
    if (rankset_add(&side->ranks, rank >= 0 ? rank : process->index))
        draft.failed = true;
    draft_cover(&draft, process);
    draft.merges_ranks = true;
    draft.finding.first_ns = draft.finding.last_ns = time_ns;
    say_weaker(&draft, weaker);
    findings_report(analyzer, &draft, NULL);
}

static struct blind *blind_of(struct analyzer *analyzer, struct process *process)
{
    return state_get(analyzer, &check_unseen_calls, OWNER_PROCESS, &process->states);
}

/* By kind of what was not seen; left out: everything. */
static const struct weaker weaker_for[UNSEEN_KINDS] = {
    [UNSEEN_DEVICE_NCCL] = {HEADLINE_UNSEEN_DEVICE_NCCL, {OPERATIONS, HAZARDS}},
    [UNSEEN_PAYLOADS] = {HEADLINE_UNSEEN_PAYLOADS, {PAYLOADS}},
    [UNSEEN_GRAPH] = {HEADLINE_UNSEEN_GRAPH, {OPERATIONS, HAZARDS}},
};

static const struct weaker *weaker_of(uint64_t kind)
{
    static const struct weaker everything = {HEADLINE_UNSEEN, {OPERATIONS | MEMORY}};
    return weaker_for[kind].headline ? &weaker_for[kind] : &everything;
}

/* The shim reports it: its text names what is not seen, its number which kind that is. */
static void blind_on_blind(struct analyzer *analyzer, const struct event *event)
{
    struct process *process = event->process;
    const struct record *record = event->record;
    const char *text = process_string(process, record->range.text);
    uint64_t kind = record->range.id < UNSEEN_KINDS ? record->range.id : UNSEEN_ANYTHING;
    static const char damaged[] = "calls whose ring file is damaged, and all later ones";
    const char *unnamed = kind == UNSEEN_DAMAGED ? damaged : "something that the shim gave no name";
    const struct act act = {.name = *text ? text : unnamed};
    blind_report(analyzer, process, &act, weaker_of(kind), event->site.time_ns);
}

static void blind_on_setup(struct analyzer *analyzer, const struct event *event)
{
    struct process *process = event->process;

    struct blind *blind = blind_of(analyzer, process);
    int version = process->info.nccl_version;
    if (!blind)
        return;
    if (version <= NCCL_KNOWN || blind->reported_nccl)
        return;
    blind->reported_nccl = true;
    const struct act unseen = {
        .did = DID_NEWER_NCCL, .value = version / 10000, .number = (uint64_t)(version / 100 % 100)};
    static const struct weaker operations = {HEADLINE_UNSEEN, {OPERATIONS}};
    blind_report(analyzer, process, &unseen, &operations, event->site.time_ns);
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
    static const struct weaker host_calls = {HEADLINE_UNSEEN_RUNTIME, {WAITS | MEMORY}};
    (void)event;
    for (int i = 0; i < analyzer->processes; i++) {
        struct process *process = analyzer->process[i];
        bool unseen = process && !(process->info.lacks & LACKS_CUDA) &&
                      process->info.cuda_runtime_version < 0 && process->info.nccl_version > 0 &&
                      !saw_runtime(analyzer, process) && issued_operations(process);
        const struct act act = {.did = DID_NO_RUNTIME};
        if (unseen)
            blind_report(analyzer, process, &act, &host_calls, process->last_ns);
    }
}

const struct check check_unseen_calls = {
    .code = DC903,
    .name = "unseen-calls",
    .severity = SEVERITY_NOTE,
    .scope = SCOPE_PROCESS,
    .title = "some calls are not visible to ddpcheck",
    .text = "ddpcheck sees the calls that the program makes to libnccl and libcudart. Here "
            "something bypassed them. It may be NCCL operations that kernels start themselves "
            "(ncclDevCommCreate), or a communicator that grew from one that was not recorded "
            "(ncclCommGrow). It may also be a CUDA graph whose creation was not recorded, a CUDA "
            "runtime that is linked into the program (nvcc's default), or an NCCL release that is "
            "newer than those ddpcheck knows (2.32). The finding says what "
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
