/* report_merge.c: members, findings and threads of several hosts in one report. */
#include "cmd/report/report_merge.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/consequence.h"
#include "cmd/report/report_stored.h"

enum { UNSEEN_MAX = 4096 }; /* ranks without records are listed up to this rank */

/* The job's number of each process of a database, -1 behind the last; NULL when memory is short. */
static int *number_processes(const struct report *job, int database)
{
    int count = 0;
    while (trace_process_of(job->trace, database, count) >= 0)
        count++;
    int *number = calloc((size_t)count + 1, sizeof *number);
    for (int i = 0; i <= count && number; i++)
        number[i] = trace_process_of(job->trace, database, i);
    return number;
}

static int merge_members(struct report *job, struct report *host, const int *process)
{
    if (!host->members)
        return 0;
    struct member_state *grown =
        reallocarray(job->member, (size_t)job->members + (size_t)host->members, sizeof *grown);
    if (!grown)
        return -1;
    job->member = grown;
    for (int i = 0; i < host->members; i++) {
        grown[job->members] = host->member[i];
        if (host->member[i].process >= 0)
            grown[job->members].process = process[host->member[i].process];
        job->members++;
    }
    host->members = 0;
    return 0;
}

static int merge_findings(struct report *job, struct report *host, const int *process)
{
    while (host->united.count) {
        struct finding *added = finding_list_add(&job->united);
        if (!added)
            return -1;
        *added = host->united.finding[--host->united.count];
        for (int i = 0; i < added->sides; i++)
            if (added->side[i].process >= 0)
                added->side[i].process = process[added->side[i].process];
    }
    return 0;
}

int report_merge(struct report *job, struct report *host, int database)
{
    int *process = number_processes(job, database);
    if (!process || merge_members(job, host, process) || merge_findings(job, host, process)) {
        free(process);
        return -1;
    }
    for (int i = 0; process[i] >= 0; i++) {
        job->lost[process[i]] = host->lost[i];
        if (host->losses && host->losses[i].first.api &&
            (analyzer_feed(job->analyzer, process[i], &host->losses[i].first) ||
             analyzer_feed(job->analyzer, process[i], &host->losses[i].last)))
            job->standings.failed = true;
    }
    standings_append(&job->standings, &host->standings, process);
    if (host->begin_ns && (!job->begin_ns || host->begin_ns < job->begin_ns))
        job->begin_ns = host->begin_ns;
    if (host->end_ns > job->end_ns)
        job->end_ns = host->end_ns;
    job->events += host->events;
    job->skipped += host->skipped;
    if (job->forgotten < host->forgotten) /* hosts share communicators */
        job->forgotten = host->forgotten;
    free(process);
    return 0;
}

/* Where its communicator came first, of the hosts in their order. */
struct comm_place {
    uint64_t comm;
    int place;
};

static int compare_places(const void *left, const void *right)
{
    const struct comm_place *a = left, *b = right;
    if (a->comm != b->comm)
        return a->comm < b->comm ? -1 : 1;
    return (a->place > b->place) - (a->place < b->place);
}

struct placed_member {
    int place;
    struct member_state member;
};

static int compare_member_keys(const void *left, const void *right)
{
    const struct placed_member *a = left, *b = right;
    if (a->place != b->place)
        return a->place < b->place ? -1 : 1;
    if (a->member.rank != b->member.rank)
        return a->member.rank < b->member.rank ? -1 : 1;
    return (a->member.process < b->member.process) - (a->member.process > b->member.process);
}

static int find_place(const struct comm_place *place, int count, uint64_t comm)
{
    int low = 0, high = count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (place[middle].comm < comm)
            low = middle + 1;
        else
            high = middle;
    }
    return place[low].place;
}

/* Its ranks that no database has. Returns 0, or -1 when memory is short. */
static int add_unseen(struct report *job, const struct member_state *like, int from, int to)
{
    for (int rank = from; rank < to && rank - from < UNSEEN_MAX; rank++) {
        struct member_state unseen = {.comm = like->comm,
                                      .rank = rank,
                                      .shown_rank = rank,
                                      .nranks = like->nranks,
                                      .process = -1,
                                      .device = RECORD_NO_DEVICE,
                                      .where = "not seen",
                                      .phase = "",
                                      .last_call = "",
                                      .site = ""};
        memcpy(unseen.label, like->label, sizeof unseen.label);
        if (member_state_copy(&job->member[job->members], &unseen))
            return -1;
        job->members++;
        job->unseen++;
    }
    return 0;
}

/* Behind the last member of the communicator that begins at `from`. */
static int end_of_comm(const struct placed_member *sorted, int count, int from)
{
    int end = from;
    while (end < count && sorted[end].place == sorted[from].place)
        end++;
    return end;
}

static int count_member_rows(const struct placed_member *sorted, int count)
{
    int rows = count;
    for (int i = 0; i < count; i = end_of_comm(sorted, count, i))
        if (sorted[i].member.nranks > 0)
            rows += sorted[i].member.nranks; /* at most: most of them were seen */
    return rows;
}

/* The members of one communicator. One that two databases have, whose job was started again or
 * whose rank two callers were given, is there once. */
static int take_members(struct report *job, const struct placed_member *sorted, int count)
{
    int next = 0; /* rank */
    for (int i = 0; i < count; i++) {
        struct member_state member = sorted[i].member;
        member.nranks = sorted->member.nranks; /* hosts may have different numbers */
        if (i && member.rank == sorted[i - 1].member.rank)
            continue;
        if (add_unseen(job, &member, next, member.rank) ||
            member_state_copy(&job->member[job->members], &member))
            return -1;
        job->members++;
        next = member.rank + 1;
    }
    return add_unseen(job, &sorted->member, next, sorted->member.nranks);
}

