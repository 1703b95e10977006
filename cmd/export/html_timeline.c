/* The timeline of the page: a picture of the whole time for each process, drawn here so that it is
 * there without the script, and the last operations of each process in detail, which the script
 * draws when one looks closer.
 *
 * Bounded whatever the length of the trace: BINS of time for at most ROWS_MOST rows, and
 * DETAILS_MOST operations. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "cmd/export/html.h"
#include "cmd/export/text.h"
#include "cmd/export/timeline.h"
#include "lib/base/moment.h"
#include "lib/trace/names.h"

enum {
    BINS = 400,
    ROWS_MOST = 128,
    NAMED_MOST = 16,
    DETAILS_MOST = 24000,
    DETAILS_OF_ONE = 4096,
    NAMES_MOST = 4000,
    LANES_MOST = 6,
    MARKS_MOST = 64
};

enum level { LEVEL_NONE, LEVEL_QUEUED, LEVEL_RUNNING, LEVEL_STUCK, LEVELS };

static const char *const level_class[LEVELS] = {"", "queued", "running", "stuck"};

struct name {
    char text[96];
    int number;
    UT_hash_handle hh;
};

struct detail {
    uint64_t begin_ns, end_ns, number;
    int name, lane;
    bool started;
};

/* One process, or several beside each other where there are too many. */
struct timeline_row {
    char label[64];
    int processes;
    uint8_t level[BINS];
    struct detail *detail;     /* a ring of the last ones; NULL for several processes */
    uint64_t details;          /* so far; the last `room` are kept */
    uint64_t lane[LANES_MOST]; /* communicator and stream of each */
    int lanes;
};

struct timeline_writer {
    const struct html *html;
    struct timeline_row *row;
    int rows, room;
    int *row_of; /* by process */
    struct name *names;
    bool failed;
};

/* A process in the order of the rows. */
struct place_in_order {
    int process, pid;
    bool named; /* in a finding */
};

static int by_name_and_pid(const void *left, const void *right)
{
    const struct place_in_order *a = left, *b = right;
    if (a->named != b->named)
        return a->named ? -1 : 1;
    return (a->pid > b->pid) - (a->pid < b->pid);
}

struct naming {
    struct place_in_order *order;
    int count, left; /* how many more may be named */
};

static void name_sides(void *context, const struct finding *finding)
{
    struct naming *naming = context;
    for (int i = 0; i < finding->sides; i++) {
        int process = finding->side[i].process;
        if (process < 0 || process >= naming->count || naming->left == 0 ||
            naming->order[process].named)
            continue;
        naming->order[process].named = true;
        naming->left--;
    }
}

/* A row for each process; where they are too many, for those that findings name, and for the others
 * by the dozen. */
static int label_rows(struct timeline_writer *writer, struct place_in_order *order, int count)
{
    const struct export_names *names = &writer->html->names;
    struct naming naming = {order, count, count > ROWS_MOST ? NAMED_MOST : 0};
    for (int i = 0; i < count; i++)
        order[i] = (struct place_in_order){.process = i, .pid = names->process[i].pid};
    report_visit_findings(writer->html->export->report, FINDING_OPEN, name_sides, &naming);
    qsort(order, (size_t)count, sizeof *order, by_name_and_pid);
    int singles = count > ROWS_MOST ? NAMED_MOST - naming.left : count;
    int each = count > singles ? (count - singles + ROWS_MOST - singles - 1) / (ROWS_MOST - singles)
                               : 1;
    writer->room = DETAILS_MOST / (singles ? singles : 1);
    writer->room = writer->room > DETAILS_OF_ONE ? DETAILS_OF_ONE : writer->room;
    for (int i = 0; i < count; i++) {
        int number = i < singles ? i : singles + (i - singles) / each;
        struct timeline_row *row = &writer->row[number];
        writer->row_of[order[i].process] = number;
        if (row->processes++ == 0)
            snprintf(row->label, sizeof row->label, "%.*s",
                     (int)strcspn(names->process[order[i].process].name, "("),
                     names->process[order[i].process].name);
        if (number == writer->rows)
            writer->rows++;
        if (i < singles && !(row->detail = calloc((size_t)writer->room, sizeof *row->detail)))
            return -1;
    }
    for (int i = singles; i < writer->rows; i++) {
        size_t used = strlen(writer->row[i].label);
        if (writer->row[i].processes > 1)
            snprintf(writer->row[i].label + used, sizeof writer->row[i].label - used, "+%d",
                     writer->row[i].processes - 1);
    }
    return 0;
}

static int prepare_timeline(struct timeline_writer *writer)
{
    int count = writer->html->names.processes;
    struct place_in_order *order = calloc((size_t)count + 1, sizeof *order);
    writer->row = calloc(ROWS_MOST + 1, sizeof *writer->row);
    writer->row_of = calloc((size_t)count + 1, sizeof *writer->row_of);
    int result = order && writer->row && writer->row_of ? label_rows(writer, order, count) : -1;
    free(order);
    return result;
}

