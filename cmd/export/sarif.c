/* SARIF 2.1.0 (OASIS), as GitHub's code scanning, Azure DevOps and editors read it: a rule for each
 * code that occurs, one result for each finding whatever the number of its ranks, whose sides are
 * related locations and stacks. */
#include <ctype.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/options/codes.h"
#include "cmd/explain.h"
#include "cmd/export/export.h"
#include "cmd/export/place.h"
#include "cmd/report/report_culprit.h"
#include "cmd/export/text.h"
#include "cmd/json_values.h"
#include "lib/finding/finding_fix.h"
#include "lib/finding/finding_origin.h"
#include "lib/base/moment.h"
#include "lib/trace/cxx_name.h"

/* GitHub takes 25,000 results of a run and refuses files with more. Rules are as many as there are
 * codes, locations of a result as many as a finding has sides (FINDING_SIDES_MAX), tags two: all
 * below its limits. */
enum { RESULTS_MOST = 25000, MARKDOWN_MOST = 32768, SENTENCE_BYTES = 320, FUNCTION_BYTES = 1100 };

struct sarif_writer {
    const struct export *export;
    const struct check *rule[CODES_END]; /* of the codes that occur, as the results name them */
    int rules;
    int results, left_out;
    bool failed;
};

static const char *const levels[] = {
    [SEVERITY_ERROR] = "error", [SEVERITY_WARNING] = "warning", [SEVERITY_NOTE] = "note"};

static json_t *make_message(const char *value)
{
    return json_pack("{s:o}", "text", json_of_text(value));
}

/* Writes the object, an element of a list. Takes it over. */
static void print_object(struct sarif_writer *writer, json_t *object, bool first)
{
    fputs(first ? "\n" : ",\n", writer->export->out);
    if (!object || json_dumpf(object, writer->export->out, JSON_COMPACT))
        writer->failed = true;
    json_decref(object);
}

/* "ranks call different collectives" as RanksCallDifferentCollectives: SARIF's names of rules have
 * no blanks. */
static json_t *rule_name(const char *title)
{
    char name[128];
    size_t used = 0;
    bool begins = true;
    for (; *title && used + 1 < sizeof name; title++) {
        if (isalnum((unsigned char)*title))
            name[used++] = (char)(begins ? toupper((unsigned char)*title) : *title);
        begins = !isalnum((unsigned char)*title);
    }
    name[used] = '\0';
    return json_string(name);
}

static json_t *help_of(const struct check *check)
{
    char *markdown = NULL;
    size_t bytes;
    FILE *out = open_memstream(&markdown, &bytes);
    json_t *help = NULL;
    if (out) {
        explain_print_markdown(check, out);
        if (fclose(out) == 0)
            help = json_pack("{s:o, s:o}", "text", json_of_text(check->text), "markdown",
                             json_of_text(markdown));
    }
    free(markdown);
    return help;
}

/* Where a rule's help is: this build's pages, or else the manual that its source names first. */
static const char *help_uri(const struct check *check, char *uri, size_t bytes)
{
    static const struct {
        const char *source, *uri;
    } manuals[] = {
        {"NCCL", "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/"},
        {"nccl.h", "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/"},
        {"CUDA C++ Programming Guide", "https://docs.nvidia.com/cuda/cuda-c-programming-guide/"},
        {"CUDA Runtime API", "https://docs.nvidia.com/cuda/cuda-runtime-api/"},
        {"PyTorch documentation", "https://pytorch.org/docs/stable/"},
        {"Li et al.", "https://arxiv.org/abs/2006.15704"},
    };
    if (*DDPCHECK_HOMEPAGE) {
        snprintf(uri, bytes, "%s/docs/findings/%s.md", DDPCHECK_HOMEPAGE, code_name(check->code));
        return uri;
    }
    for (size_t i = 0; check->source && i < sizeof manuals / sizeof *manuals; i++)
        if (!strncmp(check->source, manuals[i].source, strlen(manuals[i].source)))
            return manuals[i].uri;
    return NULL;
}

