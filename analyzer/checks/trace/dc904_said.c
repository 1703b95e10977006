/* dc904_said.c: DC904: what NCCL, PyTorch or another tool has said itself, in an imported file
 * (notice_said).
 *
 * It is passed on in its own words: whether it is the fault, or what follows from it, is not
 * judged. */
#include <ctype.h>
#include <string.h>

#include "analyzer/findings.h"
#include "analyzer/model/process.h"
#include "lib/trace/record.h"

enum { KIND_BYTES = 160 };

/* The same message with other numbers, addresses and sizes is the same kind: they differ from rank
 * to rank. */
static void message_kind(const char *text, char *kind, size_t bytes)
{
    size_t used = 0;
    while (*text && used + 1 < bytes) {
        bool number = isdigit((unsigned char)*text);
        kind[used++] = number ? '#' : *text;
        text++;
        while (number && (isxdigit((unsigned char)*text) || *text == 'x'))
            text++;
    }
    kind[used] = '\0';
}

static enum severity message_severity(uint64_t said)
{
    if (said == SAID_ERROR)
        return SEVERITY_ERROR;
    return said == SAID_NOTE ? SEVERITY_NOTE : SEVERITY_WARNING;
}

static void said_on_said(struct analyzer *analyzer, const struct event *event)
{
    struct process *process = event->process;
    const struct record *record = event->record;
    const char *text = process_string(process, record->range.text),
               *by = process_string(process, record->range.domain);
    const struct site site = {.process = process, .time_ns = record_realtime(process, record)};
    char kind[KIND_BYTES];
    if (!*text)
        return;
    message_kind(text, kind, sizeof kind);
    struct draft draft = draft_new(&check_tool_message, CERTAIN, NULL);
    struct finding_side *side = draft_side(&draft, &(struct act){.name = kind}, &site);
    struct text what = {0};
    int rank = process_shown_rank(process);
    if (rankset_add(&side->ranks, rank >= 0 ? rank : process->index))
        draft.failed = true;
    draft_cover(&draft, process);
    draft.merges_ranks = true;
    draft.finding.severity = message_severity(record->range.id);
    draft.finding.first_ns = draft.finding.last_ns = site.time_ns;
    text_add(&what, "%s: %s", *by ? by : "another tool", text);
    draft_say(&draft, &what,
              "This is passed on in the words of who said it; findings with other codes say what "
              "ddpcheck makes of it.");
    findings_report(analyzer, &draft, NULL);
}

const struct check check_tool_message = {
    .code = DC904,
    .name = "tool-message",
    .family = FAMILY_TRACE,
    .severity = SEVERITY_WARNING,
    .scope = SCOPE_PROCESS,
    .title = "message from NCCL, PyTorch or another tool",
    .text = "An imported file contains more than calls: NCCL's own warnings, messages of PyTorch's "
            "watchdog or of NCCL's RAS about a rank. This finding shows such a message, once for "
            "all ranks with the same message except for numbers.\n\n"
            "It is not judged. A warning may be the fault, a consequence of it, or harmless: the "
            "findings with other codes, if there are any, are what ddpcheck found in the calls "
            "themselves.",
    .on = {[EVENT_SAID] = said_on_said},
};
