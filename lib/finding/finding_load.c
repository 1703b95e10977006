/* finding_load.c: makes findings of the rows of finding, finding_side, finding_act, finding_call
 * and finding_comm. The rows of each table are read in the order of the findings, beside them. */
#include "lib/finding/finding_load.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/finding/finding_store.h"

/* The rows of a table about the findings from list->finding[first] on. */
struct finding_rows {
    struct finding_list *list;
    struct trace *trace;
    sqlite3_stmt *row;
    int database, first, at;
    bool failed; /* memory is short */
};

static const char *row_text(sqlite3_stmt *row, int column)
{
    const unsigned char *text = sqlite3_column_text(row, column);
    return text ? (const char *)text : "";
}

static uint64_t row_number(sqlite3_stmt *row, int column)
{
    return (uint64_t)sqlite3_column_int64(row, column);
}

static void load_sentence(struct finding *finding, sqlite3_stmt *row)
{
    const char *what = row_text(row, 11);
    char *named = finding->code == CODE_NONE
                      ? sqlite3_mprintf("%s, of another version: %s", row_text(row, 1), what)
                      : NULL;
    finding->what = strdup(named ? named : what);
    finding->todo = strdup(row_text(row, 12));
    sqlite3_free(named);
}

static void load_finding(struct finding_rows *rows)
{
    sqlite3_stmt *row = rows->row;
    struct finding *finding = finding_list_add(rows->list);
    if (!finding) {
        rows->failed = true;
        return;
    }
    *finding = (struct finding){
        .id = (uint32_t)row_number(row, 0),
        .code = code_find(row_text(row, 1)),
        .severity = severity_of_name(row_text(row, 2)),
        .certainty = certainty_of_name(row_text(row, 3)),
        .state = finding_state_of_name(row_text(row, 4)),
        .comm = row_number(row, 5),
        .has_number = sqlite3_column_type(row, 6) != SQLITE_NULL,
        .number = row_number(row, 6),
        .first_ns = row_number(row, 7),
        .last_ns = row_number(row, 8),
        .times = row_number(row, 9),
        .fingerprint = row_number(row, 10),
    };
    load_sentence(finding, row);
    rows->failed |= !finding->what || !finding->todo;
}

/* The finding of the row, by column 0; NULL if it is not in the list. */
static struct finding *finding_of_row(struct finding_rows *rows)
{
    uint64_t id = row_number(rows->row, 0);
    while (rows->at < rows->list->count && rows->list->finding[rows->at].id < id)
        rows->at++;
    bool found = rows->at < rows->list->count && rows->list->finding[rows->at].id == id;
    return found ? &rows->list->finding[rows->at] : NULL;
}

static void load_finding_side(struct finding_rows *rows)
{
    struct finding *finding = finding_of_row(rows);
    sqlite3_stmt *row = rows->row;
    if (!finding || finding->sides == FINDING_SIDES_MAX)
        return;
    struct finding_side *side = &finding->side[finding->sides++];
    *side = (struct finding_side){
        .process = trace_process_of(rows->trace, rows->database, sqlite3_column_int(row, 2)),
        .call = strdup(row_text(row, 3)),
        .phase = strdup(row_text(row, 4)),
        .where = strdup(row_text(row, 5)),
        .since_ns = row_number(row, 6),
        .stack = row_number(row, 7),
        .stack_is_address = sqlite3_column_int(row, 8),
        .where_stack = row_number(row, 9),
        .where_stack_is_address = sqlite3_column_int(row, 10),
        .act.did = DID_OTHER,
        .now.did = DID_OTHER,
    };
    errno = 0; /* of a damaged text what can be read is taken */
    rows->failed |= (rankset_parse(&side->ranks, row_text(row, 1)) < 0 && errno == ENOMEM) ||
                    !side->call || !side->phase || !side->where;
}

/* Columns 0 to 2 of finding_act and finding_call: finding, side, moment. */
static struct act *act_of_row_here(struct finding_rows *rows)
{
    struct finding *finding = finding_of_row(rows);
    int side = sqlite3_column_int(rows->row, 1);
    if (!finding || side < 0 || side >= finding->sides)
        return NULL;
    return strcmp(row_text(rows->row, 2), "now") ? &finding->side[side].act
                                                 : &finding->side[side].now;
}

static void load_act(struct finding_rows *rows)
{
    sqlite3_stmt *row = rows->row;
    struct act *act = act_of_row_here(rows);
    const struct store_act stored = {.did = row_text(row, 3),
                                     .value = sqlite3_column_int(row, 4),
                                     .rank = sqlite3_column_int(row, 5),
                                     .number = row_number(row, 6),
                                     .name = row_text(row, 7),
                                     .phase = row_text(row, 8)};
    const struct act taken = act_of_row(&stored);
    if (act && act_copy(act, &taken) < 0)
        rows->failed = true;
}