static json_t *make_rule(const struct check *check)
{
    char first[4096], uri[PATH_MAX];
    const char *end = strstr(check->text, "\n\n");
    snprintf(first, sizeof first, "%.*s", end ? (int)(end - check->text) : (int)strlen(check->text),
             check->text);
    return json_pack(
        "{s:s, s:s*, s:o, s:o, s:o, s:o, s:{s:s}, s:{s:[s,s], s:s}}", "id", code_name(check->code),
        "helpUri", help_uri(check, uri, sizeof uri), "name", rule_name(check->title),
        "shortDescription", make_message(check->title), "fullDescription", make_message(first),
        "help", help_of(check), "defaultConfiguration", "level", levels[check->severity],
        "properties", "tags", "distributed-training", family_name(code_family(check->code)),
        "problem.severity",
        check->severity == SEVERITY_NOTE ? "recommendation" : severity_name(check->severity));
}

static json_t *physical(const char *path, int line)
{
    char uri[3 * PATH_MAX];
    json_t *artifact;
    if (*path == '/') {
        memcpy(uri, "file://", sizeof "file://");
        text_uri(path, uri + strlen("file://"), sizeof uri - strlen("file://"));
        artifact = json_pack("{s:s}", "uri", uri);
    } else {
        text_uri(path, uri, sizeof uri);
        artifact = json_pack("{s:s, s:s}", "uri", uri, "uriBaseId", "%SRCROOT%");
    }
    return json_pack("{s:o, s:{s:i}}", "artifactLocation", artifact, "region", "startLine",
                     line > 0 ? line : 1);
}

/* SARIF 2.1.0, 3.33.5 and 3.33.6: name is for people, decoratedName what a compiler made of it. */
static json_t *logical_locations(const char *function)
{
    char name[FUNCTION_BYTES];
    json_t *json = json_pack("{s:o, s:s}", "name",
                             json_of_text(cxx_name(function, name, sizeof name)), "kind",
                             "function");
    if (cxx_name_is(function))
        json_object_set_new(json, "decoratedName", json_of_text(function));
    return json_pack("[o]", json);
}

static json_t *location(const char *path, int line, const char *function)
{
    json_t *json = json_pack("{s:o}", "physicalLocation", physical(path, line));
    if (*function)
        json_object_set_new(json, "logicalLocations", logical_locations(function));
    return json;
}

/* "ranks 0-2: ncclAllReduce(...), now in cudaStreamSynchronize" */
static char *side_sentence(const struct finding_side *side, char *sentence, size_t bytes)
{
    char ranks[128];
    bool has_where = *side->where && strcmp(side->where, side->call);
    snprintf(sentence, bytes, "%s: %s%s%s", rankset_words(&side->ranks, ranks, sizeof ranks),
             side->call, has_where ? ", now " : "", has_where ? side->where : "");
    return sentence;
}

static json_t *related_of(const struct export *export, const struct finding *finding)
{
    json_t *list = json_array();
    for (int i = 0; i < finding->sides; i++) {
        char sentence[SENTENCE_BYTES];
        struct export_place place;
        if (!place_of_side(export, finding, i, &place))
            continue;
        json_t *related = location(place.path, place.line, place.function);
        json_object_set_new(related, "id", json_integer(i + 1));
        json_object_set_new(
            related, "message",
            make_message(side_sentence(&finding->side[i], sentence, sizeof sentence)));
        json_array_append_new(list, related);
    }
    return list;
}

static json_t *make_stack(const struct export *export, const struct finding_side *side)
{
    struct frame frame[SITE_FRAMES_MAX];
    char sentence[SENTENCE_BYTES], nameless[FUNCTION_BYTES], path[PATH_MAX];
    int count = site_frames(export->report->trace, side->process, side->stack,
                            side->stack_is_address, frame);
    json_t *frames = json_array();
    for (int i = 0; i < count; i++) {
        json_t *json = json_object();
        const char *function = *frame[i].function
                                   ? frame[i].function
                                   : frame_function(&frame[i], nameless, sizeof nameless);
        if (*frame[i].file)
            json_object_set_new(
                json, "location",
                location(place_path(export, frame[i].file, path), frame[i].line, function));
        else
            json_object_set_new(
                json, "location",
                json_pack("{s:o}", "logicalLocations", logical_locations(function)));
        if (*frame[i].module)
            json_object_set_new(json, "module", json_of_text(frame[i].module));
        json_array_append_new(frames, json);
    }
    return json_pack("{s:o, s:o}", "message",
                     make_message(side_sentence(side, sentence, sizeof sentence)), "frames",
                     frames);
}

