/* report_text.c: prints a report as text. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/finding/finding_fix.h"
#include "lib/base/moment.h"
#include "lib/base/name_ranges.h"
#include "cmd/report/report_model.h"
#include "analyzer/version_facts.h"
#include "cmd/report/report_cause.h"
#include "cmd/report/report_culprit.h"
#include "cmd/report/report_print.h"
#include "lib/finding/finding_site.h"
#include "lib/trace/site.h"
#include "lib/finding/finding_origin.h"
#include "lib/trace/site_operation.h"

enum {
    LABEL_COLUMN = 4,
    VALUE_COLUMN_LEAST = 14,
    VALUE_COLUMN_MOST = 26, /* of what is said about a side */
    FRAMES_SHOWN = 5,
    FRAMES_SHORT = 2, /* unless --verbose */
    LOCATION_WIDTH = 60,
    LOCATION_BYTES = 256,
    RANKS_BYTES = 256,
    TIME_BYTES = 64
};

struct text_writer {
    struct report *report;
    struct page *page;
    bool verbose;
    int value_column; /* of the finding at hand */
    enum code code;   /* of the last finding, and its fix */
    const char *todo;
};

static const struct {
    const char *one, *many;
    enum style style;
} severities[] = {
    [SEVERITY_ERROR] = {"error", "errors", STYLE_ERROR},
    [SEVERITY_WARNING] = {"warning", "warnings", STYLE_WARNING},
    [SEVERITY_NOTE] = {"note", "notes", STYLE_NOTE},
};

/* "1 error, 2 notes", each in its colour: as many as are shown. */
static bool print_severities(struct report *report, struct page *page, bool verbose)
{
    struct fault_list faults;
    int count[SEVERITY_NOTE + 1] = {0};
    bool any = false;
    report_faults_find(&faults, report, FINDING_OPEN, !verbose);
    for (int i = 0; i < faults.count; i++)
        count[faults.fault[i].finding->severity]++;
    fault_list_free(&faults);
    for (int i = SEVERITY_ERROR; i <= SEVERITY_NOTE; i++) {
        if (count[i] == 0)
            continue;
        if (any)
            page_text(page, STYLE_PLAIN, ", ");
        page_format(page, severities[i].style, "%d %s", count[i],
                    plural(count[i], severities[i].one, severities[i].many));
        any = true;
    }
    return any;
}

static void print_verdict(struct report *report, struct page *page, bool verbose)
{
    if (print_severities(report, page, verbose))
        return;
    if (report->events == 0 && report->damage.text[0])
        page_words(page, STYLE_WARNING, "Nothing could be read");
    else if (report->events == 0 && !trace_is_job(report->trace))
        page_words(page, STYLE_WARNING, "Nothing was recorded");
    else if (report->damage.text[0])
        page_words(page, STYLE_WARNING, "No finding in the part that could be read");
    else if (report_is_part(report))
        page_words(page, STYLE_WARNING, "No finding of this host alone");
    else if (report_incomplete(report))
        page_words(page, STYLE_WARNING, "No finding so far");
    else if (report->choice->suppressed || report->choice->known_again)
        page_words(page, STYLE_GOOD, "No new findings");
    else
        page_words(page, STYLE_GOOD, "No finding");
}

static void print_paths(const struct report *report, struct page *page)
{
    const char **path = calloc((size_t)report->sources + 1, sizeof *path);
    bool has_many = report->sources > SOURCES_NAMED_MAX;
    for (int i = 0; path && i < report->sources; i++)
        path[i] = report->source[i].path;
    char *ranges = path && has_many ? name_ranges(path, names_sort(path, report->sources)) : NULL;
    if (ranges)
        page_format(page, STYLE_PLAIN, " in %s", ranges);
    for (int i = 0; i < report->sources && !has_many; i++)
        page_format(page, STYLE_PLAIN, "%s%s", i ? ", " : " in ", report->source[i].path);
    free(ranges);
    free(path);
}

