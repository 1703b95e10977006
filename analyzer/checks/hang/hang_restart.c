#include "analyzer/checks/hang/hang_restart.h"

#include <stdio.h>
#include <string.h>

#include "analyzer/findings.h"

static bool has_issued(const struct process *process)
{
    for (const struct member *member = process->members; member; member = member->process_next)
        if (member->next > 0)
            return true;
    return false;
}

/* Of the same job, started later, and at work. */
static bool succeeds(const struct process *later, const struct process *process)
{
    return process->info.restart >= 0 && later->info.restart > process->info.restart &&
           !strncmp(later->info.job, process->info.job, sizeof later->info.job) &&
           later->info.realtime_ns > process->info.realtime_ns && has_issued(later);
}

static const struct process *successor(const struct analyzer *analyzer,
                                       const struct process *process)
{
    const struct process *next = NULL;
    for (int i = 0; process && i < analyzer->processes; i++) {
        const struct process *other = analyzer->process[i];
        if (other && succeeds(other, process) &&
            (!next || other->info.restart < next->info.restart))
            next = other;
    }
    return next;
}

void hang_close_restarted(struct analyzer *analyzer)
{
    for (uint32_t i = 0; i < analyzer->reported_count; i++) {
        struct reported *reported = &analyzer->reported[i];
        if (reported->suppressed || reported->finding.state != FINDING_OPEN ||
            strcmp(reported->finding.code, "DC205"))
            continue;
        int index = rankset_next(&reported->processes, 0);
        const struct process *next = index < 0 ? NULL
                                               : successor(analyzer, analyzer->process[index]);
        if (!next)
            continue;
        char how[64];
        snprintf(how, sizeof how, "the job was started again and went on: restart %d",
                 next->info.restart);
        findings_close(analyzer, reported->finding.id, how);
    }
}
