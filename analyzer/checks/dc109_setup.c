/* dc109_setup.c: DC109 (ranks set a communicator up differently) and DC405 (two ranks on one GPU), as soon as
 * the second of them calls. A split that leaves someone waiting is found among the waits (dc2xx_waits.c). */
#include <errno.h>
#include <stdlib.h>

#include "analyzer/comm.h"
#include "analyzer/findings.h"
#include "analyzer/process.h"
#include "analyzer/window.h"
#include "lib/trace/names.h"

enum { RANKS_BYTES = 128 };

static int begin_claims(struct comm *comm, const struct member *newcomer)
{
    comm->claims = calloc(1, sizeof *comm->claims);
    if (!comm->claims)
        return -1;
    comm->claims->variants = 1;
    comm->claims->first.signature.count = (uint64_t)comm->nranks;
    int failed = 0;
    for (uint32_t i = 0; i < comm->members; i++)
        if (comm->member[i] != newcomer && comm->member[i]->arrivals) {
            failed |= rankset_add(&comm->claims->first.ranks, comm->member[i]->rank);
            comm->claims->first.site = comm->member[i]->arrival;
        }
    return failed;
}

static int add_claim(struct comm *comm, const struct member *member, int nranks)
{
    struct slot *claims = comm->claims;
    for (uint32_t i = 0; i < claims->variants; i++)
        if (slot_variant(claims, i)->signature.count == (uint64_t)nranks)
            return rankset_add(&slot_variant(claims, i)->ranks, member->rank);
    struct variant *more = realloc(claims->more, claims->variants * sizeof *more);
    if (!more)
        return -1;
    claims->more = more;
    more[claims->variants - 1] = (struct variant){.site = member->arrival};
    more[claims->variants - 1].signature.count = (uint64_t)nranks;
    claims->variants++;
    return rankset_add(&more[claims->variants - 2].ranks, member->rank);
}

static int report_claims(struct analyzer *analyzer, struct comm *comm)
{
    struct draft draft = draft_new("DC109", CERTAIN, comm);
    struct text what = {0};
    char ranks[RANKS_BYTES], name[16];
    for (uint32_t i = 0; i < comm->claims->variants; i++) {
        const struct variant *variant = slot_variant(comm->claims, i);
        text_add(&what, "%s%s %s %s %s of %llu ranks", i ? ", " : "", rankset_count(&variant->ranks) == 1 ? "rank" : "ranks",
                 rankset_text(&variant->ranks, ranks, sizeof ranks), rankset_count(&variant->ranks) == 1 ? "makes" : "make",
                 comm_name(comm->id, name), (unsigned long long)variant->signature.count);
        struct text text = {0};
        text_add(&text, "ncclCommInitRank with nranks=%llu", (unsigned long long)variant->signature.count);
        struct finding_side *side = draft_side(&draft, text.data ? text.data : "", &variant->site);
        text_free(&text);
        for (uint32_t k = 0; side && k < comm->members; k++)
            if (rankset_has(&variant->ranks, comm->member[k]->rank))
                draft_rank(&draft, side, comm->member[k]);
        if (!draft.finding.first_ns || variant->site.time_ns < draft.finding.first_ns)
            draft.finding.first_ns = variant->site.time_ns;
        if (variant->site.time_ns > draft.finding.last_ns)
            draft.finding.last_ns = variant->site.time_ns;
    }
    text_add(&what, ": the number of ranks must be the same");
    draft_cover_comm(&draft, comm);
    draft_say(&draft, &what, "Give every rank the same world size (check WORLD_SIZE and the launcher's arguments).");
    return comm->claims_finding ? findings_replace(analyzer, comm->claims_finding, &draft)
                                : findings_report(analyzer, &draft, &comm->claims_finding);
}

static int report_one(struct analyzer *analyzer, const struct member *member, const char *call, const struct site *second,
                      struct text *what, const char *todo)
{
    struct draft draft = draft_new("DC109", CERTAIN, member->comm);
    struct finding_side *side = draft_side(&draft, call, &member->arrival);
    draft_rank(&draft, side, member);
    draft_cover_comm(&draft, member->comm);
    draft.finding.first_ns = draft.finding.last_ns = second->time_ns;
    if (second->process != member->process || second->stack != member->arrival.stack) {
        struct finding_side *other = draft_side(&draft, call, second);
        int shown = second->process->info.rank;
        if (rankset_add(&other->ranks, shown >= 0 && !second->process->several_ranks ? shown : member->rank))
            draft.failed = true;
        draft_cover(&draft, second->process);
    }
    draft_say(&draft, what, todo);
    return findings_report(analyzer, &draft, NULL);
}

