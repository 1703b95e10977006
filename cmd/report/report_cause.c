/* report_cause.c: which usual cause of a finding its ranks' ends and stacks show, and what holds in
 * the job's version of NCCL. */
#include "cmd/report/report_cause.h"

#include <stdio.h>
#include <stdlib.h>

#include "analyzer/cause.h"
#include "analyzer/version_facts.h"
#include "cmd/report/report_model.h"
#include "lib/finding/finding_origin.h"
#include "lib/trace/site.h"

/* Of the side's call and of where its ranks are now, and its phase as if it were a function. The
 * caller frees it; NULL: none is known. */
static char *frames_of_side(const struct report *report, const struct finding_side *side)
{
    char *text = NULL;
    size_t bytes;
    bool is_address;
    FILE *out = side->process >= 0 ? open_memstream(&text, &bytes) : NULL;
    if (!out)
        return NULL;
    /* Those of libraries, which a report leaves out, show a data loader or a compiler. */
    site_write_frames(report->trace, side->process, side->stack, side->stack_is_address, out);
    uint64_t where = stack_of_where(report, side, &is_address);
    if (where != side->stack)
        site_write_frames(report->trace, side->process, where, is_address, out);
    if (*side->phase)
        fprintf(out, "%s \n", side->phase);
    fclose(out);
    return text;
}

/* Two threads made the calls: the origin has said why, and no branch is missing. */
static bool is_of_threads(const struct report *report, const struct finding *finding)
{
    struct finding_origin origin = finding_origin(report->trace, finding);
    free(origin.what);
    return origin.kind == ORIGIN_BRANCH && origin.advice == ADVICE_THREADS_SHARE_COMM;
}

const struct cause *report_cause(const struct report *report, const struct finding *finding)
{
    const struct check *check = check_of(finding->code);
    if (!check || !check->causes || is_of_threads(report, finding))
        return NULL;
    char *frames[FINDING_SIDES_MAX] = {NULL};
    for (int i = 0; i < finding->sides; i++)
        frames[i] = frames_of_side(report, &finding->side[i]);
    const struct cause *cause = cause_seen(check, finding, (const char *const *)frames);
    for (int i = 0; i < finding->sides; i++)
        free(frames[i]);
    return cause;
}

const struct version_fact *report_version_fact(const struct report *report,
                                               const struct finding *finding,
                                               int versions[LIBRARIES])
{
    const struct check *check = check_of(finding->code);
    const struct version_fact *fact = NULL;
    for (int i = 0; check && !fact && i < finding->sides; i++) {
        int process = finding->side[i].process;
        if (process < 0)
            continue;
        for (enum library library = 0; library < LIBRARIES; library++)
            versions[library] =
                trace_library_version(report->trace, process, version_library_name(library));
        fact = version_fact_find(check->code, versions);
    }
    return fact;
}
