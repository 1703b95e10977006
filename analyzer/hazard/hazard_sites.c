/* hazard_sites.c: groups hazards by the two call sites that they lie between. */
#include "analyzer/hazard/hazard_sites.h"

#include <stdlib.h>

#include "analyzer/model/array.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"
#include "lib/base/invariant.h"
#include "lib/trace/names.h"

enum { SITES_MAX = 256 };

struct hazard_site {
    struct hazard_key key;
    bool reported, holds_draft;
    uint32_t finding;             /* 0 while not reported, or suppressed */
    uint64_t unreported, last_ns; /* since it was reported */
    struct draft draft;           /* of the first */
};

struct hazard_place hazard_place_of(const struct record *record)
{
    return (struct hazard_place){
        .stack = record->stack,
        .api = record->api,
        .function = api_class_of(record->api) == CLASS_LAUNCH ? record->launch.function : 0,
    };
}

static bool same_place(const struct hazard_place *a, const struct hazard_place *b)
{
    return a->stack == b->stack && a->function == b->function && a->api == b->api;
}

static bool same_key(const struct hazard_key *a, const struct hazard_key *b)
{
    if (a->comm != b->comm || a->rank != b->rank || a->certainty != b->certainty ||
        a->severity != b->severity)
        return false;
    return (same_place(&a->place[0], &b->place[0]) && same_place(&a->place[1], &b->place[1])) ||
           (same_place(&a->place[0], &b->place[1]) && same_place(&a->place[1], &b->place[0]));
}

static struct hazard_site *site_get(struct hazard_sites *sites, const struct hazard_key *key)
{
    for (uint32_t i = 0; i < sites->count; i++)
        if (same_key(&sites->site[i].key, key))
            return &sites->site[i];
    if (sites->count == SITES_MAX)
        return NULL;
    struct hazard_site *grown =
        array_room(sites->site, sizeof *grown, sites->count, &sites->capacity, 4);
    if (!grown)
        return NULL; /* one finding less */
    sites->site = grown;
    struct hazard_site *site = &sites->site[sites->count++];
    *site = (struct hazard_site){.key = *key};
    return site;
}

struct draft *hazard_sites_found(struct hazard_sites *sites, const struct hazard_key *key,
                                 uint64_t time_ns)
{
    struct hazard_site *site = site_get(sites, key);
    if (!site)
        return NULL;
    site->unreported++;
    site->last_ns = time_ns;
    sites->has_unreported = true;
    if (site->reported || site->holds_draft)
        return NULL;
    site->holds_draft = true;
    return &site->draft;
}

static void report_site(struct analyzer *analyzer, struct hazard_site *site)
{
    uint64_t times = site->unreported;
    invariant(!site->holds_draft || times,
              "a draft that is kept stands for a hazard that was found");
    site->unreported = 0;
    if (site->holds_draft) {
        site->holds_draft = false;
        site->reported = true;
        findings_report(analyzer, &site->draft, &site->finding);
        times--;
    }
    for (; times && site->finding; times--)
        findings_count(analyzer, site->finding, site->last_ns);
}

void hazard_sites_report(struct analyzer *analyzer, struct hazard_sites *sites)
{
    if (!sites->has_unreported)
        return;
    sites->has_unreported = false;
    for (uint32_t i = 0; i < sites->count; i++)
        report_site(analyzer, &sites->site[i]);
}

void hazard_sites_drop_unreported(struct hazard_sites *sites)
{
    for (uint32_t i = 0; i < sites->count; i++) {
        if (sites->site[i].holds_draft)
            draft_drop(&sites->site[i].draft);
        sites->site[i].holds_draft = false;
        sites->site[i].unreported = 0;
    }
    sites->has_unreported = false;
}

void hazard_sites_free(struct hazard_sites *sites)
{
    hazard_sites_drop_unreported(sites);
    free(sites->site);
    *sites = (struct hazard_sites){0};
}

struct act flight_act(const struct process *process, const struct flight *flight, char *name,
                      size_t bytes)
{
    if (flight->kind == FLIGHT_KERNEL)
        return kernel_act(process, &flight->record, name, bytes);
    return (struct act){.did = DID_CALLED, .call = call_of_record(&flight->record)};
}

void flight_values(const struct flight *flight, int side, struct values *values,
                   char title[COMM_TITLE_BYTES])
{
    values->flag[side] = flight->from_graph;
    if (flight->kind != FLIGHT_OPERATION)
        return;
    values->name[side] = comm_title(flight->member->comm, title);
    values->value[side] = (int64_t)flight->record.op.number;
}

void hazard_number(struct draft *draft, const struct flight *operation)
{
    draft->finding.number = operation->record.op.number;
    draft->finding.has_number = !operation->from_graph;
}
