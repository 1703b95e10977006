/* log_analyzer.c: verdicts of PyTorch's analyzer of Flight Recorder dumps (torchfrtrace): lines,
 * JSON or Python's repr of its rows, and tables, as on the pages of torch.distributed.debug.
 *
 * A verdict is a set of fields, in any order. In lines each has one of its own ("missing ranks:
 * {1}"); in JSON and in a repr all stand in one text ("missing_ranks": [1]); a table has their
 * names in its head. Ranks are the job's, also those of a smaller group. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/rankset.h"
#include "lib/import/log_messages.h"
#include "lib/trace/kind_names.h"
#include "lib/import/scan.h"

enum {
    VERDICTS_MAX = 64, /* the analyzer itself stops after ten of a group */
    RANKS_MAX = 1 << 20,
    LINES_BETWEEN = 24, /* of others, between those of a verdict */
    COLUMNS_MAX = 32,
    RANKS_BYTES = 256,
    TITLE_BYTES = 96,
    ERROR_BYTES = 240
};

/* Since when a rank waits is in no verdict: below LACKS_TIME_BEGINS, and so not shown. */
enum { KNOWN_NS = 1, BEGUN_NS };

enum field_number {
    FIELD_SEQ,
    FIELD_GROUP,
    FIELD_OPERATION,
    FIELD_MISSING,
    FIELD_EXPECTED,
    FIELD_IN,
    FIELD_OUT,
    FIELD_STATE,
    FIELD_ERROR,
    FIELDS
};

/* The names of a field in lines; in rows (JSON, tables) it is called `row`. */
static const struct field_name {
    const char *line, *row;
} field_names[FIELDS] = {
    [FIELD_SEQ] = {"sequence number", "collective_seq_id"},
    [FIELD_GROUP] = {"group info", "pg_desc"},
    [FIELD_OPERATION] = {"collective", "collective_name"},
    [FIELD_MISSING] = {"missing ranks", "missing_ranks"},
    [FIELD_EXPECTED] = {"expected ranks", "expected_ranks"},
    [FIELD_IN] = {"input sizes", "input_sizes"},
    [FIELD_OUT] = {"output sizes", "output_sizes"},
    [FIELD_STATE] = {"collective state", "collective_state"},
    [FIELD_ERROR] = {"error msg", "type_of_mismatch"},
};

struct fr_verdict {
    uint32_t has; /* a bit for each field */
    int64_t seq, in, out;
    struct rankset expected, missing;
    struct log_place place; /* where the program called it */
    char group[TITLE_BYTES], operation[TITLE_BYTES], state[16], error[ERROR_BYTES];
};

struct log_analyzer {
    struct fr_verdict verdict[VERDICTS_MAX];
    uint32_t count;
    struct fr_verdict open; /* lines of it follow */
    int silent_lines;       /* since its last one */
    bool in_stack;          /* its stack's lines follow */
    int columns;            /* of the table in hand; 0: there is none */
    struct column {
        size_t begin, end; /* of its head, where columns are kept by blanks */
        int field;         /* -1: another one */
    } column[COLUMNS_MAX];
    bool is_html;
};

/* --- values --- */

/* "{0, 1}", "[0, 1]", "0, 1", "set()". */
static void parse_rank_list(const char *text, struct rankset *ranks)
{
    text += strspn(text, "{[(\"' ");
    while (isdigit((unsigned char)*text)) {
        char *end;
        unsigned long rank = strtoul(text, &end, 10);
        if (rank >= RANKS_MAX || rankset_add(ranks, (int)rank))
            return;
        text = end + strspn(end, ", ");
    }
}

/* "[[4, 1024]]": the elements of all tensors; -1 if it is something else. */
static int64_t elements_of_sizes(const char *text)
{
    int64_t all = 0, elements = 1;
    bool any = false;
    if (strncmp(text, "[[", 2) != 0)
        return -1;
    for (text++; *text && strncmp(text, "]]", 2) != 0; text++) {
        if (isdigit((unsigned char)*text)) {
            char *end;
            long long size = strtoll(text, &end, 10);
            if (size > (int64_t)1 << 40 || (size && elements > ((int64_t)1 << 50) / size))
                return -1;
            elements *= size;
            any = true;
            text = end - 1;
        } else if (*text == ']') {
            all += elements;
            elements = 1;
        }
    }
    return any && *text ? all + elements : -1;
}

static void copy_word(char *to, size_t bytes, const char *from, const char *stop)
{
    from += strspn(from, "\"' ");
    text_copy_until(to, bytes, from, stop);
}

