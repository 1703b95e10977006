/* fault.c: finds out which findings are one fault. */
#include "lib/finding/fault.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/finding/finding_site.h"

struct fault_key fault_of(struct trace *trace, const struct finding *finding)
{
    struct fault_key fault = {
        .code = finding->code,
        .certainty = finding->certainty,
        .state = finding->state,
        .fingerprint = finding->fingerprint,
    };
    if (trace)
        finding_location(trace, finding, FAULT_LOCATION, fault.location, sizeof fault.location);
    return fault;
}

bool fault_is_same(const struct fault_key *a, const struct fault_key *b)
{
    if (a->code != b->code || a->certainty != b->certainty || a->state != b->state)
        return false;
    return a->fingerprint == b->fingerprint ||
           (*a->location && strcmp(a->location, b->location) == 0);
}

static struct fault_group *find_fault_group(const struct fault_list *list,
                                            const struct fault_key *key)
{
    for (int i = 0; i < list->count; i++)
        if (fault_is_same(&list->fault[i].key, key))
            return &list->fault[i];
    return NULL;
}

static void unite_fault(struct fault_list *list, struct fault_group *fault,
                        const struct finding *finding)
{
    fault->others++;
    fault->comms += finding->comm != fault->last_comm && finding->comm != fault->finding->comm;
    fault->last_comm = finding->comm;
    fault->times += finding->times;
    if (finding->last_ns > fault->last_ns)
        fault->last_ns = finding->last_ns;
    for (int i = 0; i < finding->sides; i++) {
        const struct finding_side *side = &finding->side[i];
        bool is_odd = i && fault->finding->side[1].act.did == side->act.did;
        list->failed |= rankset_unite(&fault->ranks, &side->ranks) < 0 ||
                        (is_odd && rankset_unite(&fault->odd, &side->ranks) < 0);
    }
}

void fault_list_add(struct fault_list *list, struct trace *trace, const struct finding *finding,
                    bool merge)
{
    struct fault_key key = fault_of(trace, finding);
    struct fault_group *known = merge ? find_fault_group(list, &key) : NULL;
    if (known) {
        unite_fault(list, known, finding);
        return;
    }
    if (!ARRAY_ADD(list->fault, list->count)) {
        list->failed = true;
        return;
    }
    list->fault[list->count++] = (struct fault_group){.finding = finding,
                                                      .key = key,
                                                      .last_comm = finding->comm,
                                                      .times = finding->times,
                                                      .last_ns = finding->last_ns};
}

char *fault_odd_words(const struct fault_group *fault, char *text, size_t bytes)
{
    char ranks[FAULT_LOCATION];
    const struct finding_side *side = &fault->finding->side[1];
    *text = '\0';
    if (rankset_count(&fault->odd) && did_is_awaited(side->act.did))
        snprintf(text, bytes, "%s %s", rankset_words(&fault->odd, ranks, sizeof ranks), side->call);
    return text;
}

void fault_list_free(struct fault_list *list)
{
    for (int i = 0; i < list->count; i++) {
        rankset_free(&list->fault[i].ranks);
        rankset_free(&list->fault[i].odd);
    }
    free(list->fault);
    *list = (struct fault_list){0};
}
