/* draft.c: builds findings: sides, what they did, ranks, words. */
#include <stdlib.h>
#include <string.h>

#include "analyzer/environment/settings.h"
#include "analyzer/findings.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"

struct draft draft_new(const struct check *check, enum certainty certainty, const struct comm *comm)
{
    return (struct draft){.check = check,
                          .comm = comm,
                          .finding = {
                              .code = check->code,
                              .severity = check->severity,
                              .certainty = certainty,
                              .comm = comm ? comm->id : 0,
                              .times = 1,
                          }};
}

static char *copy_text(struct draft *draft, const char *text)
{
    char *copy = strdup(text ? text : "");
    if (!copy)
        draft->failed = true;
    return copy;
}

static void set_act(struct draft *draft, struct act *to, char **words, const struct act *act)
{
    act_free(to);
    free(*words);
    *words = act_words(act);
    if (act_copy(to, act) || !*words)
        draft->failed = true;
    if (!*words)
        *words = copy_text(draft, "");
}

struct finding_side *draft_side(struct draft *draft, const struct act *act, const struct site *site)
{
    if (draft->finding.sides == FINDING_SIDES_MAX)
        return NULL;
    struct finding_side *side = &draft->finding.side[draft->finding.sides++];
    *side = (struct finding_side){.process = -1};
    const char *phase = "";
    if (site) {
        if (site->process)
            side->process = site->process->index;
        phase = site_phase(site);
        side->stack = site->stack;
        side->stack_is_address = site->stack_is_address;
        side->since_ns = site->time_ns;
    }
    side->phase = copy_text(draft, phase);
    side->where = copy_text(draft, "");
    set_act(draft, &side->act, &side->call, act);
    return side;
}

struct finding_side *draft_side_record(struct draft *draft, const struct record *record,
                                       const struct site *site)
{
    return draft_side(draft, &(struct act){.did = DID_CALLED, .call = call_of_record(record)},
                      site);
}

struct finding_side *draft_side_signature(struct draft *draft, const struct signature *signature,
                                          const struct site *site)
{
    return draft_side(draft, &(struct act){.did = DID_CALLED, .call = signature_call(signature)},
                      site);
}

void draft_side_act(struct draft *draft, struct finding_side *side, const struct act *act)
{
    set_act(draft, &side->act, &side->call, act);
}

void draft_side_now(struct draft *draft, struct finding_side *side, const struct act *now,
                    const struct site *site)
{
    set_act(draft, &side->now, &side->where, now);
    side->where_stack = site ? site->stack : 0;
    side->where_stack_is_address = site && site->stack_is_address;
}

void draft_side_at(struct draft *draft, struct finding_side *side, const struct site *site)
{
    free(side->phase);
    side->phase = copy_text(draft, site_phase(site));
    side->process = site->process ? site->process->index : -1;
    side->stack = site->stack;
    side->stack_is_address = site->stack_is_address;
}

void draft_cover(struct draft *draft, const struct process *process)
{
    if (process && rankset_add(&draft->processes, process->index))
        draft->failed = true;
}

void draft_rank(struct draft *draft, struct finding_side *side, const struct member *member)
{
    if (rankset_add(&side->ranks, member_shown_rank(member)))
        draft->failed = true;
    draft_cover(draft, member->process);
}

void draft_cover_comm(struct draft *draft, const struct comm *comm)
{
    for (uint32_t i = 0; i < comm->members; i++)
        draft_cover(draft, comm->member[i]->process);
}

/* Its members were watched, and none has PyTorch loaded. */
static bool is_native(const struct comm *comm)
{
    char version[SETTING_TEXT_BYTES];
    for (uint32_t i = 0; comm && i < comm->members; i++) {
        const struct process *process = comm->member[i]->process;
        if (process->info.lacks || settings_value(process, "PyTorch", version))
            return false;
    }
    return comm && comm->members > 0;
}

void draft_headline(struct draft *draft, enum headline headline, enum advice advice,
                    const struct values *values)
{
    char title[COMM_TITLE_BYTES], label[COMM_LABEL_BYTES];
    struct values all = values ? *values : (struct values){0};
    if (draft->comm && !all.comm)
        all.comm = comm_title(draft->comm, title);
    if (draft->comm && !all.label)
        all.label = comm_label(draft->comm, label);
    all.is_native = is_native(draft->comm);
    draft->failed |= finding_say(&draft->finding, headline, advice, &all) != 0;
}

void draft_advise(struct draft *draft, enum advice advice)
{
    draft->failed |= finding_advise(&draft->finding, advice, NULL) != 0;
}

struct act kernel_act(const struct process *process, const struct record *record, char *name,
                      size_t bytes)
{
    const char *function = process_string(process, record->launch.function);
    if (!*function)
        return (struct act){.did = DID_LAUNCHED_UNNAMED};
    return (struct act){.did = DID_LAUNCHED_KERNEL,
                        .name = text_kernel_name(function, name, bytes)};
}

void draft_drop(struct draft *draft)
{
    finding_free(&draft->finding);
    rankset_free(&draft->processes);
}

/* In an order that does not depend on which side came first. Where the sides of several ranks are
 * merged, the peer of a send or receive does not count: it differs between ranks that do the same.
 */
void draft_add_fingerprint(struct draft *draft)
{
    struct finding *finding = &draft->finding;
    uint64_t sides = 0;
    for (int i = 0; i < finding->sides; i++)
        sides += act_hash(&finding->side[i].act, draft->merges_sides);
    uint64_t code = hash_text(HASH_START, code_name(finding->code));
    if (!finding->is_taken) /* it came with that of all that its host knew */
        finding->fingerprint = hash_bytes(code, &sides, sizeof sides);
}

static bool is_in_side(const struct finding *finding, int side, int rank)
{
    return side < finding->sides && rankset_has(&finding->side[side].ranks, rank);
}

/* Since when the process has been in a call, on the thread that entered one first; 0: on none. */
static uint64_t in_call_since(const struct process *process)
{
    uint64_t since_ns = 0;
    for (const struct thread *thread = process->threads; thread; thread = thread->hh.next)
        if (thread->in_call && (!since_ns || thread->enter_site.time_ns < since_ns))
            since_ns = thread->enter_site.time_ns;
    return since_ns;
}

/* Since when the ranks that wait have done nothing else. Side 0 is theirs; one that polls does so
 * at the latest since the hang was found. */
uint64_t draft_held_since(const struct analyzer *analyzer, const struct draft *draft)
{
    const struct finding *finding = &draft->finding;
    uint64_t held_ns = 0;
    if (code_family(draft->check->code) != FAMILY_HANG)
        return 0;
    for (int i = rankset_next(&draft->processes, 0); i >= 0;
         i = rankset_next(&draft->processes, i + 1)) {
        const struct process *process = analyzer->process[i];
        uint64_t since_ns = in_call_since(process);
        if (!since_ns && is_in_side(finding, 0, process_shown_rank(process)))
            since_ns = finding->last_ns;
        if (since_ns > held_ns)
            held_ns = since_ns;
    }
    return held_ns ? held_ns : finding->last_ns;
}