static void print_head_text(struct report *report, struct page *page, bool verbose)
{
    char watched[2 * TIME_BYTES];
    page->indent = 0;
    print_verdict(report, page, verbose);
    print_paths(report, page);
    page_text(page, STYLE_PLAIN, ".");
    page_line(page);
    if (report->events == 0 && report->damage.text[0]) {
        page_words(page, STYLE_PLAIN,
                   "The file is damaged where its records begin; 'sqlite3 FILE .recover' may bring "
                   "some back.");
    } else if (report->events == 0 && trace_unrecorded(report->trace)) {
        page_words(page, STYLE_PLAIN,
                   "Processes of the job called NCCL and could not be recorded; see below.");
    } else if (report->events == 0 && trace_is_job(report->trace)) {
        page_format(page, STYLE_PLAIN,
                    "%d %s. The hub has asked none for records: no rank waits for long.",
                    trace_process_count(report->trace),
                    plural(trace_process_count(report->trace), "process", "processes"));
    } else if (report->events == 0) {
        page_words(page, STYLE_PLAIN,
                   "No process of the job made an NCCL call that ddpcheck can see; "
                   "'ddpcheck doctor -- PROGRAM' shows why.");
    } else {
        page_format(page, STYLE_PLAIN, "%d %s, recorded %s.", trace_process_count(report->trace),
                    plural(trace_process_count(report->trace), "process", "processes"),
                    moment_recorded(report->begin_ns, report->end_ns, watched, sizeof watched));
    }
    if (report->collecting)
        page_line(page),
            page_words(page, STYLE_STRONG, "The job is still running; this is a snapshot.");
    page_gap(page);
    for (int i = 0; i < report->sources; i++)
        hub_part_print(&report->source[i].hub, report->source[i].hosts, page);
}

/* "   since     " */
static void print_label(const struct text_writer *writer, const char *label)
{
    struct page *page = writer->page;
    page_line(page);
    page_column(page, LABEL_COLUMN);
    page_text(page, STYLE_FAINT, label);
    page_column(page, writer->value_column);
    page->indent = writer->value_column;
}

static void print_labeled_frames(const struct text_writer *writer, const char *label,
                                 const struct shown_frames *frames)
{
    struct page *page = writer->page;
    int most = writer->verbose ? FRAMES_SHOWN : FRAMES_SHORT, count = frames->count;
    int first = count > most + 1 ? site_first_shown(frames->shown, most) : 0, left = count - first;
    int shown = left > most + 1 ? most : left;
    report_print_frames(page, label, (const int[]){LABEL_COLUMN, writer->value_column},
                        frames->frame + first, shown);
    page->indent = writer->value_column;
    if (count > shown && writer->verbose) {
        print_label(writer, "");
        page_format(page, STYLE_FAINT, "and %d more", count - shown);
    }
}

static void print_since(const struct text_writer *writer, uint64_t since_ns)
{
    char clock[TIME_BYTES], duration[TIME_BYTES];
    uint64_t end_ns = writer->report->end_ns;
    print_label(writer, "since");
    page_words(writer->page, STYLE_PLAIN, moment_clock(since_ns, end_ns, clock, sizeof clock));
    if (since_ns <= end_ns)
        page_format(writer->page, STYLE_PLAIN, ", %s %s",
                    moment_duration(end_ns - since_ns, duration, sizeof duration),
                    writer->report->collecting ? "ago" : "before the end");
}

/* A rank alone is named with its process; of several, one process says nothing about the others. */
static void print_side_process(const struct text_writer *writer, const struct finding_side *side)
{
    if (rankset_count(&side->ranks) != 1 || side->process < 0)
        return;
    const struct process_info *info = trace_process(writer->report->trace, side->process);
    if (info->pid <= 0)
        return; /* imported, and not known */
    print_label(writer, "process");
    page_format(writer->page, STYLE_PLAIN, *info->host ? "%d on %s" : "%d", info->pid, info->host);
}

/* "ranks 0-2", "unknown rank". Returns text. */
static char *ranks_label(const struct finding_side *side, char *text, size_t bytes)
{
    if (rankset_count(&side->ranks))
        return rankset_words(&side->ranks, text, bytes);
    snprintf(text, bytes, "unknown rank");
    return text;
}

