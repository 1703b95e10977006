/* join_findings.c: sends the hub what the host's own analysis finds of its ranks alone. */
#include <stdlib.h>

#include "analyzer/check.h"
#include "collector/finding_items.h"
#include "collector/join_internal.h"

bool join_owns_finding(const struct join *join, const struct finding *finding)
{
    const struct check *check = check_of(finding->code);
    if (!check || check->scope != SCOPE_JOB)
        return !check || check->code != DC901; /* which is one for all hosts */
    if (code_family(check->code) == FAMILY_HANG && finding->state == FINDING_OPEN)
        return false;
    if (finding->comm)
        return !join_spans_hosts(join, finding->comm);
    for (const struct join_member *member = join->members; member; member = member->hh.next)
        if (join_spans_hosts(join, member->key.comm))
            return false;
    return true;
}

bool join_sends_finding(const struct join *join, const struct finding *finding)
{
    struct join_finding *kept;
    TABLE_FIND(join->findings, &finding->id, kept);
    return kept && !kept->is_hidden;
}

/* NULL: it is not sent, or memory is short. */
static struct join_finding *keep_finding(struct join *join, const struct finding *finding)
{
    struct join_finding *kept;
    TABLE_FIND(join->findings, &finding->id, kept);
    if (kept || HASH_COUNT(join->findings) == HOST_FINDINGS_MAX || finding->state != FINDING_OPEN ||
        finding->severity == SEVERITY_NOTE || /* no host has the notes of others in its terminal */
        !join_owns_finding(join, finding) || !finding_items_fit(finding) ||
        !(kept = calloc(1, sizeof *kept)))
        return kept;
    kept->id = finding->id;
    TABLE_ADD(join->findings, id, kept);
    if (TABLE_ADDED(kept))
        return kept;
    free(kept);
    return NULL;
}

int join_add_finding(struct join *join, const struct finding *finding)
{
    struct finding copy;
    struct join_finding *kept = keep_finding(join, finding);
    if (!kept)
        return 0;
    if (finding_copy(&copy, finding) < 0)
        return -1;
    if (finding_items_cut(&copy) < 0) { /* the hub has it: its new state matters more */
        finding_free(&copy);
        return -1;
    }
    finding_free(&kept->finding);
    kept->finding = copy;
    kept->is_due = true;
    return 0;
}

/* The time of the process, since that is a record's. */
static uint64_t monotonic_of(const struct join_process *process, uint64_t realtime_ns)
{
    return realtime_ns - (process->info.realtime_ns - process->info.monotonic_ns);
}

static void write_stack(struct join *join, int number, uint64_t stack, bool is_address,
                        uint64_t realtime_ns)
{
    const struct record named_by = {.time_ns = monotonic_of(join->process[number], realtime_ns)};
    if (is_address)
        join_note_address(join, number, stack);
    else
        join_write_text(join, number, stack, &named_by);
}

/* Behind the processes, strings and stacks that it names. */
static void send_finding(struct join *join, const struct finding *finding)
{
    message_clear(&join->writer);
    join->writes_facts = true;
    for (int i = 0; i < finding->sides && join->options.names; i++) {
        const struct finding_side *side = &finding->side[i];
        if (side->process < 0 || side->process >= join->processes || !join->process[side->process])
            continue;
        write_stack(join, side->process, side->stack, side->stack_is_address, finding->last_ns);
        write_stack(join, side->process, side->where_stack, side->where_stack_is_address,
                    finding->last_ns);
    }
    join->writes_facts = false;
    join_flush(join, &join->writer, CHANNEL_FACTS);
    finding_items_add(&join->writer, finding);
    join_flush(join, &join->writer, CHANNEL_FACTS);
}

void join_report_findings(struct join *join)
{
    for (struct join_finding *kept = join->findings; kept; kept = kept->hh.next) {
        if (!kept->is_due)
            continue;
        kept->is_due = false;
        kept->is_hidden = !kept->is_sent && join->options.is_shown &&
                          !join->options.is_shown(join->options.context, &kept->finding);
        if (kept->is_hidden)
            continue;
        kept->is_sent = true;
        send_finding(join, &kept->finding);
    }
}

void join_resend_findings(struct join *join)
{
    for (struct join_finding *kept = join->findings; kept; kept = kept->hh.next)
        kept->is_due = true;
    for (int i = 0; i < join->processes; i++)
        for (struct join_text *text = join->process[i] ? join->process[i]->texts : NULL; text;
             text = text->hh.next)
            text->sent &= (unsigned char)~SENT_AS_FACT;
}

uint32_t join_count_sent(const struct join *join)
{
    uint32_t count = 0;
    for (const struct join_finding *kept = join->findings; kept; kept = kept->hh.next)
        count += kept->is_sent;
    return count;
}

void join_findings_free(struct join *join)
{
    struct join_finding *kept, *next;
    HASH_ITER(hh, join->findings, kept, next) {
        HASH_DEL(join->findings, kept);
        finding_free(&kept->finding);
        free(kept);
    }
}