static int check_init(struct analyzer *analyzer, struct process *process, const struct record *record, struct member *member)
{
    struct comm *comm = member->comm;
    char name[16];
    struct text what = {0};
    struct site site = {
        .process = process, .stack = record->stack, .stack_is_address = record->flags & RECORD_FLAG_ADDRESS,
        .time_ns = record_realtime(process, record),
    };
    comm_name(comm->id, name);
    if (comm->nranks > 0 && record->comm.nranks != comm->nranks && !comm->claims && begin_claims(comm, member))
        return -1;
    if (comm->claims && member->arrivals == 1 &&
        (add_claim(comm, member, record->comm.nranks) || report_claims(analyzer, comm)))
        return -1;
    if (comm->claims)
        return 0;               /* which rank is out of range depends on whom one believes */
    if (record->comm.nranks > 0 && record->comm.rank >= record->comm.nranks) {
        text_add(&what, "rank %d joins %s, which has ranks 0 to %d only", record->comm.rank, name, record->comm.nranks - 1);
        return report_one(analyzer, member, "ncclCommInitRank with a rank out of range", &member->arrival, &what,
                          "Give each process a rank from 0 to nranks - 1 (check RANK and WORLD_SIZE).");
    }
    if (member->arrivals > 1) {
        text_add(&what, "rank %d of %s is given to two callers: process %d and process %d on %s", member->rank, name,
                 (int)member->arrival.process->info.pid, (int)process->info.pid, process->info.host);
        return report_one(analyzer, member, "ncclCommInitRank with a rank that is taken", &site, &what,
                          "Give each process a rank of its own (check RANK and the launcher's arguments).");
    }
    return 0;
}

static int check_gpu(struct analyzer *analyzer, struct process *process, const struct record *record, struct member *member)
{
    const struct comm *comm = member->comm;
    const struct member *other = NULL;
    for (uint32_t i = 0; i < comm->members && member->gpu && !other; i++)
        if (comm->member[i] != member && comm->member[i]->gpu == member->gpu && !comm->member[i]->destroyed)
            other = comm->member[i];
    if (!other)
        return 0;
    struct draft draft = draft_new("DC405", CERTAIN, comm);
    struct site site = {.process = process, .stack = record->stack, .stack_is_address = record->flags & RECORD_FLAG_ADDRESS};
    struct text what = {0};
    char name[16];
    struct finding_side *side = draft_side(&draft, "drives the same GPU as another rank", &site);
    draft_rank(&draft, side, other);
    draft_rank(&draft, side, member);
    draft_cover_comm(&draft, comm);
    draft.merges_ranks = true;
    draft.finding.first_ns = draft.finding.last_ns = record_realtime(process, record);
    text_add(&what, "ranks %d and %d of %s drive the same GPU (devices %d and %d on %s)", member_shown_rank(other),
             member_shown_rank(member), comm_name(comm->id, name), other->device, member->device, process->info.host);
    draft_say(&draft, &what, "Give each rank a GPU of its own: cudaSetDevice(local rank) before anything else, and check CUDA_VISIBLE_DEVICES.");
    return findings_report(analyzer, &draft, NULL);
}

static int setup(struct analyzer *analyzer, struct process *process, const struct record *record, struct member *member)
{
    if (!member)
        return 0;
    if (record->phase == RECORD_ENTER && record->api != API_ncclCommSplit && check_init(analyzer, process, record, member))
        return -1;
    /* Told once: by the call if it knows the GPU, else by the notice. */
    bool told = record->phase == RECORD_POINT && member->gpu_checked;
    if (!told && member->gpu) {
        member->gpu_checked = true;
        return member->process == process ? check_gpu(analyzer, process, record, member) : 0;
    }
    return 0;
}

const struct check_group checks_setup = {.name = "setup", .setup = setup};
