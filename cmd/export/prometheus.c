/* Prometheus' text format, for the textfile directory of node_exporter: counts by rank,
 * communicator and kind, and what an alert wants to know: how long a rank has made no progress, and
 * the findings. Labels are those of NCCL Inspector's exporter, so that one dashboard reads both;
 * none of them grows with the length of a job. */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "cmd/export/comms.h"
#include "cmd/export/export.h"
#include "cmd/export/text.h"
#include "cmd/export/timeline.h"
#include "lib/base/text.h"
#include "lib/trace/names.h"

enum { COMMS_MOST = 16 }; /* with a label; those made later are "other" */

struct counter {
    struct {
        uint64_t process, comm, api, nranks; /* comm: hash of its label */
    } key;
    const char *label;
    int device;
    uint64_t calls, done, bytes, busy_ns;
    UT_hash_handle hh;
};

struct prometheus_writer {
    const struct export *export;
    struct export_names names;
    struct counter *counters;
    uint64_t *progress_ns; /* per process: when an operation was issued or ended last */
    bool failed;
};

/* A label's value: backslash, quote and end of line are escaped, and it must be UTF-8. */
static void put_label_value(const char *text, FILE *out)
{
    putc('"', out);
    while (*text) {
        size_t length = utf8_length(text);
        if (*text == '\n')
            fputs("\\n", out);
        else if (strchr("\"\\", *text))
            fprintf(out, "\\%c", *text);
        else if (length)
            fwrite(text, 1, length, out);
        else
            putc('?', out);
        text += length ? length : 1;
    }
    putc('"', out);
}

static void put_process_labels(const struct prometheus_writer *writer, int process, FILE *out)
{
    const struct process_info *info = trace_process(writer->export->report->trace, process);
    if (*info->job) {
        fputs(strcmp(info->launcher, "slurm") ? "job_id=" : "slurm_job_id=", out);
        put_label_value(info->job, out);
        putc(',', out);
    }
    fputs("node=", out);
    put_label_value(info->host, out);
    if (writer->names.process[process].rank >= 0)
        fprintf(out, ",rank=\"%d\"", writer->names.process[process].rank);
    else
        fprintf(out, ",process=\"%d\"", process);
}

/* The communicator's name, which is the same in every run; an id is not. Those of one name are one
 * label: a rank can be in several. */
static const char *label_of(const struct prometheus_writer *writer, const struct export_comm *comm)
{
    int place = 0;
    for (const struct export_comm *at = writer->names.comms; at && at != comm && place < COMMS_MOST;
         at = at->hh.next)
        place++;
    if (!comm || place == COMMS_MOST)
        return "other";
    return comm->is_named ? comm->name + strlen("comm ") : "unnamed";
}

static void tally_operation(void *context, const struct timeline_operation *operation)
{
    struct prometheus_writer *writer = context;
    const struct record *call = operation->call;
    struct counter *counter, like = {.key = {(uint64_t)operation->process, 0, call->api, 0}};
    const struct export_comm *comm = names_comm(&writer->names, call->op.comm);
    uint64_t last_ns = operation->end_ns ? operation->end_ns : operation->issued_ns;
    const char *label = label_of(writer, comm);
    like.key.comm = hash_text(HASH_START, label);
    like.key.nranks = comm ? (uint64_t)comm->nranks : 0;
    if (last_ns > writer->progress_ns[operation->process])
        writer->progress_ns[operation->process] = last_ns;
    HASH_FIND(hh, writer->counters, &like.key, sizeof like.key, counter);
    if (!counter) {
        if (!(counter = calloc(1, sizeof *counter))) {
            writer->failed = true;
            return;
        }
        counter->key = like.key;
        counter->label = label;
        counter->device = call->device;
        HASH_ADD(hh, writer->counters, key, sizeof counter->key, counter);
    }
    counter->calls++;
    counter->done += operation->end_ns != 0;
    counter->bytes += call->op.count * datatype_bytes(call->op.datatype);
    counter->busy_ns += operation->end_ns ? operation->end_ns - operation->begin_ns : 0;
}

static int by_key(const struct counter *a, const struct counter *b)
{
    return memcmp(&a->key, &b->key, sizeof a->key);
}