static void set_verdict_field(struct fr_verdict *verdict, int field, const char *value)
{
    if (!verdict->has)
        verdict->seq = verdict->in = verdict->out = -1;
    verdict->has |= UINT32_C(1) << field;
    switch ((enum field_number)field) {
    case FIELD_SEQ:
        value += strspn(value, "\"' ");
        verdict->seq = isdigit((unsigned char)*value) ? strtoll(value, NULL, 10) : -1;
        break;
    case FIELD_GROUP:
        copy_word(verdict->group, sizeof verdict->group, value, "\"'\r\n,<");
        break;
    case FIELD_OPERATION:
        copy_word(verdict->operation, sizeof verdict->operation, value, "\"'\r\n,< ");
        break;
    case FIELD_MISSING:
        parse_rank_list(value, &verdict->missing);
        break;
    case FIELD_EXPECTED:
        parse_rank_list(value, &verdict->expected);
        break;
    case FIELD_IN:
        verdict->in = elements_of_sizes(value);
        break;
    case FIELD_OUT:
        verdict->out = elements_of_sizes(value);
        break;
    case FIELD_STATE:
        copy_word(verdict->state, sizeof verdict->state, value, "\"'\r\n,< ");
        break;
    case FIELD_ERROR:
        if (strstr(value, "MISMATCH")) /* else "null", "None" */
            copy_word(verdict->error, sizeof verdict->error, value, "\r\n\"<");
        break;
    case FIELDS:
        break;
    }
}

static void free_verdict(struct fr_verdict *verdict)
{
    rankset_free(&verdict->expected);
    rankset_free(&verdict->missing);
    *verdict = (struct fr_verdict){0};
}

/* Rows without a fault are in tables, too. */
static void close_verdict(struct log_analyzer *analyzer)
{
    analyzer->in_stack = false;
    struct fr_verdict *open = &analyzer->open;
    bool is_fault = rankset_count(&open->missing) || *open->error;
    bool is_known = false;
    for (uint32_t i = 0; i < analyzer->count; i++)
        is_known |= analyzer->verdict[i].seq == open->seq &&
                    !strcmp(analyzer->verdict[i].group, open->group);
    if (open->has && is_fault && !is_known && open->seq >= 0 && analyzer->count < VERDICTS_MAX) {
        analyzer->verdict[analyzer->count++] = *open;
        *open = (struct fr_verdict){0};
    } else {
        free_verdict(open);
    }
}

/* --- lines, JSON and repr --- */

/* The value of the first field in the text: behind "name: ", "name": , name=. Returns the field, or
 * -1. */
static int next_field(const char *text, const char **value)
{
    const char *best = NULL;
    int field = -1;
    for (int i = 0; i < FIELDS; i++) {
        const char *names[] = {field_names[i].line, field_names[i].row};
        for (int form = 0; form < 2; form++) {
            const char *at = strstr(text, names[form]);
            while (at && at > text && (isalnum((unsigned char)at[-1]) || at[-1] == '_'))
                at = strstr(at + 1, names[form]);
            const char *behind = at ? at + strlen(names[form]) : NULL;
            bool is_value = at && (form ? strchr("\"'=", *behind) && *behind : *behind == ':');
            if (!is_value || (best && at >= best))
                continue;
            best = at;
            field = i;
            *value = behind + strspn(behind, "\"'=: ");
        }
    }
    return field;
}

/* Returns whether the text has a field. */
static bool read_fields(struct log_analyzer *analyzer, const char *text)
{
    const char *value = text;
    bool any = false;
    for (int field; (field = next_field(value, &value)) >= 0; any = true) {
        if (analyzer->open.has & (UINT32_C(1) << field))
            close_verdict(analyzer); /* the next one has begun */
        set_verdict_field(&analyzer->open, field, value);
    }
    return any;
}

/* --- tables --- */

static int field_of_column(const char *name, size_t bytes)
{
    for (int i = 0; i < FIELDS; i++)
        if (strlen(field_names[i].row) == bytes && !memcmp(field_names[i].row, name, bytes))
            return i;
    return -1;
}

static void read_table_head(struct log_analyzer *analyzer, const char *text)
{
    const char *at = text, *cell;
    size_t bytes;
    analyzer->is_html = scan_find(text, "<th") != NULL;
    analyzer->columns = 0;
    while (analyzer->columns < COLUMNS_MAX &&
           (cell = text_next_cell(&at, analyzer->is_html, &bytes))) {
        struct column *column = &analyzer->column[analyzer->columns++];
        column->begin = (size_t)(cell - text);
        column->end = column->begin + bytes;
        column->field = field_of_column(cell, bytes);
    }
}

/* In a plain table the column whose head is above a part of the cell; empty cells leave none. */
static int column_of_cell(const struct log_analyzer *analyzer, size_t begin, size_t end)
{
    for (int i = 0; i < analyzer->columns; i++)
        if (begin < analyzer->column[i].end && analyzer->column[i].begin < end)
            return i;
    return -1;
}