static int bin_of(const struct timeline_writer *writer, uint64_t time_ns)
{
    const struct report *report = writer->html->export->report;
    if (time_ns <= report->begin_ns)
        return 0;
    double part = (double)(time_ns - report->begin_ns) /
                  ((double)(report->end_ns - report->begin_ns) + 1);
    return part < 1 ? (int)(part * BINS) : BINS - 1;
}

static void fill_row_span(struct timeline_writer *writer, struct timeline_row *row,
                          uint64_t from_ns, uint64_t to_ns, enum level level)
{
    for (int i = bin_of(writer, from_ns); i <= bin_of(writer, to_ns); i++)
        if (row->level[i] < level)
            row->level[i] = (uint8_t)level;
}

static int lane_of(struct timeline_row *row, const struct record *call)
{
    uint64_t key = call->op.comm ^ (call->stream * UINT64_C(0x9e3779b97f4a7c15)) ^
                   (uint64_t)call->op.rank;
    for (int i = 0; i < row->lanes; i++)
        if (row->lane[i] == key)
            return i;
    if (row->lanes == LANES_MOST)
        return LANES_MOST - 1;
    row->lane[row->lanes] = key;
    return row->lanes++;
}

/* The number of a text that names an operation: "AllReduce(count=1, int32, sum) of comm ab8f". */
static int find_name(struct timeline_writer *writer, const struct record *call)
{
    struct name *name;
    char text[sizeof name->text], whole[256];
    const struct export_comm *comm = names_comm(&writer->html->names, call->op.comm);
    record_text(call, whole, sizeof whole);
    const char *call_text = !strncmp(whole, "nccl", 4) ? whole + 4 : whole;
    if (comm)
        snprintf(text, sizeof text, "%s of %s", call_text, comm->name);
    else
        snprintf(text, sizeof text, "%s", call_text);
    HASH_FIND_STR(writer->names, text, name);
    if (name)
        return name->number;
    if (HASH_COUNT(writer->names) >= NAMES_MOST)
        snprintf(text, sizeof text, "%s", api_name(call->api));
    HASH_FIND_STR(writer->names, text, name);
    if (name || !(name = calloc(1, sizeof *name))) {
        writer->failed |= !name;
        return name ? name->number : 0;
    }
    memcpy(name->text, text, sizeof text);
    name->number = (int)HASH_COUNT(writer->names);
    HASH_ADD_STR(writer->names, text, name);
    return name->number;
}

static enum level level_of_operation(const struct timeline_operation *operation)
{
    if (operation->end_ns)
        return LEVEL_RUNNING;
    return operation->started ? LEVEL_STUCK : LEVEL_QUEUED;
}

static void draw_operation(void *context, const struct timeline_operation *operation)
{
    struct timeline_writer *writer = context;
    struct timeline_row *row = &writer->row[writer->row_of[operation->process]];
    uint64_t end_ns = operation->end_ns ? operation->end_ns : writer->html->export->report->end_ns;
    if (operation->issued_ns < operation->begin_ns)
        fill_row_span(writer, row, operation->issued_ns, operation->begin_ns, LEVEL_QUEUED);
    fill_row_span(writer, row, operation->begin_ns, end_ns, level_of_operation(operation));
    if (!row->detail)
        return;
    row->detail[row->details++ % (uint64_t)writer->room] =
        (struct detail){.begin_ns = operation->begin_ns,
                        .end_ns = operation->end_ns,
                        .number = operation->call->op.number,
                        .name = find_name(writer, operation->call),
                        .lane = lane_of(row, operation->call),
                        .started = operation->started};
}

/* Equal bins beside each other as one rectangle: "M3 0h12v1h-12z". */
static void put_path(const struct timeline_row *row, enum level level, FILE *out)
{
    bool any = false;
    for (int from = 0, to; from < BINS; from = to) {
        for (to = from + 1; to < BINS && row->level[to] == row->level[from]; to++)
            ;
        if (row->level[from] != level)
            continue;
        if (!any)
            fprintf(out, "<path class=%s d=\"", level_class[level]);
        any = true;
        fprintf(out, "M%d 0h%dv1h-%dz", from, to - from, to - from);
    }
    if (any)
        fputs("\"/>", out);
}

static void put_picture(const struct timeline_writer *writer)
{
    FILE *out = writer->html->out;
    fputs("<div id=picture>", out);
    for (int i = 0; i < writer->rows; i++) {
        fputs("<div class=row><span>", out);
        html_text(writer->html, writer->row[i].label);
        fprintf(out, "</span><svg viewBox=\"0 0 %d 1\" preserveAspectRatio=none aria-hidden=true>",
                BINS);
        for (int level = LEVEL_QUEUED; level < LEVELS; level++)
            put_path(&writer->row[i], (enum level)level, out);
        fputs("</svg></div>", out);
    }
    fputs("</div>", out);
}