/* Whether `where` says something that the call did not. */
static bool has_where(const struct finding_side *side)
{
    return *side->where && strcmp(side->where, side->call);
}

static void print_side_where(const struct text_writer *writer, const struct finding_side *side)
{
    if (!has_where(side))
        return;
    bool is_line_of_interest = side->now.did == DID_BUSY_BEFORE;
    print_label(writer, is_line_of_interest ? "then" : "now");
    char where[WHERE_BYTES];
    page_words(writer->page, STYLE_PLAIN, where_of_side(writer->report, side, where, sizeof where));
    if (!writer->verbose && side->stack && !is_line_of_interest)
        return;
    bool is_address;
    uint64_t stack = stack_of_where(writer->report, side, &is_address);
    struct shown_frames frames;
    site_shown_frames(writer->report->trace, side->process, stack, is_address, &frames);
    if (frames.shown >= 0 || writer->verbose)
        print_labeled_frames(writer, "at", &frames);
}

/* They are in the same calls of the program. */
static bool same_stack(struct trace *trace, const struct finding_side *a,
                       const struct finding_side *b)
{
    struct frame first[SITE_FRAMES_MAX], second[SITE_FRAMES_MAX];
    int count = site_frames(trace, a->process, a->stack, a->stack_is_address, first);
    if (count != site_frames(trace, b->process, b->stack, b->stack_is_address, second))
        return false;
    for (int i = 0; i < count; i++)
        if (strcmp(first[i].function, second[i].function) ||
            strcmp(first[i].file, second[i].file) || first[i].line != second[i].line)
            return false;
    return count > 1;
}

/* Where the side made its call; of the calls of a side before it, that they are the same. */
static void print_side_stack(const struct text_writer *writer, const struct finding *finding,
                             const struct finding_side *side)
{
    char ranks[RANKS_BYTES + 8];
    const struct finding_side *first = &finding->side[0];
    if (side == first || !same_stack(writer->report->trace, first, side)) {
        struct shown_frames frames;
        finding_side_frames(writer->report->trace, finding, (int)(side - first), SIDE_STACK_ACT,
                            &frames);
        print_labeled_frames(writer, "at", &frames);
        return;
    }
    print_label(writer, "at");
    page_format(writer->page, STYLE_FAINT, "the same as %s",
                ranks_label(first, ranks, sizeof ranks));
}

static void print_finding_side(const struct text_writer *writer, const struct finding *finding,
                               const struct finding_side *side)
{
    struct page *page = writer->page;
    char label[RANKS_BYTES + 8], operation[SITE_OPERATION_BYTES];
    page_line(page);
    page->indent = writer->value_column;
    page_column(page, 2);
    page_text(page, STYLE_STRONG, ranks_label(side, label, sizeof label));
    if (page->column > writer->value_column - 2)
        page_line(page);
    page_column(page, writer->value_column);
    site_operation_of(writer->report->trace, side->process, side->stack, side->stack_is_address,
                      side->call, operation, sizeof operation);
    bool is_call = side->act.did == DID_CALLED || side->act.did == DID_CALLED_IN_GROUP;
    page_format(page, STYLE_STRONG, *operation && is_call ? "%s: %s" : "%s%s",
                is_call ? operation : "", side->call);
    if (*operation && !is_call)
        page_format(page, STYLE_PLAIN, " (last: %s)", operation);
    bool is_placed = did_end(side->act.did) && side == &finding->side[0] + finding_culprit(finding);
    if (writer->verbose ? side->stack != side->where_stack || !has_where(side) : !is_placed)
        print_side_stack(writer, finding, side);
    if (*side->phase) {
        print_label(writer, "phase");
        page_words(page, STYLE_PLAIN, side->phase);
    }
    if (side->since_ns && writer->verbose)
        print_since(writer, side->since_ns);
    print_side_where(writer, side);
    if (writer->verbose)
        print_side_process(writer, side);
    page_gap(page);
}