static void load_call(struct finding_rows *rows)
{
    sqlite3_stmt *row = rows->row;
    struct act *act = act_of_row_here(rows);
    const struct store_call call = {
        .role = row_text(row, 3),
        .kind = row_text(row, 4),
        .comm = row_number(row, 5),
        .number = row_number(row, 6),
        .called = {.api = (uint16_t)sqlite3_column_int(row, 7),
                   .arguments = (uint16_t)sqlite3_column_int(row, 8),
                   .datatype = (uint8_t)sqlite3_column_int(row, 9),
                   .redop = (uint8_t)sqlite3_column_int(row, 10),
                   .peer = sqlite3_column_int(row, 11),
                   .size = sqlite3_column_int(row, 12),
                   .count = row_number(row, 13),
                   .bytes = row_number(row, 14)},
    };
    if (act)
        act_take_call(act, &call);
}

static void load_title(struct finding_rows *rows)
{
    uint64_t comm = row_number(rows->row, 0);
    const char *title = row_text(rows->row, 1);
    for (int i = rows->first; i < rows->list->count; i++) {
        struct finding *finding = &rows->list->finding[i];
        for (int k = 0; k < finding->sides; k++) {
            act_take_title(&finding->side[k].act, comm, title);
            act_take_title(&finding->side[k].now, comm, title);
        }
    }
}

/* The tables in the order in which they are read. */
static const struct finding_table {
    const char *sql; /* parameter 1: the first id */
    void (*load)(struct finding_rows *rows);
} finding_tables[] = {
    {"SELECT id, code, severity, certainty, state, comm, number, first_ns, last_ns, times, "
     "fingerprint, what, todo FROM finding WHERE id >= ?1 ORDER BY id",
     load_finding},
    {"SELECT finding, ranks, process, call, phase, \"where\", since_ns, stack, stack_is_address, "
     "where_stack, where_stack_is_address FROM finding_side WHERE finding >= ?1 "
     "ORDER BY finding, side",
     load_finding_side},
    {"SELECT finding, side, moment, did, value, rank, number, name, phase FROM finding_act "
     "WHERE finding >= ?1 ORDER BY finding",
     load_act},
    {"SELECT finding, side, moment, role, kind, comm, number, api, arguments, datatype, redop, "
     "peer, size, count, bytes FROM finding_call WHERE finding >= ?1 ORDER BY finding",
     load_call},
    {"SELECT comm, title FROM finding_comm WHERE ?1 = ?1", load_title},
};

/* Words of the fields, where they are known: better ones than the version that stored them had. */
static void write_words(const struct act *act, char **words)
{
    char *made = act->did != DID_OTHER || act->name ? act_words(act) : NULL;
    if (!made)
        return;
    free(*words);
    *words = made;
}

static int load_table(struct finding_rows *rows, const struct finding_table *table,
                      int64_t first_id, struct error *err)
{
    sqlite3 *database = trace_database(rows->trace, rows->database);
    int code = sqlite3_prepare_v2(database, table->sql, -1, &rows->row, NULL);
    rows->at = rows->first;
    sqlite3_bind_int64(rows->row, 1, first_id);
    while (code == SQLITE_OK && !rows->failed && (code = sqlite3_step(rows->row)) == SQLITE_ROW) {
        table->load(rows);
        code = SQLITE_OK;
    }
    if (rows->failed)
        error_memory(err, "can't load the findings");
    else if (code != SQLITE_DONE)
        error_set(err, "can't read the findings: %s", sqlite3_errmsg(database));
    sqlite3_finalize(rows->row);
    if (rows->failed)
        return -1;
    return code == SQLITE_DONE ? 0 : 1;
}

int finding_list_load(struct finding_list *list, struct trace *trace, int database,
                      int64_t first_id, struct error *err)
{
    struct finding_rows rows = {
        .list = list, .trace = trace, .database = database, .first = list->count};
    int result = 0;
    for (size_t i = 0; !result && i < sizeof finding_tables / sizeof *finding_tables; i++)
        result = load_table(&rows, &finding_tables[i], first_id, err);
    for (int i = rows.first; i < list->count; i++)
        for (int k = 0; k < list->finding[i].sides; k++) {
            struct finding_side *side = &list->finding[i].side[k];
            write_words(&side->act, &side->call);
            write_words(&side->now, &side->where);
        }
    return result;
}

struct finding *finding_list_add(struct finding_list *list)
{
    if (!ARRAY_ADD(list->finding, list->count))
        return NULL;
    list->finding[list->count] = (struct finding){0};
    return &list->finding[list->count++];
}

static int compare_listed(const void *left, const void *right)
{
    return finding_compare(left, right);
}

void finding_list_sort(struct finding_list *list)
{
    if (list->count)
        qsort(list->finding, (size_t)list->count, sizeof *list->finding, compare_listed);
}

void finding_list_free(struct finding_list *list)
{
    for (int i = 0; i < list->count; i++)
        finding_free(&list->finding[i]);
    free(list->finding);
    *list = (struct finding_list){0};
}
