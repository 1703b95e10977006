/* report_hub_now.c: asks the hub of a job. */
#include "cmd/report/report_hub_now.h"

#include <stdlib.h>
#include <string.h>

#include "cmd/hub/job_copy.h"
#include "lib/base/text.h"
#include "lib/finding/finding_details.h"
#include "lib/finding/finding_load.h"
#include "lib/finding/finding_origin.h"
#include "lib/finding/finding_site.h"
#include "lib/trace/trace.h"

static const double ask_within_s = 1;
enum { LOCATION_BYTES = 256 };

/* One line: the words of a finding have none of their own. */
static void add_finding_line(struct text *text, struct trace *trace, const struct finding *finding)
{
    char location[LOCATION_BYTES] = "";
    char *sentence = finding_sentence(trace, finding);
    finding_location(trace, finding, FINDING_LOCATION_WIDTH, location, sizeof location);
    text_add(text, "%s %s %s %s | %s\n", severity_name(finding->severity),
             certainty_name(finding->certainty), code_name(finding->code), location,
             sentence ? sentence : finding->what);
    free(sentence);
}

static char *lines_of_database(const char *database)
{
    struct trace *trace;
    struct finding_list list = {0};
    struct text text = {0};
    struct error err;
    if (trace_open(&trace, &database, 1, &err) < 0)
        return NULL;
    int result = finding_list_load(&list, trace, 0, 0, &err);
    finding_list_sort(&list);
    text_add(&text, "%s", "");
    for (int i = 0; result == 0 && i < list.count; i++)
        if (list.finding[i].state == FINDING_OPEN && list.finding[i].severity != SEVERITY_NOTE)
            add_finding_line(&text, trace, &list.finding[i]);
    finding_list_free(&list);
    trace_close(trace);
    return text_take(&text);
}

char *hub_lines_now(const char *place)
{
    const char *address = getenv("DDPCHECK_HUB");
    struct job_copy *copy;
    struct error err;
    if (!address || !job_copy_is_address(address) || strcmp(job_copy_place(address), place) != 0 ||
        job_copy_open_within(&copy, address, ask_within_s, &err) < 0)
        return NULL;
    char *lines = lines_of_database(job_copy_database(copy));
    job_copy_close(copy);
    return lines;
}
