/* operations.c: loads the collectives of one communicator by number. */
#include "tui/operations.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/trace/names.h"

enum { BLOCK = 1024, WORDS = 10 };

void operations_free(struct operations *operations)
{
    free(operations->operation);
    *operations = (struct operations){0};
}

static int by_number_and_rank(const void *left, const void *right)
{
    const struct tui_operation *a = left, *b = right;
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    return a->rank != b->rank ? a->rank - b->rank : b->empty - a->empty;
}

/* NCCL drops a call of no elements, whose number is therefore that of the next one. */
static void put_in_order(struct operations *operations)
{
    struct tui_operation *operation = operations->operation;
    int kept = 0;
    if (operations->count)
        qsort(operation, (size_t)operations->count, sizeof *operation, by_number_and_rank);
    for (int i = 0; i < operations->count; i++) {
        if (kept && operation[kept - 1].empty &&
            operation[kept - 1].number == operation[i].number &&
            operation[kept - 1].rank == operation[i].rank)
            kept--;
        operation[kept++] = operation[i];
    }
    operations->count = kept;
}

/* Takes every `part` out of the text. */
static void leave_out(char *text, const char *part)
{
    size_t bytes = strlen(part);
    for (char *found; (found = strstr(text, part));)
        memmove(found, found + bytes, strlen(found + bytes) + 1);
}

char *operation_shorten(char *text)
{
    static const char *const known[] = {
        "nccl", "count=", "comm "}; /* "comm 5ae7" is one even without the word */
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        leave_out(text, known[i]);
    return text;
}

char *operation_shorten_more(char *text)
{
    char *open, *close;
    while ((open = strchr(text, '(')) && (close = strchr(open, ')'))) {
        char *from = open > text && open[-1] == ' ' ? open - 1 : open;
        memmove(from, close + 1, strlen(close + 1) + 1);
    }
    return text;
}

char *operation_text(const struct record *record, char text[OPERATION_TEXT])
{
    struct record as = *record;
    as.api = (uint16_t)kind_same_as(as.api);
    return operation_shorten(record_text(&as, text, OPERATION_TEXT));
}

enum { PARAMETERS = 5 };

/* The rows of the operations first .. last, as they came. `parameter` must outlive the cursor. */
static struct cursor rows_between(struct source *source, uint64_t comm, uint64_t first,
                                  uint64_t last, int64_t parameter[PARAMETERS])
{
    /* Numbers of a member grow with seq, so its own blocks bound where they are; who has not come
     * as far as to the block after the last may be anywhere up to the end. */
    static const char sql[] = "SELECT api, w0, w1, w2, w3, w4, w5, w6, w7, w8, w9 FROM event WHERE "
                              "phase = 1 AND w0 = ?1 AND w1 BETWEEN ?2 AND ?3 "
                              "AND api IN (SELECT number FROM api WHERE class = 'collective') "
                              "AND seq >= (SELECT coalesce(min(seq), 0) FROM operation_block WHERE "
                              "comm = ?1 AND block = ?4) "
                              "AND seq <= (SELECT coalesce(max(coalesce(b.seq, "
                              "9223372036854775807)), 9223372036854775807) FROM operation_block a "
                              "            LEFT JOIN operation_block b ON b.comm = a.comm AND "
                              "b.rank = a.rank AND b.block = ?5 "
                              "            WHERE a.comm = ?1 AND a.block = ?4)";
    const int64_t values[PARAMETERS] = {(int64_t)comm, (int64_t)first, (int64_t)last,
                                        (int64_t)(first / BLOCK), (int64_t)(last / BLOCK + 1)};
    memcpy(parameter, values, sizeof values);
    return cursor_new(source->trace, sql, parameter, PARAMETERS);
}

static struct tui_operation operation_of(const struct cursor *row)
{
    struct record record = {.api = (uint16_t)cursor_number(row, 0), .phase = RECORD_ENTER};
    for (int i = 0; i < WORDS; i++)
        record.word[i] = (uint64_t)cursor_number(row, 1 + i);
    struct tui_operation operation = {
        .number = record.op.number, .rank = record.op.rank, .empty = record.op.count == 0};
    operation_text(&record, operation.text);
    return operation;
}

