/* finding_advice.c: what holds of a finding in the job's versions of NCCL and PyTorch, and the
 * usual cause that its ranks' ends, calls and stacks show. */
#include "tui/finding_advice.h"

#include <stdio.h>
#include <stdlib.h>

#include "analyzer/cause.h"
#include "analyzer/version_facts.h"
#include "lib/trace/site.h"
#include "tui/rows.h"
#include "tui/source.h"

static void advise_version(struct source *source, const struct check *check,
                           const struct finding *finding, int width, struct rows *rows)
{
    char version[VERSION_RANGE_BYTES], text[512];
    for (int i = 0; i < finding->sides; i++) {
        int process = finding->side[i].process, versions[LIBRARIES] = {0};
        for (enum library library = 0; process >= 0 && library < LIBRARIES; library++)
            versions[library] =
                trace_library_version(source->trace, process, version_library_name(library));
        const struct version_fact *fact = version_fact_find(check->code, versions);
        if (!fact)
            continue;
        snprintf(text, sizeof text, "%s: %s.",
                 version_fact_job(fact, versions, version, sizeof version), fact->words);
        rows_paragraph(rows, TONE_PLAIN, width, text);
        return;
    }
}

/* The frames of the call and of where the ranks are now, and the phase as if it were a function;
 * the caller frees it. */
static char *advice_frames(struct source *source, const struct finding_side *side)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = side->process >= 0 ? open_memstream(&text, &bytes) : NULL;
    if (!out)
        return NULL;
    site_write_frames(source->trace, side->process, side->stack, side->stack_is_address, out);
    if (side->where_stack != side->stack)
        site_write_frames(source->trace, side->process, side->where_stack,
                          side->where_stack_is_address, out);
    if (*side->phase)
        fprintf(out, "%s \n", side->phase);
    fclose(out);
    return text;
}

static const struct cause *advice_cause(struct source *source, const struct check *check,
                                        const struct finding *finding)
{
    char *frames[FINDING_SIDES_MAX] = {NULL};
    for (int i = 0; i < finding->sides; i++)
        frames[i] = advice_frames(source, &finding->side[i]);
    const struct cause *cause = cause_seen(check, finding, (const char *const *)frames);
    for (int i = 0; i < finding->sides; i++)
        free(frames[i]);
    return cause;
}

void finding_advice(struct source *source, const struct finding *finding, int width,
                    struct rows *rows)
{
    const struct check *check = check_of(finding->code);
    char text[1024];
    if (!check)
        return;
    advise_version(source, check, finding, width, rows);
    const struct cause *cause = advice_cause(source, check, finding);
    if (!cause)
        return;
    snprintf(text, sizeof text, "Likely: %s", cause->what);
    rows_paragraph(rows, TONE_PLAIN, width, text);
    snprintf(text, sizeof text, "Check: %s", cause->look);
    rows_paragraph(rows, TONE_FAINT, width, text);
}
