/* draft.c: builds findings: sides, what they did, ranks, words. */
#include <stdlib.h>
#include <string.h>

#include "analyzer/findings.h"
#include "analyzer/model/process.h"

struct draft draft_new(const struct check *check, enum certainty certainty, const struct comm *comm)
{
    return (struct draft){.check = check,
                          .finding = {
                              .code = code_name(check->code),
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

void draft_say(struct draft *draft, struct text *what, const char *todo)
{
    draft->finding.what = text_take(what);
    draft->finding.todo = copy_text(draft, todo);
    if (!draft->finding.what)
        draft->failed = true;
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