static const struct metric {
    const char *name, *help;
    size_t offset; /* of its value in struct counter */
    bool is_time;
} metrics[] = {
    {"ddpcheck_collectives_total", "Collectives, sends and receives that were called.",
     offsetof(struct counter, calls), false},
    {"ddpcheck_collectives_done_total",
     "Collectives, sends and receives that their stream has completed.",
     offsetof(struct counter, done), false},
    {"ddpcheck_collective_bytes_total", "Elements times their size, as given to the calls.",
     offsetof(struct counter, bytes), false},
    {"ddpcheck_collective_seconds_total",
     "Time from the stream's reaching an operation to its end, as far as it was seen.",
     offsetof(struct counter, busy_ns), true},
};

static void put_metric_head(const char *name, const char *type, const char *help, FILE *out)
{
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_counters(const struct prometheus_writer *writer, const struct metric *metric)
{
    FILE *out = writer->export->out;
    put_metric_head(metric->name, "counter", metric->help, out);
    for (const struct counter *counter = writer->counters; counter; counter = counter->hh.next) {
        const char *kind = api_name((unsigned)counter->key.api);
        fprintf(out, "%s{", metric->name);
        put_process_labels(writer, (int)counter->key.process, out);
        fprintf(out, ",gpu=\"%d\",comm_name=", counter->device);
        put_label_value(counter->label, out);
        fprintf(out, ",nranks=\"%" PRIu64 "\",collective=\"%s\"} ", counter->key.nranks,
                !strncmp(kind, "nccl", 4) ? kind + 4 : kind);
        uint64_t value = *(const uint64_t *)((const char *)counter + metric->offset);
        if (metric->is_time)
            fprintf(out, "%" PRIu64 ".%09" PRIu64 "\n", value / 1000000000, value % 1000000000);
        else
            fprintf(out, "%" PRIu64 "\n", value);
    }
}

static void put_progress(const struct prometheus_writer *writer)
{
    FILE *out = writer->export->out;
    uint64_t end_ns = writer->export->report->end_ns;
    put_metric_head("ddpcheck_seconds_since_progress", "gauge",
                    "Time until the end of the trace in which no operation was called or ended.",
                    out);
    for (int i = 0; i < writer->names.processes; i++) {
        if (!writer->progress_ns[i])
            continue;
        fputs("ddpcheck_seconds_since_progress{", out);
        put_process_labels(writer, i, out);
        fprintf(out, "} %.3f\n",
                end_ns > writer->progress_ns[i] ? (double)(end_ns - writer->progress_ns[i]) / 1e9
                                                : 0.0);
    }
}

static const struct speed_gauge {
    const char *name, *help;
    size_t offset;      /* of its value in struct speed_view */
    bool needs_compute; /* only where kernels are recorded */
} speed_gauges[] = {
    {"ddpcheck_iteration_seconds", "Median length of the last iterations.",
     offsetof(struct speed_view, median_s), false},
    {"ddpcheck_iteration_slow_seconds", "99th percentile of the length of the last iterations.",
     offsetof(struct speed_view, p99_s), false},
    {"ddpcheck_iteration_waiting_seconds",
     "Of an iteration, on average: waiting for other ranks. Those that wait least are waited for.",
     offsetof(struct speed_view, wait_s), false},
    {"ddpcheck_iteration_transfer_seconds",
     "Of an iteration, on average: moving bytes once all ranks have arrived.",
     offsetof(struct speed_view, transfer_s), false},
    {"ddpcheck_iteration_compute_seconds",
     "Of an iteration, on average: kernels run; where kernels are recorded.",
     offsetof(struct speed_view, compute_s), true},
    {"ddpcheck_iteration_queued_seconds",
     "Of an iteration, on average: an operation is in the queue, behind other work.",
     offsetof(struct speed_view, queued_s), false},
    {"ddpcheck_iteration_idle_seconds",
     "Of an iteration, on average: nothing runs and nothing is queued. Where kernels are not "
     "recorded, compute is in it.",
     offsetof(struct speed_view, idle_s), false},
    {"ddpcheck_iteration_processor_wait_seconds",
     "For so long of an iteration, on average, a thread was ready and had no processor.",
     offsetof(struct speed_view, delay_s), false},
};

struct speed_gauge_writer {
    const struct speed_gauge *gauge;
    FILE *out;
    bool has_head;
};

static void put_speed_gauge(void *context, const struct speed_view *view)
{
    struct speed_gauge_writer *writer = context;
    if (writer->gauge->needs_compute && !view->has_compute)
        return;
    if (!writer->has_head)
        put_metric_head(writer->gauge->name, "gauge", writer->gauge->help, writer->out);
    writer->has_head = true;
    fprintf(writer->out, "%s{node=", writer->gauge->name);
    put_label_value(view->host, writer->out);
    fprintf(writer->out, ",rank=\"%d\"} %.9f\n", view->shown_rank,
            *(const double *)((const char *)view + writer->gauge->offset));
}

static int put_speed(const struct prometheus_writer *writer)
{
    int result = 0;
    for (size_t i = 0; !result && i < sizeof speed_gauges / sizeof speed_gauges[0]; i++) {
        struct speed_gauge_writer gauge = {&speed_gauges[i], writer->export->out, false};
        result = analyzer_visit_speed(writer->export->report->analyzer, put_speed_gauge, &gauge);
    }
    return result;
}

struct metric_tally {
    enum code code;
    int count;
};

static void count_code(void *context, const struct finding *finding)
{
    struct metric_tally *tally = context;
    tally->count += finding->code == tally->code;
}

/* Every code that was checked has a line, so that an alert sees a 0 and not nothing. */
static void put_findings(const struct prometheus_writer *writer)
{
    FILE *out = writer->export->out;
    put_metric_head("ddpcheck_findings", "gauge", "Findings that are still true.", out);
    for (const struct check *check = check_next(NULL); check; check = check_next(check)) {
        struct metric_tally tally = {.code = check->code};
        report_visit_findings(writer->export->report, FINDING_OPEN, count_code, &tally);
        if (!tally.count &&
            not_checked_code(writer->export->not_checked, writer->export->not_checked_count,
                             code_name(check->code)))
            continue;
        fprintf(out, "ddpcheck_findings{code=\"%s\",severity=\"%s\"} %d\n", code_name(check->code),
                severity_name(check->severity), tally.count);
    }
}

static void put_trace(const struct prometheus_writer *writer)
{
    const struct report *report = writer->export->report;
    FILE *out = writer->export->out;
    const struct {
        const char *name, *type, *help;
        uint64_t value;
    } plain[] = {
        {"ddpcheck_processes", "gauge", "Processes that left a trace.",
         (uint64_t)writer->names.processes},
        {"ddpcheck_ranks_without_trace", "gauge", "Members of communicators that left none.",
         (uint64_t)report->unseen},
        {"ddpcheck_records_lost_total", "counter", "Records dropped because a ring was full.",
         report->lost_total},
        {"ddpcheck_trace_complete", "gauge", "1 if the trace has its end and all ranks.",
         !report_incomplete(report)},
    };
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        put_metric_head(plain[i].name, plain[i].type, plain[i].help, out);
        fprintf(out, "%s %" PRIu64 "\n", plain[i].name, plain[i].value);
    }
    put_metric_head("ddpcheck_trace_end_timestamp_seconds", "gauge",
                    "When the last event was recorded, since 1970.", out);
    fprintf(out, "ddpcheck_trace_end_timestamp_seconds %.3f\n", (double)report->end_ns / 1e9);
}