static int compare_name_numbers(const struct name *a, const struct name *b)
{
    return a->number - b->number;
}

/* Microseconds since the trace began. */
static uint64_t since_begin(const struct timeline_writer *writer, uint64_t time_ns)
{
    uint64_t begin_ns = writer->html->export->report->begin_ns;
    return time_ns > begin_ns ? (time_ns - begin_ns) / 1000 : 0;
}

static void put_details(const struct timeline_writer *writer, const struct timeline_row *row)
{
    FILE *out = writer->html->out;
    uint64_t first = row->detail && row->details > (uint64_t)writer->room
                         ? row->details - (uint64_t)writer->room
                         : 0;
    fprintf(out, "{\"lanes\":%d,\"whole\":%s,\"ops\":[", row->lanes, first ? "false" : "true");
    for (uint64_t i = first; row->detail && i < row->details; i++) {
        const struct detail *detail = &row->detail[i % (uint64_t)writer->room];
        fprintf(out, "%s[%d,%d,%" PRIu64 ",%" PRIu64, i > first ? "," : "", detail->lane,
                detail->name, detail->number, since_begin(writer, detail->begin_ns));
        if (detail->end_ns)
            fprintf(out, ",%" PRIu64 "]", since_begin(writer, detail->end_ns));
        else
            fprintf(out, ",%d]", detail->started ? -1 : -2);
    }
    fputs("]}", out);
}

struct marks {
    const struct timeline_writer *writer;
    int count;
};

static void put_mark(void *context, const struct finding *finding)
{
    struct marks *marks = context;
    for (int i = 0; i < finding->sides && marks->count < MARKS_MOST; i++) {
        const struct finding_side *side = &finding->side[i];
        if (side->process < 0 || !side->since_ns)
            continue;
        fprintf(marks->writer->html->out, "%s[%d,%" PRIu64 ",\"%s\"]", marks->count++ ? "," : "",
                marks->writer->row_of[side->process], since_begin(marks->writer, side->since_ns),
                code_name(finding->code));
    }
}

static void put_data(struct timeline_writer *writer)
{
    FILE *out = writer->html->out;
    const struct report *report = writer->html->export->report;
    struct marks marks = {.writer = writer};
    fprintf(out,
            "<script type=\"application/json\" id=data>{\"end\":%" PRIu64
            ",\"bins\":%d,\"grouped\":%s,\"names\":[",
            since_begin(writer, report->end_ns), BINS,
            writer->html->names.processes > ROWS_MOST ? "true" : "false");
    HASH_SORT(writer->names, compare_name_numbers);
    for (const struct name *name = writer->names; name; name = name->hh.next) {
        fputs(name == writer->names ? "" : ",", out);
        text_json(name->text, out);
    }
    fputs("],\n\"marks\":[", out);
    report_visit_findings(writer->html->export->report, FINDING_OPEN, put_mark, &marks);
    fputs("],\n\"rows\":[", out);
    for (int i = 0; i < writer->rows; i++) {
        fputs(i ? ",\n" : "\n", out);
        put_details(writer, &writer->row[i]);
    }
    fputs("]}</script>\n", out);
}

static void free_writer(struct timeline_writer *writer)
{
    struct name *name, *next;
    HASH_ITER(hh, writer->names, name, next) {
        HASH_DEL(writer->names, name);
        free(name);
    }
    for (int i = 0; writer->row && i < writer->rows; i++)
        free(writer->row[i].detail);
    free(writer->row);
    free(writer->row_of);
}

int html_timeline(const struct html *html, struct error *err)
{
    struct timeline_writer writer = {.html = html};
    const struct timeline_visitor visitor = {
        .context = &writer, .processes = html->names.processes, .operation = draw_operation};
    const struct report *report = html->export->report;
    char duration[64];
    if (html->names.processes == 0 || report->end_ns <= report->begin_ns)
        return 0;
    int result = prepare_timeline(&writer)
                     ? -1
                     : timeline_read(html->export->paths, html->export->path_count, &visitor, err);
    if (result || writer.failed) {
        if (!result || !*err->text)
            result = error_memory(err, "can't draw the timeline");
        free_writer(&writer);
        return result;
    }
    fprintf(
        html->out,
        "<section id=timeline><h2>Timeline <span class=meta>%s, operations of each "
        "process</span></h2>"
        "<ul class=key><li class=running><i></i> runs<li class=queued><i></i> waits for its stream"
        "<li class=stuck><i></i> never ended</ul>\n",
        moment_duration(report->end_ns - report->begin_ns, duration, sizeof duration));
    put_picture(&writer);
    put_data(&writer);
    fputs("</section>\n", html->out);
    free_writer(&writer);
    return 0;
}
