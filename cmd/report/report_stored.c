/* report_stored.c: unites what was found live with what is found again. */
#include "cmd/report/report_stored.h"

#include "analyzer/check.h"
#include "lib/finding/finding_store.h"

static struct finding *find_united(const struct report *report, uint64_t fingerprint)
{
    for (int i = 0; i < report->united.count; i++)
        if (report->united.finding[i].fingerprint == fingerprint)
            return &report->united.finding[i];
    return NULL;
}

/* Rests on copies, kernels and ranges, which are the records that are dropped. */
static bool rests_on_dropped(const struct check *check)
{
    return code_family(check->code) == FAMILY_HAZARD || code_family(check->code) == FAMILY_DEVICE ||
           code_family(check->code) == FAMILY_TRAINING || code_family(check->code) == FAMILY_SPEED;
}

/* Of several hosts each collector saw its own: what it thought of others is not taken from it.
 * Where finished calls are gone, the collector of one host has seen more of them than there is to
 * check again. */
static bool is_taken(const struct report *report, const struct check *check)
{
    bool is_alone = trace_database_count(report->trace) == 1;
    if (report->dropped.calls && is_alone)
        return code_family(check->code) != FAMILY_TRACE;
    return rests_on_dropped(check) && (check->scope == SCOPE_PROCESS || is_alone);
}

/* Found live by a check of other records, which are all there: shown only if it is not found again.
 * What the trace as a whole shows is not taken from before. */
static bool is_added(const struct report *report, const struct check *check)
{
    return !rests_on_dropped(check) && code_family(check->code) != FAMILY_TRACE &&
           trace_database_count(report->trace) == 1;
}

struct stored_choice {
    bool (*is_wanted)(const struct report *report, const struct check *check); /* NULL: all are */
    int64_t first_id;
    bool is_each; /* also several with one fingerprint */
};

/* Newest first, so that of several with one fingerprint that one is taken. */
static int read_stored(struct report *report, int database, const struct stored_choice *choice,
                       struct error *err)
{
    struct finding_list stored = {0};
    /* What can't be read is damage, which is reported elsewhere. */
    int result = finding_list_load(&stored, report->trace, database, choice->first_id, err) < 0 ? -1
                                                                                                : 0;
    for (int i = stored.count; !result && i-- > 0;) {
        struct finding *finding = &stored.finding[i];
        const struct check *check = check_of(finding->code);
        if (!check || (choice->is_wanted && !choice->is_wanted(report, check)) ||
            (!choice->is_each && find_united(report, finding->fingerprint)))
            continue;
        struct finding *taken = finding_list_add(&report->united);
        if (!taken) {
            result = error_memory(err, "can't analyse the trace");
            break;
        }
        *taken = *finding;                                       /* with all that it owns */
        taken->id = UINT32_MAX - (uint32_t)report->united.count; /* of no finding of the analyzer */
        *finding = (struct finding){0};
    }
    finding_list_free(&stored);
    return result;
}

struct found_again {
    struct report *report;
    bool failed;
};

/* A missing record can look like a fault: whether it is one, the collector saw, if it came to the
 * end. */
static void add_found_again(void *context, const struct finding *finding)
{
    struct found_again *found = context;
    const struct check *check = check_of(finding->code);
    if (check && is_taken(found->report, check) &&
        (rests_on_dropped(check) || trace_complete(found->report->trace) ||
         find_united(found->report, finding->fingerprint)))
        return;
    struct finding *added = finding_list_add(&found->report->united);
    if (!added || finding_copy(added, finding) < 0)
        found->failed = true;
}

int stored_findings_unite(struct report *report, struct error *err)
{
    const struct stored_choice taken = {.is_wanted = is_taken}, added = {.is_wanted = is_added};
    struct found_again found = {.report = report};
    report->dropped = trace_dropped(report->trace);
    if (!report->dropped.records)
        return 0;
    report->is_united = true;
    for (int i = 0; i < trace_database_count(report->trace); i++)
        if (read_stored(report, i, &taken, err) < 0)
            return -1;
    analyzer_visit_findings(report->analyzer, add_found_again, &found);
    if (found.failed)
        return error_memory(err, "can't analyse the trace");
    for (int i = 0; i < trace_database_count(report->trace); i++)
        if (read_stored(report, i, &added, err) < 0)
            return -1;
    finding_list_sort(&report->united);
    return 0;
}

int stored_findings_take(struct report *report, struct error *err)
{
    const struct stored_choice choice = {.first_id = FINDING_TAKEN_FIRST, .is_each = true};
    int result = 0;
    for (int i = 0; i < trace_database_count(report->trace) && result == 0; i++)
        result = read_stored(report, i, &choice, err);
    for (int i = 0; i < report->united.count && result == 0; i++) {
        uint32_t id = 0;
        if (analyzer_take_finding(report->analyzer, &report->united.finding[i], &id) < 0)
            result = error_memory(err, "can't analyse the trace");
    }
    finding_list_free(&report->united);
    return result;
}