static json_t *stacks_of(const struct export *export, const struct finding *finding)
{
    json_t *list = json_array();
    for (int i = 0; i < finding->sides; i++)
        if (finding->side[i].stack)
            json_array_append_new(list, make_stack(export, &finding->side[i]));
    return list;
}

/* What happened, who did what, what to do: viewers show the message alone. */
static json_t *message_of(const struct export *export, const struct finding *finding)
{
    char *whole = NULL;
    char sentence[SENTENCE_BYTES], culprit[CULPRIT_BYTES];
    size_t bytes;
    FILE *out = open_memstream(&whole, &bytes);
    json_t *json = NULL;
    if (out) {
        char *said = finding_sentence(export->report->trace, finding);
        fprintf(out, "%s%s.", finding->certainty == POSSIBLE ? "(possible) " : "",
                said ? said : finding->what);
        free(said);
        if (*culprit_text(export->report, finding, culprit))
            fprintf(out, "\n%s.", culprit);
        for (int i = 0; i < finding->sides; i++)
            fprintf(out, "\n%s.", side_sentence(&finding->side[i], sentence, sizeof sentence));
        if (*finding->todo)
            fprintf(out, "\n%s", finding_fix(export->report->trace, finding));
        if (fclose(out) == 0)
            json = make_message(whole);
    }
    free(whole);
    return json;
}

static json_t *time_of(uint64_t ns)
{
    char text[64];
    return moment_known(ns) ? json_string(moment_iso(ns, text, sizeof text)) : json_null();
}

static json_t *properties_of(const struct finding *finding)
{
    char ranks[512], comm[24];
    json_t *sides = json_array();
    for (int i = 0; i < finding->sides; i++)
        json_array_append_new(
            sides, json_string(rankset_text(&finding->side[i].ranks, ranks, sizeof ranks)));
    snprintf(comm, sizeof comm, "0x%016" PRIx64, finding->comm);
    return json_pack("{s:s, s:o, s:o, s:o, s:I, s:o, s:o}", "certainty",
                     certainty_name(finding->certainty), "communicator",
                     finding->comm ? json_string(comm) : json_null(), "operation",
                     finding->has_number ? json_integer((json_int_t)finding->number) : json_null(),
                     "ranks", sides, "times", (json_int_t)finding->times, "first",
                     time_of(finding->first_ns), "last", time_of(finding->last_ns));
}

/* -1: it is of another version, which has more codes. */
static int rule_index(const struct sarif_writer *writer, enum code code)
{
    int index = writer->rules - 1;
    while (index >= 0 && writer->rule[index]->code != code)
        index--;
    return index;
}

static void note_rule(void *context, const struct finding *finding)
{
    struct sarif_writer *writer = context;
    const struct check *check = check_of(finding->code);
    if (check && rule_index(writer, finding->code) < 0)
        writer->rule[writer->rules++] = check;
}

static void print_sarif_result(void *context, const struct finding *finding)
{
    struct sarif_writer *writer = context;
    char fingerprint[24];
    struct export_place place;
    if (writer->results == RESULTS_MOST) {
        writer->left_out++;
        return;
    }
    place_of_finding(writer->export, finding, &place);
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, finding->fingerprint);
    print_object(writer,
                 json_pack("{s:s, s:i, s:s, s:s, s:o, s:[o], s:o, s:o, s:{s:s}, s:o}", "ruleId",
                           code_name(finding->code), "ruleIndex", rule_index(writer, finding->code),
                           "kind", "fail", "level", levels[finding->severity], "message",
                           message_of(writer->export, finding), "locations",
                           location(place.path, place.line, place.function), "relatedLocations",
                           related_of(writer->export, finding), "stacks",
                           stacks_of(writer->export, finding), "partialFingerprints", "ddpcheck/v2",
                           fingerprint, "properties", properties_of(finding)),
                 writer->results++ == 0);
}