static int take_each_once(struct report *job, const struct placed_member *sorted, int count)
{
    for (int i = 0, end; i < count; i = end) {
        end = end_of_comm(sorted, count, i);
        if (take_members(job, &sorted[i], end - i))
            return -1;
    }
    return 0;
}

static void place_merged_members(const struct member_state *member, int count,
                                 struct comm_place *place, struct placed_member *sorted)
{
    for (int i = 0; i < count; i++)
        place[i] = (struct comm_place){member[i].comm, i};
    qsort(place, (size_t)count, sizeof *place, compare_places);
    for (int i = 0; i < count; i++)
        sorted[i] = (struct placed_member){find_place(place, count, member[i].comm), member[i]};
    qsort(sorted, (size_t)count, sizeof *sorted, compare_member_keys);
}

static int sort_members(struct report *job)
{
    struct member_state *member = job->member;
    int count = job->members, result = -1;
    struct comm_place *place = calloc((size_t)count + 1, sizeof *place);
    struct placed_member *sorted = calloc((size_t)count + 1, sizeof *sorted);
    job->members = 0;
    job->member = NULL;
    if (place && sorted) {
        place_merged_members(member, count, place, sorted);
        job->member = calloc((size_t)count_member_rows(sorted, count) + 1, sizeof *job->member);
        result = job->member ? take_each_once(job, sorted, count) : -1;
    }
    for (int i = 0; i < count; i++)
        member_state_free(&member[i]);
    free(member);
    free(place);
    free(sorted);
    return result;
}

static bool ranks_meet(const struct finding *a, const struct finding *b)
{
    for (int i = 0; i < a->sides; i++)
        for (int k = 0; k < b->sides; k++)
            for (int rank = rankset_next(&a->side[i].ranks, 0); rank >= 0;
                 rank = rankset_next(&a->side[i].ranks, rank + 1))
                if (rankset_has(&b->side[k].ranks, rank))
                    return true;
    return false;
}

/* Of findings of different analyses. A hang held its ranks at the latest when it was found. */
static bool is_cause_of(const struct finding *cause, const struct finding *finding)
{
    const struct symptom causing = {check_of(cause->code), cause, cause->last_ns},
                         symptom = {check_of(finding->code), finding, finding->last_ns};
    if (!causing.check || !symptom.check || cause->state != FINDING_OPEN ||
        finding->state != FINDING_OPEN)
        return false;
    return is_consequence(&symptom, &causing) &&
           ((finding->comm && cause->comm == finding->comm) || ranks_meet(cause, finding));
}

static bool is_same_finding(const struct finding *a, const struct finding *b)
{
    return a->fingerprint == b->fingerprint && a->comm == b->comm && a->number == b->number;
}

/* By one of the other kind: what a host's analysis and the hub's say of their own is settled. */
static bool is_superfluous(const struct finding_list *united, int hosts, int number)
{
    const struct finding *finding = &united->finding[number];
    bool is_host = number < hosts;
    for (int i = is_host ? hosts : 0; i < (is_host ? united->count : hosts); i++) {
        const struct finding *other = &united->finding[i];
        bool mutual = is_cause_of(finding, other) && finding->first_ns <= other->first_ns;
        if ((is_cause_of(other, finding) && !mutual) ||
            (is_host && is_same_finding(other, finding)))
            return true;
    }
    return false;
}

static void take_losses(void *context, const struct finding *finding)
{
    struct report *job = context;
    if (finding->code != DC901)
        return;
    struct finding *added = finding_list_add(&job->united);
    if (!added || finding_copy(added, finding) < 0)
        job->standings.failed = true;
}

/* Of findings in the order of time. Returns 0, or -1 when memory is short. */
static int join_host_findings(struct finding_list *united)
{
    int kept = 0, result = 0;
    for (int i = 0; i < united->count; i++) {
        struct finding *first = NULL, *finding = &united->finding[i];
        for (int k = 0; k < kept && !first; k++)
            if (finding_can_join(&united->finding[k], finding))
                first = &united->finding[k];
        if (!first) {
            united->finding[kept++] = *finding;
            continue;
        }
        result |= finding_join(first, finding);
        finding_free(finding);
    }
    united->count = kept;
    return result;
}

static int earlier_finding_first(const void *left, const void *right)
{
    const struct finding *a = left, *b = right;
    return (a->first_ns > b->first_ns) - (a->first_ns < b->first_ns);
}

int report_merge_hosts(struct report *job)
{
    struct finding_list *united = &job->united;
    if (analyzer_finish(job->analyzer))
        return -1;
    analyzer_visit_findings(job->analyzer, take_losses, job);
    if (united->count)
        qsort(united->finding, (size_t)united->count, sizeof *united->finding,
              earlier_finding_first);
    return join_host_findings(united);
}

static void drop_superfluous(struct finding_list *united, int hosts)
{
    bool *drop = calloc((size_t)united->count + 1, sizeof *drop);
    int kept = 0;
    if (!drop)
        return; /* they are shown beside their cause */
    for (int i = 0; i < united->count; i++)
        drop[i] = is_superfluous(united, hosts, i);
    for (int i = 0; i < united->count; i++)
        if (drop[i])
            finding_free(&united->finding[i]);
        else
            united->finding[kept++] = united->finding[i];
    united->count = kept;
    free(drop);
}

int report_merge_end(struct report *job, int hosts)
{
    standings_sort(&job->standings);
    if (sort_members(job))
        return -1;
    drop_superfluous(&job->united, hosts);
    for (int i = 0; i < job->united.count; i++)
        job->united.finding[i].id = (uint32_t)i + 1;
    finding_list_sort(&job->united);
    return 0;
}