static void read_table_row(struct log_analyzer *analyzer, const char *text)
{
    const char *at = text, *cell;
    size_t bytes;
    close_verdict(analyzer);
    for (int index = 0; (cell = text_next_cell(&at, analyzer->is_html, &bytes)); index++) {
        size_t begin = (size_t)(cell - text);
        int column = analyzer->is_html ? index : column_of_cell(analyzer, begin, begin + bytes);
        if (column < 0 || column >= analyzer->columns || analyzer->column[column].field < 0)
            continue;
        char value[4096];
        snprintf(value, sizeof value, "%.*s", (int)(bytes < sizeof value ? bytes : 4095), cell);
        set_verdict_field(&analyzer->open, analyzer->column[column].field, value);
    }
    close_verdict(analyzer);
}

/* Names between blanks or tags; a log's prefix may be before them. */
static bool is_table_head(const char *text)
{
    const char *names = scan_find(text, "collective_seq_id");
    return names && strstr(names, "missing_ranks") &&
           (scan_find(text, "<th") || !names[strcspn(names, "=:")]);
}

/* A row has a digit below the head of the sequence numbers. */
static bool is_table_row(const struct log_analyzer *analyzer, const char *text, size_t bytes)
{
    for (int i = 0; i < analyzer->columns; i++)
        for (size_t at = analyzer->column[i].begin; at < analyzer->column[i].end && at < bytes;
             at++)
            if (analyzer->column[i].field == FIELD_SEQ && isdigit((unsigned char)text[at]))
                return true;
    return false;
}

static bool read_table_line(struct log_analyzer *analyzer, const char *text, size_t bytes)
{
    bool is_head = is_table_head(text);
    if (is_head) {
        read_table_head(analyzer, text);
        return true;
    }
    if (!analyzer->columns)
        return false;
    bool is_row = analyzer->is_html ? scan_find(text, "<td") != NULL
                                    : is_table_row(analyzer, text, bytes);
    if (!is_row) {
        if (!analyzer->is_html || !*text || scan_find(text, "</table"))
            analyzer->columns = 0;
        return false;
    }
    read_table_row(analyzer, text);
    return true;
}

/* --- the reader --- */

static bool begins_verdict(const char *text)
{
    return scan_find(text, "Not all ranks joining collective") ||
           scan_find(text, "Collective sequence number: ") ||
           (scan_find(text, "missing_ranks") && scan_find(text, "collective_seq_id")) ||
           (scan_find(text, "collective_seq_id\"") && !scan_find(text, "time_created"));
}

static int read_analyzer_line(struct log_job *job, const char *text, size_t bytes)
{
    struct log_analyzer *analyzer = job->state[LOG_ANALYZER];
    if (read_table_line(analyzer, text, bytes))
        return 1;
    bool begins = begins_verdict(text);
    if (begins && !strchr(text, '{')) /* of lines: one verdict */
        close_verdict(analyzer);
    if (!begins && !analyzer->open.has)
        return 0;
    const char *first = text + strspn(text, " ");
    if (!strncmp(first, "collective stack trace", 22)) {
        analyzer->in_stack = true;
        return 1;
    }
    if (analyzer->in_stack && log_place_take(&analyzer->open.place, first)) {
        analyzer->silent_lines = 0;
        return 1;
    }
    if (read_fields(analyzer, text)) {
        analyzer->silent_lines = 0;
        return 1;
    }
    if (++analyzer->silent_lines > LINES_BETWEEN)
        close_verdict(analyzer);
    return 0;
}

/* --- the end --- */

static uint64_t printed_at(const struct log_job *job)
{
    uint64_t time_ns = job->last_ns > job->torch_ns ? job->last_ns : job->torch_ns;
    return time_ns ? time_ns : LOG_UNDATED_NS;
}

/* The analyzer reads dumps, which are written after a time-out: those that came have waited. */
static int import_rank(struct log_job *job, const struct fr_verdict *verdict, int process,
                       int member, bool came)
{
    const char *colon = strchr(verdict->operation, ':'); /* "nccl:all_reduce" */
    const char *name = colon ? colon + 1 : verdict->operation;
    const struct kind_name *kind = kind_name_find(KIND_FLIGHT, name, strlen(name));
    uint64_t now_ns = printed_at(job);
    uint64_t issued = (uint64_t)verdict->seq + came;
    if (came && kind && kind->api) {
        struct import_call call = import_call_new(member, kind->api);
        int64_t count = kind->elements == KIND_OF_IN ? verdict->in : -1;
        if (kind->elements == KIND_OF_OUT)
            count = verdict->out;
        call.number = (uint64_t)verdict->seq; /* as from the dumps themselves */
        call.count = count >= 0 ? (uint64_t)count : IMPORT_UNKNOWN;
        call.time_ns = BEGUN_NS;
        call.state = IMPORT_ISSUED;
        call.stack = log_place_import(job->import, process, &verdict->place);
        if (import_call(job->import, &call))
            return -1;
    }
    if (import_reached(job->import, member, issued, IMPORT_UNKNOWN, BEGUN_NS))
        return -1;
    return import_known_until(job->import, process, now_ns);
}

