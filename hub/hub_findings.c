/* hub_findings.c: what hosts' own analyses found: the same on many hosts is one finding of the
 * job's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/finding_items.h"
#include "hub/hub_internal.h"
#include "lib/base/invariant.h"
#include "lib/trace/names.h"

enum { FAULTS_MAX = 1024 }; /* more different ones each host reports by itself */

static const uint64_t judge_every_ns = 200000000;

/* Makes room if no host has one of those that were any more. */
static bool has_room(struct hub *hub)
{
    struct hub_fault *fault = hub->found.faults;
    if (HASH_COUNT(hub->found.faults) < FAULTS_MAX)
        return true;
    while (fault && fault->facts)
        fault = fault->hh.next;
    if (fault) {
        HASH_DEL(hub->found.faults, fault);
        free(fault);
    }
    return fault != NULL;
}

static struct hub_fault *find_fault(struct hub *hub, const struct hub_fact *fact)
{
    const struct finding *finding = &fact->finding;
    bool merges = finding->merges_ranks || finding->merges_sides;
    struct hub_fault key = {.key = {.fingerprint = finding->fingerprint,
                                    .comm = finding->comm,
                                    .sides = (uint64_t)finding->sides,
                                    .alone = merges ? NULL : fact}},
                     *fault;
    TABLE_FIND(hub->found.faults, &key.key, fault);
    if (fault)
        return fault;
    if (!has_room(hub)) {
        if (!hub->found.is_full)
            fprintf(stderr,
                    "ddpcheck: hub: the hosts have more than %d different findings; "
                    "each host reports further ones itself\n",
                    FAULTS_MAX);
        hub->found.is_full = true;
        return NULL;
    }
    if ((fault = calloc(1, sizeof *fault))) {
        fault->key = key.key;
        TABLE_ADD(hub->found.faults, key, fault);
        if (TABLE_ADDED(fault))
            return fault;
        free(fault);
    }
    hub_drop_for_memory(hub, "a finding of a host");
    return NULL;
}

/* NULL when the host has sent too many, or memory is short. */
static struct hub_fact *find_fact(struct hub *hub, struct hub_host *host, uint32_t id)
{
    struct hub_fact key = {.key = {.host = host, .id = id}}, *fact;
    TABLE_FIND(hub->found.facts, &key.key, fact);
    if (fact)
        return fact;
    if (host->findings == HOST_FINDINGS_MAX) {
        hub_refuse(hub, host, "it has more findings than a host may send");
        return NULL;
    }
    if ((fact = calloc(1, sizeof *fact))) {
        fact->key = key.key;
        TABLE_ADD(hub->found.facts, key, fact);
        if (TABLE_ADDED(fact)) {
            host->findings++;
            return fact;
        }
        free(fact);
    }
    hub_refuse_for_memory(hub, host);
    return NULL;
}

/* The hub's numbers in place of the host's. */
static void number_processes_of(struct hub_host *host, struct finding *finding)
{
    for (int i = 0; i < finding->sides; i++) {
        struct finding_side *side = &finding->side[i];
        const struct hub_process *process = NULL;
        if (side->process >= 0)
            process = hub_process_find(host, (uint32_t)side->process);
        side->process = process ? process->number : -1;
    }
}

/* What was found before is withdrawn unless other hosts have it. */
static void leave_fault(struct hub *hub, struct hub_fact *fact)
{
    struct hub_fault *fault = fact->fault;
    struct hub_fact **link = &fault->facts;
    while (*link && *link != fact)
        link = &(*link)->fault_next;
    invariant(*link, "a fact is in the list of its fault");
    *link = fact->fault_next;
    fact->fault = NULL;
    fault->changed = true;
    if (fault->facts)
        return;
    fact->finding.state = FINDING_RESOLVED;
    if (analyzer_take_finding(hub->analyzer, &fact->finding, &fault->id) < 0)
        hub_drop_for_memory(hub, "a withdrawn finding");
}

static void enter_fault(struct hub *hub, struct hub_fact *fact)
{
    struct hub_fault *fault = find_fault(hub, fact);
    if (!fault)
        return;
    fault->changed = hub->found.changed = true;
    if (fact->fault)
        return;
    fact->fault = fault;
    fact->fault_next = fault->facts;
    fault->facts = fact;
}

void hub_take_side(struct hub *hub, struct hub_host *host, const struct item_side *side)
{
    if (hub->found.sides < ITEM_SIDES_MAX)
        hub->found.side[hub->found.sides++] = *side;
    else
        hub_refuse(hub, host, "a finding of it has too many sides");
}