/* GitHub takes what stands before the last '/' as the name under which analyses follow each other,
 * so that the name of the job has its place after it. */
static json_t *details(const struct report *report)
{
    char id[128], begin[64] = "unknown-time";
    const struct process_info *info =
        trace_process_count(report->trace) ? trace_process(report->trace, 0) : NULL;
    if (moment_known(report->begin_ns))
        moment_iso(report->begin_ns, begin, sizeof begin);
    snprintf(id, sizeof id, "ddpcheck/%s", info && *info->job ? info->job : begin);
    return json_pack("{s:o}", "id", json_of_text(id));
}

static json_t *invocation(const struct sarif_writer *writer)
{
    const struct report *report = writer->export->report;
    json_t *notices = json_array();
    char note[768];
    if (*report->damage.text)
        json_array_append_new(notices,
                              json_pack("{s:o, s:s}", "message", make_message(report->damage.text),
                                        "level", "error"));
    else if (report_incomplete(report))
        json_array_append_new(notices,
                              json_pack("{s:o, s:s}", "message",
                                        make_message("the trace is missing its end or some ranks: "
                                                     "what is not found may still be there"),
                                        "level", "warning"));
    for (int i = 0; i < writer->export->not_checked_count; i++) {
        const struct not_checked *entry = &writer->export->not_checked[i];
        char why[384];
        snprintf(note, sizeof note, "not checked: %s: %s", entry->lack->codes,
                 not_checked_text(entry, why, sizeof why));
        json_array_append_new(
            notices, json_pack("{s:o, s:s}", "message", make_message(note), "level", "note"));
    }
    if (writer->left_out) {
        snprintf(note, sizeof note, "%d findings more are left out: readers take %d",
                 writer->left_out, RESULTS_MOST);
        json_array_append_new(
            notices, json_pack("{s:o, s:s}", "message", make_message(note), "level", "warning"));
    }
    return json_pack("{s:b, s:o}", "executionSuccessful", !*report->damage.text,
                     "toolExecutionNotifications", notices);
}

static void print_element(const char *name, json_t *object, struct sarif_writer *writer)
{
    fprintf(writer->export->out, "\"%s\":", name);
    if (!object || json_dumpf(object, writer->export->out, JSON_COMPACT))
        writer->failed = true;
    json_decref(object);
}

int export_sarif(const struct export *export, struct error *err)
{
    struct sarif_writer writer = {.export = export};
    FILE *out = export->out;
    fprintf(out,
            "{\"$schema\":\"https://json.schemastore.org/"
            "sarif-2.1.0.json\",\"version\":\"2.1.0\",\"runs\":[{\n"
            "\"tool\":{\"driver\":{\"name\":\"ddpcheck\",\"version\":\"%s\",%s\"rules\":[",
            DDPCHECK_VERSION,
            *DDPCHECK_HOMEPAGE ? "\"informationUri\":\"" DDPCHECK_HOMEPAGE "\"," : "");
    report_visit_findings(export->report, FINDING_OPEN, note_rule, &writer);
    for (int i = 0; i < writer.rules; i++)
        print_object(&writer, make_rule(writer.rule[i]), i == 0);
    fputs("]}},\n\"columnKind\":\"utf16CodeUnits\",\n\"originalUriBaseIds\":{\"%SRCROOT%\":{"
          "\"description\":{\"text\":"
          "\"the root of the sources\"}}},\n",
          out);
    print_element("automationDetails", details(export->report), &writer);
    fputs(",\n\"results\":[", out);
    report_visit_findings(export->report, FINDING_OPEN, print_sarif_result, &writer);
    fputs("],\n\"invocations\":[", out);
    print_object(&writer, invocation(&writer), true);
    fputs("]}]}\n", out);
    return writer.failed ? error_memory(err, "can't write the results") : 0;
}