static int verdict_process(struct log_job *job, int rank)
{
    const struct log_process *known = log_job_process_of_rank(job, rank);
    if (known)
        return log_process_index(known);
    struct import_process process = import_process_new();
    process.rank = rank;
    process.key = "fingerprint"; /* as log_messages.c has of who times out */
    process.file = job->path;
    process.title = "what PyTorch printed";
    process.lacks = LACKS_MESSAGES;
    return import_process(job->import, &process);
}

/* All ranks that were expected become members, those that came have called the operation. All come
 * to be known before the first call. */
static int import_ranks(struct log_job *job, const struct fr_verdict *verdict, const char *title)
{
    char *ranks = rankset_text_new(&verdict->expected);
    int result = ranks ? 0 : -1, place = 0;
    for (int rank = rankset_next(&verdict->expected, 0); rank >= 0 && !result;
         rank = rankset_next(&verdict->expected, rank + 1)) {
        struct import_member member = import_member_new();
        int process = verdict_process(job, rank);
        member.comm = title;
        member.title = verdict->group;
        member.ranks = ranks;
        member.rank = place++;
        member.nranks = rankset_count(&verdict->expected);
        member.time_ns = KNOWN_NS;
        int index = process < 0 ? -1 : import_member(job->import, process, &member);
        result = index < 0 ? -1
                           : import_rank(job, verdict, process, index,
                                         !rankset_has(&verdict->missing, rank));
    }
    free(ranks);
    return result;
}

static int say_verdict(struct log_job *job, const struct fr_verdict *verdict)
{
    char what[MESSAGE_BYTES], missing[RANKS_BYTES], present[RANKS_BYTES], sizes[80] = "";
    struct rankset came = {0};
    int result = 1;
    for (int rank = rankset_next(&verdict->expected, 0); rank >= 0;
         rank = rankset_next(&verdict->expected, rank + 1))
        if (!rankset_has(&verdict->missing, rank) && rankset_add(&came, rank))
            result = -1;
    if (verdict->in >= 0)
        snprintf(sizes, sizeof sizes, " of %lld elements", (long long)verdict->in);
    rankset_words(&verdict->missing, missing, sizeof missing);
    rankset_brief(&came, present, sizeof present);
    int missing_count = rankset_count(&verdict->missing);
    if (missing_count)
        snprintf(what, sizeof what,
                 "%s did not call %s%s, number %lld of %s (%d ranks); %s waited%s%s", missing,
                 verdict->operation, sizes, (long long)verdict->seq, verdict->group,
                 rankset_count(&verdict->expected), rankset_count(&came) ? present : "the others",
                 *verdict->error ? ". " : "", verdict->error);
    else
        snprintf(what, sizeof what, "ranks differ in %s%s, number %lld of %s: %s",
                 verdict->operation, sizes, (long long)verdict->seq, verdict->group,
                 verdict->error);
    struct rankset *about = missing_count ? &came : (struct rankset *)&verdict->expected;
    for (int rank = rankset_next(about, 0); rank >= 0 && result > 0;
         rank = rankset_next(about, rank + 1))
        result = log_messages_add(
            job, (struct log_speaker){.rank = rank}, missing_count ? SAID_TIMEOUT : SAID_ERROR,
            "PyTorch's analyzer", what,
            missing_count
                ? "Find out what the missing ranks did instead: an exception, a branch on the "
                  "rank, a loop that ended earlier. Their own dumps and logs have it."
                : "Find where these ranks part. The dumps say more: ddpcheck import DUMPS.");
    rankset_free(&came);
    return result < 0 ? -1 : 0;
}

static int end_analyzer(struct log_job *job)
{
    struct log_analyzer *analyzer = job->state[LOG_ANALYZER];
    int result = 0;
    close_verdict(analyzer);
    for (uint32_t i = 0; i < analyzer->count; i++) {
        struct fr_verdict *verdict = &analyzer->verdict[i];
        char title[TITLE_BYTES + 24];
        snprintf(title, sizeof title, "process group %s", verdict->group);
        int missing = rankset_count(&verdict->missing);
        bool only_missing = missing && !*verdict->error;
        if (!result && only_missing && rankset_count(&verdict->expected) > missing)
            result = import_ranks(job, verdict, title);
        if (!result)
            result = say_verdict(job, verdict);
        free_verdict(verdict);
    }
    return result;
}

const struct log_reader log_analyzer = {sizeof(struct log_analyzer), read_analyzer_line,
                                        end_analyzer};