static void time_finding_by_hub(const struct hub_host *host, struct finding *finding)
{
    finding->first_ns = hub_time_of(host, finding->first_ns);
    finding->last_ns = hub_time_of(host, finding->last_ns);
    for (int i = 0; i < finding->sides; i++)
        if (finding->side[i].since_ns)
            finding->side[i].since_ns = hub_time_of(host, finding->side[i].since_ns);
}

void hub_take_finding(struct hub *hub, struct hub_host *host, const struct item_finding *item)
{
    struct finding finding;
    int taken = finding_items_take(&finding, item, hub->found.side, hub->found.sides);
    hub->found.sides = 0;
    if (taken == 0)
        hub_refuse(hub, host, "it has a finding that this version does not know");
    struct hub_fact *fact = taken > 0 ? find_fact(hub, host, item->id) : NULL;
    if (taken < 0)
        hub_refuse_for_memory(hub, host);
    if (!fact) {
        if (taken > 0)
            finding_free(&finding);
        return;
    }
    number_processes_of(host, &finding);
    time_finding_by_hub(host, &finding);
    bool is_other = fact->fault &&
                    (fact->finding.fingerprint != finding.fingerprint ||
                     fact->finding.comm != finding.comm || fact->finding.sides != finding.sides);
    if (is_other)
        leave_fault(hub, fact);
    finding_free(&fact->finding);
    fact->finding = finding;
    enter_fault(hub, fact);
}

void hub_take_text(struct hub *hub, struct hub_host *host, const struct item_record *item)
{
    const struct hub_process *process = hub_process_find(host, item->process);
    bool is_text = item->record.api == API_notice_string || item->record.api == API_notice_stack ||
                   item->record.api == API_notice_python_stack;
    if (!process || !is_text)
        hub_refuse(hub, host, "it has a record that nobody asked for");
    else
        hub_feed(hub, process->number, &item->record);
}

/* The one that a merged finding is of: the first of the certain ones; once none is open, any. */
static bool fact_comes_before(const struct finding *a, const struct finding *b)
{
    if (a->state != b->state)
        return a->state == FINDING_OPEN;
    if (a->certainty != b->certainty)
        return a->certainty == CERTAIN;
    return a->first_ns < b->first_ns;
}

/* Returns 0, or -1 when memory is short. */
static int merge_facts(const struct hub_fault *fault, struct finding *merged)
{
    const struct hub_fact *first = fault->facts;
    for (const struct hub_fact *fact = fault->facts; fact; fact = fact->fault_next)
        if (fact_comes_before(&fact->finding, &first->finding))
            first = fact;
    int result = finding_copy(merged, &first->finding);
    for (const struct hub_fact *fact = fault->facts; fact && result == 0; fact = fact->fault_next)
        if (fact != first && finding_can_join(merged, &fact->finding))
            result = finding_join(merged, &fact->finding);
    return result;
}

static void judge_fault(struct hub *hub, struct hub_fault *fault)
{
    struct finding merged;
    fault->changed = false;
    if (!fault->facts)
        return;
    if (merge_facts(fault, &merged) < 0 ||
        analyzer_take_finding(hub->analyzer, &merged, &fault->id) < 0) {
        hub_drop_for_memory(hub, "a finding of hosts");
        fault->changed = hub->found.changed = true; /* judged once more, when memory is there */
    }
    finding_free(&merged);
}

void hub_judge_findings(struct hub *hub)
{
    if (!hub->found.changed)
        return;
    hub->found.judged_ns = hub->now_ns;
    hub->found.changed = false;
    for (struct hub_fault *fault = hub->found.faults; fault; fault = fault->hh.next)
        if (fault->changed)
            judge_fault(hub, fault);
}

void hub_judge_due_findings(struct hub *hub)
{
    if (hub->now_ns - hub->found.judged_ns >= judge_every_ns)
        hub_judge_findings(hub);
}

void hub_findings_free(struct hub *hub)
{
    struct hub_fact *fact, *next_fact;
    HASH_ITER(hh, hub->found.facts, fact, next_fact) {
        HASH_DEL(hub->found.facts, fact);
        finding_free(&fact->finding);
        free(fact);
    }
    struct hub_fault *fault, *next_fault;
    HASH_ITER(hh, hub->found.faults, fault, next_fault) {
        HASH_DEL(hub->found.faults, fault);
        free(fault);
    }
}