static void print_finding_sides(const struct text_writer *writer, const struct finding *finding)
{
    for (int i = 0; i < finding->sides; i++)
        if (finding->side[i].act.did != DID_SAID || writer->verbose ||
            rankset_count(&finding->side[i].ranks))
            print_finding_side(writer, finding, &finding->side[i]);
}

static int value_column(const struct finding *finding)
{
    char label[RANKS_BYTES + 8];
    int column = VALUE_COLUMN_LEAST;
    for (int i = 0; i < finding->sides; i++) {
        int width = text_width(ranks_label(&finding->side[i], label, sizeof label)) + 4;
        column = width > column && width <= VALUE_COLUMN_MOST ? width : column;
    }
    return column;
}

static void print_times(const struct text_writer *writer, const struct finding *finding)
{
    char first[TIME_BYTES], last[TIME_BYTES];
    uint64_t end_ns = writer->report->end_ns;
    if (finding->times < 2)
        return;
    page_column(writer->page, 2);
    if (!moment_known(finding->first_ns)) {
        page_format(writer->page, STYLE_FAINT, "Seen %" PRIu64 " times.", finding->times);
        return;
    }
    page_format(writer->page, STYLE_FAINT, "Seen %" PRIu64 " times, from %s to %s.", finding->times,
                moment_clock(finding->first_ns, end_ns, first, sizeof first),
                moment_clock(finding->last_ns, end_ns, last, sizeof last));
}

static void print_version_fact(const struct text_writer *writer, const struct finding *finding)
{
    struct page *page = writer->page;
    char version[VERSION_RANGE_BYTES];
    int versions[LIBRARIES];
    const struct version_fact *fact = report_version_fact(writer->report, finding, versions);
    if (!fact)
        return;
    page_column(page, 8);
    page_text(page, STYLE_PLAIN, version_fact_job(fact, versions, version, sizeof version));
    page_text(page, STYLE_PLAIN, ": ");
    page_words(page, STYLE_PLAIN, fact->words);
    page_text(page, STYLE_PLAIN, ".");
    page_line(page);
}

/* The usual cause that fits what was seen, and how to be sure. */
static void print_cause(const struct text_writer *writer, const struct finding *finding)
{
    struct page *page = writer->page;
    const struct cause *cause = report_cause(writer->report, finding);
    if (!cause)
        return;
    page_column(page, 2);
    page_text(page, STYLE_STRONG, "Likely: ");
    page->indent = 10;
    page_words(page, STYLE_PLAIN, cause->what);
    page_line(page);
    page_column(page, 2);
    page_text(page, STYLE_FAINT, "Check:  ");
    page_words(page, STYLE_PLAIN, cause->look);
    page_line(page);
    page->indent = 8;
}

/* How to fix it, once for findings of one kind that follow each other. */
static void print_fix(struct text_writer *writer, const struct finding *finding)
{
    struct page *page = writer->page;
    const char *fix = finding_fix(writer->report->trace, finding);
    if (writer->code == finding->code && !strcmp(writer->todo, fix))
        return;
    writer->code = finding->code;
    writer->todo = fix;
    page->indent = 8;
    page_column(page, 2);
    page_text(page, STYLE_GOOD, "Fix:  ");
    page_sentence(page, STYLE_PLAIN, fix);
    page_line(page);
    print_version_fact(writer, finding);
    print_cause(writer, finding);
    page_column(page, 2);
    page_text(page, STYLE_FAINT, "More: ");
    page_format(page, STYLE_PLAIN, "ddpcheck explain %s", code_name(finding->code));
    page_gap(page);
}

