/* silent_host.c: DC212: a host of a job from which nothing comes any more (notice_silent, of the
 * job's hub). */
#include <string.h>

#include "analyzer/findings.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"
#include "analyzer/states.h"
#include "lib/base/moment.h"

enum { SILENT_RANKS_BYTES = 128, SILENT_TIME_BYTES = 64 };

/* Kept with the host's first process. */
struct silence {
    uint32_t finding; /* id; 0: it sends */
};

/* How far the host's ranks were on the communicator on which they were furthest. */
static void add_reached(const struct host *host, struct text *what)
{
    const struct member *furthest = NULL;
    uint64_t least = UINT64_MAX;
    char name[COMM_TITLE_BYTES];
    for (const struct process *process = host->processes; process; process = process->host_next)
        for (const struct member *member = process->members; member; member = member->process_next)
            if (!furthest || member->next > furthest->next)
                furthest = member;
    if (!furthest)
        return;
    for (const struct process *process = host->processes; process; process = process->host_next)
        for (const struct member *member = process->members; member; member = member->process_next)
            if (member->comm == furthest->comm && member->next < least)
                least = member->next;
    text_add(what, "; it had called %llu", (unsigned long long)least);
    if (furthest->next > least)
        text_add(what, " to %llu", (unsigned long long)furthest->next);
    text_add(what, " collectives of %s", comm_title(furthest->comm, name));
}

static void silent_report(struct analyzer *analyzer, const struct process *first, uint64_t since_ns,
                          uint32_t *id)
{
    struct draft draft = draft_new(&check_silent_host, POSSIBLE, NULL);
    struct text what = {0};
    char ranks[SILENT_RANKS_BYTES], since[SILENT_TIME_BYTES];
    struct finding_side *side = draft_side(&draft, &(struct act){.did = DID_SILENT}, NULL);
    side->process = first->index;
    for (const struct process *process = first->host->processes; process;
         process = process->host_next) {
        int rank = process_shown_rank(process);
        if (process->ended)
            continue;
        if (rank >= 0 && rankset_add(&side->ranks, rank))
            draft.failed = true;
        draft_cover(&draft, process);
    }
    draft.finding.first_ns = draft.finding.last_ns = since_ns;
    text_add(&what, "host %s with %s %s has been silent since %s", first->info.host,
             rankset_count(&side->ranks) == 1 ? "rank" : "ranks",
             rankset_text(&side->ranks, ranks, sizeof ranks),
             moment_date(since_ns, since, sizeof since));
    add_reached(first->host, &what);
    draft_say(
        &draft, &what,
        "See whether the host is up and reaches the hub, and whether its 'ddpcheck run' still "
        "runs.");
    findings_report(analyzer, &draft, id);
}

static void silent_on_silent(struct analyzer *analyzer, const struct event *event)
{
    struct process *process = event->process;
    struct silence *silence =
        state_get(analyzer, &check_silent_host, OWNER_PROCESS, &process->states);
    uint64_t since_ns = event->record->silent.realtime_ns;
    if (!silence)
        return;
    if (since_ns && !silence->finding)
        silent_report(analyzer, process, since_ns, &silence->finding);
    if (!since_ns && silence->finding) {
        findings_resolve(analyzer, silence->finding, "the host sends again");
        silence->finding = 0;
    }
}

const struct check check_silent_host = {
    .code = DC212,
    .name = "silent-host",
    .family = FAMILY_TRACE,
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
    .explains = CODES(CODES_HANGS),
    .title = "a host of the job is silent",
    .text =
        "The hub of a job on several hosts (ddpcheck hub) has received nothing from a host for 5 "
        "seconds: each sends a sign of life every second.\n\n"
        "The host is down or cut off from the network, or its 'ddpcheck run' was killed. How far "
        "its ranks were is what it sent last. The other ranks wait for these ranks as soon as they "
        "need them; such waits are not reported beside this finding.\n\n"
        "It is possible only: the job may go on although its host can't reach the hub. If the host "
        "sends again, the finding is marked as resolved.",
    .causes = CAUSES(
        {"The host is down or restarts: power, a kernel panic, a node that its scheduler took "
         "away.",
         "ping and ssh get no answer; the scheduler's log has the node."},
        {"'ddpcheck run' was killed there: lack of memory, or the job's clean-up.",
         "The host answers, and its ranks may still run: dmesg, memory.events of the cgroup."},
        {"The network between the host and the hub is cut or full; the ranks' own network may be "
         "another.",
         "The host's own report goes on; from there, connections to the hub's port fail."}),
    .on = {[EVENT_SILENT] = silent_on_silent},
    .state_bytes = {[OWNER_PROCESS] = sizeof(struct silence)},
};
