/* report_faults.c: gathers findings of one fault. */
#include "cmd/report/report_faults.h"

#include <stdio.h>
#include <stdlib.h>

enum { FAULT_RANKS_BYTES = 256 };

struct gathered_faults {
    struct report_faults *faults;
    struct report *report;
    bool merge;
};

static struct report_fault *find_report_fault(const struct report_faults *faults,
                                              const struct fault_key *key)
{
    for (int i = 0; i < faults->count; i++)
        if (fault_is_same(&faults->fault[i].key, key))
            return &faults->fault[i];
    return NULL;
}

static void add_to_fault(struct report_fault *fault, const struct finding *finding)
{
    fault->others++;
    fault->comms += finding->comm != fault->last_comm && finding->comm != fault->finding->comm;
    fault->last_comm = finding->comm;
    for (int i = 0; i < finding->sides; i++)
        rankset_unite(&fault->ranks, &finding->side[i].ranks);
}

static void gather_fault(void *context, const struct finding *finding)
{
    struct gathered_faults *gathered = context;
    struct report_faults *faults = gathered->faults;
    if (gathered->merge && finding->is_consequence)
        return;
    struct fault_key key = fault_of(gathered->report->trace, finding);
    struct report_fault *known = gathered->merge ? find_report_fault(faults, &key) : NULL;
    if (known) {
        add_to_fault(known, finding);
        return;
    }
    struct report_fault *more =
        reallocarray(faults->fault, (size_t)faults->count + 1, sizeof *more);
    if (!more) {
        faults->failed = true;
        return;
    }
    faults->fault = more;
    more[faults->count++] =
        (struct report_fault){.finding = finding, .key = key, .last_comm = finding->comm};
}

void report_faults_find(struct report_faults *faults, struct report *report,
                        enum finding_state state, bool merge)
{
    struct gathered_faults gathered = {faults, report, merge};
    *faults = (struct report_faults){0};
    report_visit_findings(report, state, gather_fault, &gathered);
}

void report_faults_free(struct report_faults *faults)
{
    for (int i = 0; i < faults->count; i++)
        rankset_free(&faults->fault[i].ranks);
    free(faults->fault);
    *faults = (struct report_faults){0};
}

char *report_fault_others(const struct report_fault *fault, char *text, size_t bytes)
{
    char ranks[FAULT_RANKS_BYTES];
    const char *rank = plural((uint64_t)rankset_count(&fault->ranks), "rank", "ranks");
    rankset_text(&fault->ranks, ranks, sizeof ranks);
    *text = '\0';
    if (fault->others && fault->comms == fault->others)
        snprintf(text, bytes, "The same on %d more %s, of %s %s.", fault->comms,
                 plural((uint64_t)fault->comms, "communicator", "communicators"), rank, ranks);
    else if (fault->others)
        snprintf(text, bytes, "%d more %s at the same line, of %s %s; --verbose shows each.",
                 fault->others, plural((uint64_t)fault->others, "finding", "findings"), rank,
                 ranks);
    return text;
}