/* "train.c:176: error DC201: ranks 0-2 wait in ... (12.4 s)", as compilers do. */
static void print_headline(const struct text_writer *writer, const struct finding *finding)
{
    struct report *report = writer->report;
    struct page *page = writer->page;
    char location[LOCATION_BYTES], duration[TIME_BYTES], culprit[CULPRIT_BYTES];
    uint64_t wait_ns = finding_wait_ns(finding, report->end_ns);
    page->indent = 2;
    finding_location(report->trace, finding, LOCATION_WIDTH, location, sizeof location);
    if (*location)
        page_format(page, STYLE_STRONG, "%s:", location);
    page_format(page, severities[finding->severity].style, "%s%s%s %s:", *location ? " " : "",
                finding->certainty == POSSIBLE ? "possible " : "",
                severities[finding->severity].one, code_name(finding->code));
    char *sentence = finding_sentence(report->trace, finding);
    page_format(page, STYLE_STRONG, " %s", sentence ? sentence : finding->what);
    free(sentence);
    if (wait_ns)
        page_format(page, STYLE_STRONG, " (waiting for %s)",
                    moment_duration(wait_ns, duration, sizeof duration));
    page_line(page);
    print_times(writer, finding);
    if (*culprit_text(report, finding, culprit)) {
        page_column(page, 2);
        page_words(page, STYLE_STRONG, culprit);
    }
    page_gap(page);
}

/* One fault is one finding; --verbose shows all that are of it. */
static void print_faults(struct text_writer *writer)
{
    struct fault_list faults;
    char others[RANKS_BYTES * 2];
    report_faults_find(&faults, writer->report, FINDING_OPEN, !writer->verbose);
    for (int i = 0; i < faults.count; i++) {
        const struct finding *finding = faults.fault[i].finding;
        writer->value_column = value_column(finding);
        print_headline(writer, finding);
        if (*report_fault_others(&faults.fault[i], others, sizeof others)) {
            writer->page->indent = 2;
            page_column(writer->page, 2);
            page_words(writer->page, STYLE_STRONG, others);
            page_gap(writer->page);
        }
        print_fix(writer, finding);
        print_finding_sides(writer, finding);
    }
    if (faults.failed)
        page_words(writer->page, STYLE_WARNING, "Memory was short: not all findings are shown.");
    fault_list_free(&faults);
}

/* What another finding is the cause of is part of the same fault: --verbose shows it. */
static void print_resolved(void *context, const struct finding *finding)
{
    const struct text_writer *writer = context;
    struct page *page = writer->page;
    if (finding->is_consequence && !writer->verbose)
        return;
    page->indent = 9;
    page_column(page, 2);
    page_text(page, STYLE_STRONG, code_name(finding->code));
    page_column(page, 9);
    page_sentence(page, STYLE_PLAIN, finding->what);
    page_line(page);
}

/* Nobody waits in a call, or everybody in the same: only the stacks show what holds the job up. */
static void find_standstill(void *found, const struct finding *finding)
{
    if (finding->code == DC211)
        *(bool *)found = true;
}

/* Who waits for whose lock is seen in the stacks alone. */
static bool waits_for_lock(const struct standings *standings)
{
    int i = 0;
    while (i < standings->count && !standings->standing[i].holder)
        i++;
    return i < standings->count;
}

void report_print_text(struct report *report, struct page *page, const struct report_parts *parts)
{
    bool all_ranks = parts->all_ranks, verbose = parts->verbose;
    bool needs_stacks = verbose || all_ranks || waits_for_lock(&report->standings);
    report_visit_findings(report, FINDING_OPEN, find_standstill, &needs_stacks);
    struct text_writer writer = {.report = report, .page = page, .verbose = verbose};
    print_head_text(report, page, verbose);
    print_faults(&writer);
    if (report->resolved > (verbose ? 0 : report->consequences)) {
        page->indent = 0;
        page_words(page, STYLE_STRONG, "Withdrawn, or the job got over it");
        page_line(page);
        report_visit_findings(report, FINDING_RESOLVED, print_resolved, &writer);
        page_gap(page);
    }
    if (parts->speed)
        report_print_speed(report, page, all_ranks);
    if (parts->env)
        report_print_environment(report, page);
    report_print_unshown(report, page, verbose);
    if (needs_stacks)
        report_print_stacks(report, page, all_ranks);
    else if (report->standings.count) {
        page->indent = 0;
        page_words(page, STYLE_FAINT,
                   "--verbose shows where every thread was when the job hung, and whole stacks.");
        page_gap(page);
    }
    report_print_members(report, page, all_ranks);
    report_print_trace(report, page);
}
