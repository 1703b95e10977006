/* silent_host.c: DC212: hosts of a job from which nothing comes any more (notice_silent, of the
 * job's hub). */
#include <stdlib.h>

#include "analyzer/findings.h"
#include "analyzer/model/array.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"
#include "analyzer/states.h"
#include "lib/base/name_ranges.h"

/* Hosts that fell silent together: one cause is likely. */
struct silent_hosts {
    uint32_t finding; /* id; 0: not reported yet */
    uint64_t since_ns;
    struct process **first; /* of each host */
    uint32_t hosts, capacity;
    bool changed; /* since it was reported */
    struct silent_hosts *next;
};

struct silences {
    struct silent_hosts *list;
    struct silent_hosts *open; /* to which the records in hand add; NULL: none yet */
};

/* Kept with the host's first process. */
struct silence {
    struct silent_hosts *hosts; /* NULL: it sends */
};

static void silences_end(void *state)
{
    struct silences *silences = state;
    while (silences->list) {
        struct silent_hosts *next = silences->list->next;
        free(silences->list->first);
        free(silences->list);
        silences->list = next;
    }
}

/* How far the ranks of all these hosts were on the communicator on which one was furthest, which it
 * returns; NULL: on none. */
static const struct comm *find_reached(const struct silent_hosts *hosts, int64_t *least,
                                       int64_t *most)
{
    const struct member *furthest = NULL;
    *least = INT64_MAX;
    for (uint32_t i = 0; i < hosts->hosts; i++)
        for (const struct process *process = hosts->first[i]->host->processes; process;
             process = process->host_next)
            for (const struct member *member = process->members; member;
                 member = member->process_next)
                if (!furthest || member->next > furthest->next)
                    furthest = member;
    if (!furthest)
        return NULL;
    for (uint32_t i = 0; i < hosts->hosts; i++)
        for (const struct process *process = hosts->first[i]->host->processes; process;
             process = process->host_next)
            for (const struct member *member = process->members; member;
                 member = member->process_next)
                if (member->comm == furthest->comm && (int64_t)member->next < *least)
                    *least = (int64_t)member->next;
    *most = (int64_t)furthest->next;
    return furthest->comm;
}

static void cover_host(struct draft *draft, struct finding_side *side, const struct host *host)
{
    for (const struct process *process = host->processes; process; process = process->host_next) {
        int rank = process_shown_rank(process);
        if (process->ended)
            continue;
        if (rank >= 0 && rankset_add(&side->ranks, rank))
            draft->failed = true;
        draft_cover(draft, process);
    }
}

/* "n1", "n[0-3]"; the caller frees it. NULL when memory is short. */
static char *hosts_names(const struct silent_hosts *hosts)
{
    const char **name = malloc(hosts->hosts * sizeof *name);
    for (uint32_t i = 0; name && i < hosts->hosts; i++)
        name[i] = hosts->first[i]->info.host;
    char *names = name ? name_ranges(name, names_sort(name, (int)hosts->hosts)) : NULL;
    free(name);
    return names;
}

static void silent_report(struct analyzer *analyzer, struct silent_hosts *hosts)
{
    struct draft draft = draft_new(&check_silent_host, POSSIBLE, NULL);
    struct finding_side *side = draft_side(&draft, &(struct act){.did = DID_SILENT}, NULL);
    side->process = hosts->first[0]->index;
    for (uint32_t i = 0; i < hosts->hosts; i++)
        cover_host(&draft, side, hosts->first[i]->host);
    draft.finding.first_ns = draft.finding.last_ns = hosts->since_ns;
    char *names = hosts_names(hosts), title[COMM_TITLE_BYTES];
    struct values values = {.name = {names}, .value = {hosts->hosts, (int64_t)hosts->since_ns}};
    const struct comm *comm = find_reached(hosts, &values.value[2], &values.value[3]);
    if (comm)
        values.comm = comm_title(comm, title);
    if (values.value[3] == values.value[2])
        values.value[3] = 0;
    draft.failed |= !names;
    draft_headline(&draft, HEADLINE_SILENT_HOST,
                   hosts->hosts == 1 ? ADVICE_SILENT_HOST : ADVICE_SILENT_HOSTS, &values);
    free(names);
    if (hosts->finding)
        findings_replace(analyzer, hosts->finding, &draft);
    else
        findings_report(analyzer, &draft, &hosts->finding);
}

static struct silent_hosts *open_hosts(struct silences *silences)
{
    if (silences->open || !(silences->open = calloc(1, sizeof *silences->open)))
        return silences->open;
    silences->open->next = silences->list;
    return silences->list = silences->open;
}

static void falls_silent(struct analyzer *analyzer, struct silences *silences,
                         struct silence *silence, const struct event *event)
{
    struct silent_hosts *hosts = open_hosts(silences);
    struct process **grown =
        hosts ? array_room(hosts->first, sizeof(*grown), hosts->hosts, &hosts->capacity, 1) : NULL;
    uint64_t since_ns = event->record->silent.realtime_ns;
    if (!grown) {
        analyzer->failed = true;
        return;
    }
    if (!hosts->hosts || since_ns < hosts->since_ns)
        hosts->since_ns = since_ns;
    hosts->first = grown;
    hosts->first[hosts->hosts++] = event->process;
    hosts->changed = true;
    silence->hosts = hosts;
}

static void sends_again(struct silence *silence, const struct process *process)
{
    struct silent_hosts *hosts = silence->hosts;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < hosts->hosts; i++)
        if (hosts->first[i] != process)
            hosts->first[kept++] = hosts->first[i];
    hosts->hosts = kept;
    hosts->changed = true;
    silence->hosts = NULL;
}

static void report_changes(struct analyzer *analyzer, struct silences *silences)
{
    for (struct silent_hosts *hosts = silences->list; hosts; hosts = hosts->next) {
        if (!hosts->changed)
            continue;
        hosts->changed = false;
        if (hosts->hosts)
            silent_report(analyzer, hosts);
        else if (hosts->finding)
            findings_resolve(analyzer, hosts->finding, "all that were silent send again");
    }
    silences->open = NULL;
}

static void silent_on_silent(struct analyzer *analyzer, const struct event *event)
{
    struct silence *silence =
        state_get(analyzer, &check_silent_host, OWNER_PROCESS, &event->process->states);
    struct silences *silences =
        state_get(analyzer, &check_silent_host, OWNER_JOB, &analyzer->states);
    bool is_silent = event->record->silent.realtime_ns != 0;
    if (!silence || !silences)
        return;
    if (is_silent && !silence->hosts)
        falls_silent(analyzer, silences, silence, event);
    if (!is_silent && silence->hosts)
        sends_again(silence, event->process);
    if (!(event->record->flags & RECORD_FLAG_MORE))
        report_changes(analyzer, silences);
}

const struct check check_silent_host = {
    .code = DC212,
    .name = "silent-host",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
    .explains = CODES(CODES_HANGS),
    .title = "a host of the job is silent",
    .text = "The hub of a job on several hosts (ddpcheck hub) has received nothing from a host for "
            "5 seconds, although each host sends a heartbeat every second.\n\n"
            "The host is down or cut off from the network, or its 'ddpcheck run' was killed. The "
            "report shows its ranks as they were in its last message. The other ranks soon wait "
            "for them; such waits are not reported in addition.\n\n"
            "It is only possible: the job may go on although the host can't reach the hub. If the "
            "host sends again, the finding is marked as resolved.",
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
    .state_bytes =
        {[OWNER_JOB] = sizeof(struct silences), [OWNER_PROCESS] = sizeof(struct silence)},
    .state_end = {[OWNER_JOB] = silences_end},
};