int operations_load(struct operations *operations, struct source *source, uint64_t comm,
                    uint64_t first, uint64_t last, struct error *err)
{
    int64_t parameter[PARAMETERS];
    struct cursor row = rows_between(source, comm, first, last, parameter);
    int result;
    *operations = (struct operations){0};
    while ((result = cursor_next(&row, err)) == 1) {
        if (!ARRAY_ADD(operations->operation, operations->count)) {
            cursor_end(&row);
            operations_free(operations);
            return error_memory(err, "can't show the operations");
        }
        operations->operation[operations->count++] = operation_of(&row);
    }
    if (result < 0)
        operations_free(operations);
    else if (operations->count)
        put_in_order(operations);
    return result;
}

/* The lowest number of a block that ranks called differently. 1, 0 or -1. */
static int differs_in(struct source *source, uint64_t comm, uint64_t block, uint64_t *number,
                      struct error *err)
{
    char(*text)[OPERATION_TEXT] =
        calloc(BLOCK, sizeof *text); /* of the rank that came first, by number */
    int64_t parameter[PARAMETERS];
    uint64_t first = block * BLOCK, lowest = UINT64_MAX;
    struct cursor row = rows_between(source, comm, first, first + BLOCK - 1, parameter);
    int result;
    if (!text)
        return error_memory(err, "can't compare the operations");
    while ((result = cursor_next(&row, err)) == 1) {
        const struct tui_operation operation = operation_of(&row);
        char *before = text[operation.number - first];
        if (operation
                .empty) /* NCCL drops it; where others gave elements there is a finding about it */
            continue;
        if (!*before)
            memcpy(before, operation.text, OPERATION_TEXT);
        else if (strcmp(before, operation.text) && operation.number < lowest)
            lowest = operation.number;
    }
    free(text);
    *number = lowest;
    return result < 0 ? -1 : lowest != UINT64_MAX;
}

/* What the members' blocks of one number say, over all databases. */
struct row_block {
    int64_t members, hash;
    bool open, differs; /* open: a member has not filled it yet */
};

static int read_block(struct source *source, uint64_t comm, int64_t number, struct row_block *block,
                      struct error *err)
{
    static const char sql[] = "SELECT hash FROM operation_block WHERE comm = ? AND block = ?";
    const int64_t parameter[] = {(int64_t)comm, number};
    struct cursor row = cursor_new(source->trace, sql, parameter, 2);
    int result;
    *block = (struct row_block){0};
    while ((result = cursor_next(&row, err)) == 1) {
        int64_t hash = cursor_number(&row, 0);
        block->members++;
        block->open |= hash == 0;
        block->differs |= hash && block->hash && hash != block->hash;
        block->hash = hash ? hash : block->hash;
    }
    return result;
}

/* The first block in which members may part: hashes differ, or are not all known. *last: the last
 * that there is. */
static int block_to_search(struct source *source, uint64_t comm, int64_t *number, int64_t *last,
                           struct error *err)
{
    static const char last_sql[] =
        "SELECT coalesce(max(block), 0) FROM operation_block WHERE comm = ?";
    const int64_t parameter[] = {(int64_t)comm};
    struct cursor row = cursor_new(source->trace, last_sql, parameter, 1);
    struct row_block block;
    int64_t members = 0;
    int result;
    *last = 0;
    while ((result = cursor_next(&row, err)) == 1)
        *last = cursor_number(&row, 0) > *last ? cursor_number(&row, 0) : *last;
    for (*number = 0; result == 0 && *number < *last; ++*number) {
        if (read_block(source, comm, *number, &block, err) < 0)
            return -1;
        members = *number == 0 ? block.members : members;
        if (block.differs || block.open || block.members != members)
            break;
    }
    return result;
}

int operations_divergence(struct source *source, uint64_t comm, uint64_t *number, struct error *err)
{
    static const char sql[] = "SELECT min(number) FROM finding WHERE comm = ? AND code LIKE "
                              "'DC10_' AND number IS NOT NULL";
    const int64_t parameter[] = {(int64_t)comm};
    struct cursor row = cursor_new(source->trace, sql, parameter, 1);
    int64_t block, last;
    bool found = false;
    int result;
    while ((result = cursor_next(&row, err)) == 1) {
        if (sqlite3_column_type(row.statement, 0) == SQLITE_NULL)
            continue;
        uint64_t here = (uint64_t)cursor_number(&row, 0);
        *number = found && *number < here ? *number : here;
        found = true;
    }
    if (found || result < 0)
        return result < 0 ? -1 : 1;
    if (block_to_search(source, comm, &block, &last, err) < 0)
        return -1;
    for (result = 0; result == 0 && block <= last; block++)
        result = differs_in(source, comm, (uint64_t)block, number, err);
    return result;
}