int export_prometheus(const struct export *export, struct error *err)
{
    struct prometheus_writer writer = {.export = export};
    const struct timeline_visitor visitor = {
        .context = &writer,
        .processes = trace_process_count(export->report->trace),
        .operation = tally_operation};
    struct counter *counter, *next;
    if (names_load(&writer.names, export->report, err))
        return -1;
    writer.progress_ns = calloc((size_t)writer.names.processes + 1, sizeof *writer.progress_ns);
    int result =
        writer.progress_ns ? timeline_read(export->paths, export->path_count, &visitor, err) : -1;
    if (!writer.progress_ns || writer.failed)
        result = error_memory(err, "can't count the operations");
    HASH_SORT(writer.counters, by_key);
    for (size_t i = 0; result == 0 && i < sizeof metrics / sizeof metrics[0]; i++)
        put_counters(&writer, &metrics[i]);
    if (result == 0) {
        put_progress(&writer);
        if (put_speed(&writer))
            result = error_memory(err, "can't write the ranks' times");
        put_findings(&writer);
        put_trace(&writer);
    }
    HASH_ITER(hh, writer.counters, counter, next) {
        HASH_DEL(writer.counters, counter);
        free(counter);
    }
    free(writer.progress_ns);
    names_free(&writer.names);
    return result;
}
