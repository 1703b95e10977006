/* tool_message.c: DC904: what NCCL, PyTorch or another tool has said itself, in an imported file
 * (notice_said).
 *
 * It is passed on in its own words: whether it is the fault, or what follows from it, is not
 * judged. */
#include "analyzer/checks/trace/tool_message.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/findings.h"
#include "analyzer/states.h"
#include "analyzer/model/process.h"
#include "lib/trace/record.h"

enum { KIND_BYTES = 160 };

/* The same message with other numbers, addresses and sizes is the same kind: they differ from rank
 * to rank. Only its first line counts. */
static void message_kind(const char *text, bool exact, char *kind, size_t bytes)
{
    size_t used = 0;
    while (*text && *text != '\n' && used + 1 < bytes) {
        bool number = !exact && isdigit((unsigned char)*text);
        kind[used++] = number ? '#' : *text;
        text++;
        while (number && (isxdigit((unsigned char)*text) || *text == 'x'))
            text++;
    }
    kind[used] = '\0';
}

static enum severity message_severity(uint64_t said)
{
    if (said == SAID_NOTE)
        return SEVERITY_NOTE;
    return said == SAID_WARNING ? SEVERITY_WARNING : SEVERITY_ERROR;
}

/* Reports what a process's source said: its first line is the headline, the rest the advice. */
static void message_report(struct analyzer *analyzer, const struct check *check,
                           struct process *process, const struct record *record)
{
    const char *text = process_string(process, record->range.text),
               *by = process_string(process, record->range.domain);
    const struct site site = {.process = process, .time_ns = record_realtime(process, record)};
    char kind[KIND_BYTES];
    if (!*text)
        return;
    message_kind(text, record->range.id >= SAID_TIMEOUT, kind, sizeof kind);
    struct draft draft = draft_new(check, CERTAIN, NULL);
    struct finding_side *side =
        draft_side(&draft, &(struct act){.did = DID_SAID, .name = kind}, &site);
    int rank = process_shown_rank(process);
    if (rank >= 0 && rankset_add(&side->ranks, rank))
        draft.failed = true;
    draft_cover(&draft, process);
    draft.merges_ranks = true;
    draft.finding.severity = message_severity(record->range.id);
    draft.finding.first_ns = draft.finding.last_ns = site.time_ns;
    size_t length = strcspn(text, "\n");
    char *line = strndup(text, length);
    const struct values values = {
        .name = {*by ? by : "another tool", line, text[length] ? text + length + 1 : NULL}};
    draft.failed |= !line;
    draft_headline(&draft, HEADLINE_TOOL_MESSAGE,
                   values.name[2] ? ADVICE_OF_TOOL : ADVICE_TOOL_MESSAGE, &values);
    free(line);
    findings_report(analyzer, &draft, NULL);
}

/* A mismatch or a hang that concerns the process is known. */
static bool message_is_explained(const struct analyzer *analyzer, const struct process *process)
{
    for (uint32_t i = 0; i < analyzer->reported_count; i++) {
        const struct reported *reported = &analyzer->reported[i];
        if (reported->finding.state == FINDING_OPEN && !reported->suppressed &&
            code_family(reported->check->code) <= FAMILY_HANG &&
            rankset_has(&reported->processes, process->index))
            return true;
    }
    return false;
}

void message_keep(struct analyzer *analyzer, const struct check *check, const struct event *event)
{
    struct record *kept = state_get(analyzer, check, OWNER_PROCESS, &event->process->states);
    if (kept && !kept->api)
        *kept = *event->record;
}

void message_report_kept(struct analyzer *analyzer, const struct check *check)
{
    for (int i = 0; i < analyzer->processes; i++) {
        struct process *process = analyzer->process[i];
        const struct record *kept =
            process ? state_find(analyzer, check, OWNER_PROCESS, process->states) : NULL;
        if (kept && kept->api && !message_is_explained(analyzer, process))
            message_report(analyzer, check, process, kept);
    }
}

/* A timeout waits for the end: a finding may say why. */
static void said_on_said(struct analyzer *analyzer, const struct event *event)
{
    uint64_t how = event->record->range.id;
    if (how == SAID_TIMEOUT)
        message_keep(analyzer, &check_tool_message, event);
    else if (how != SAID_STUCK)
        message_report(analyzer, &check_tool_message, event->process, event->record);
}

static void said_on_finish(struct analyzer *analyzer, const struct event *event)
{
    (void)event;
    message_report_kept(analyzer, &check_tool_message);
}

const struct check check_tool_message = {
    .code = DC904,
    .name = "tool-message",
    .severity = SEVERITY_WARNING,
    .scope = SCOPE_PROCESS,
    .title = "message from NCCL, PyTorch or another tool",
    .text =
        "An imported file contains more than calls: NCCL's own warnings, messages of PyTorch's "
        "watchdog or of NCCL's RAS about a rank. This finding shows such a message, once for "
        "all ranks with the same message except for numbers.\n\n"
        "It is an error where it terminated the job: a timeout of PyTorch's watchdog that no other "
        "finding explains, an exception, a GPU that failed. A warning may be the fault, a "
        "consequence of it, or harmless: the findings with other codes, if there are any, are "
        "what ddpcheck found in the calls themselves.",
    .on = {[EVENT_SAID] = said_on_said, [EVENT_FINISH] = said_on_finish},
    .state_bytes = {[OWNER_PROCESS] = sizeof(struct record)},
};
