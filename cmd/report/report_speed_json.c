/* report_speed_json.c: prints where the time of each rank's iterations went, as lines of JSON. */
#include <jansson.h>

#include "cmd/json_values.h"
#include "cmd/report/report_print.h"
#include "lib/trace/names.h"

struct speed_lines {
    FILE *out;
    bool failed;
};

static void print_speed_line(void *context, const struct speed_view *view)
{
    struct speed_lines *lines = context;
    json_t *compute = view->has_compute ? json_real(view->compute_s) : json_null();
    lines->failed |=
        json_print_line(json_pack("{s:s, s:i, s:o, s:o, s:f, s:f, s:o, s:f, s:f, s:f, s:f, s:f}",
                                  "schema", "ddpcheck.speed/1", "rank", view->shown_rank, "host",
                                  json_of_text(view->host), "iterations",
                                  json_of_count(view->iterations), "median", view->median_s, "p99",
                                  view->p99_s, "compute", compute, "waiting", view->wait_s,
                                  "transfer", view->transfer_s, "queued", view->queued_s, "idle",
                                  view->idle_s, "processor_wait", view->delay_s),
                        lines->out) != 0;
}

static void print_transfer_line(void *context, const struct speed_class_view *view)
{
    struct speed_lines *lines = context;
    json_t *bytes = view->bytes ? json_of_count(view->bytes) : json_null();
    lines->failed |=
        json_print_line(json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:f, s:f, s:f, s:f, s:f}",
                                  "schema", "ddpcheck.transfer/1", "operation", api_name(view->api),
                                  "nranks", json_of_count(view->nranks), "bytes", bytes, "comms",
                                  json_of_count(view->comms), "count", json_of_count(view->count),
                                  "mean", view->mean_s, "least", view->least_s, "most",
                                  view->most_s, "algorithm_bandwidth", view->algorithm,
                                  "bus_bandwidth", view->bus),
                        lines->out) != 0;
}

bool report_print_json_speed(struct report *report, FILE *out)
{
    struct speed_lines lines = {.out = out};
    int result = analyzer_visit_speed(report->analyzer, print_speed_line, &lines);
    if (!result)
        result = analyzer_visit_speed_classes(report->analyzer, print_transfer_line, &lines);
    return !result && !lines.failed;
}
