#include "tui/operations.h"

#include <stdlib.h>
#include <string.h>

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
    return a->rank - b->rank;
}

/* Takes every `part` out of the text. */
static void leave_out(char *text, const char *part)
{
    size_t bytes = strlen(part);
    for (char *found; (found = strstr(text, part));)
        memmove(found, found + bytes, strlen(found + bytes) + 1);
}

char *operation_text(const struct record *record, char text[OPERATION_TEXT])
{
    struct record as = *record;
    if (as.api == API_ncclBcast)
        as.api = API_ncclBroadcast;
    record_text(&as, text, OPERATION_TEXT);
    leave_out(text, "nccl");
    leave_out(text, "count=");
    return text;
}

int operations_load(struct operations *operations, struct source *source, uint64_t comm, uint64_t first, uint64_t last,
                    struct error *err)
{
    /* A rank that is slow may come to a block when others are in the next one, hardly when they are two further. */
    static const char sql[] =
        "SELECT api, w0, w1, w2, w3, w4, w5, w6, w7, w8, w9 FROM event WHERE phase = 1 AND w0 = ?1 AND w1 BETWEEN ?2 AND ?3 "
        "AND api IN (SELECT number FROM api WHERE class = 'collective') "
        "AND seq >= (SELECT coalesce(min(seq), 0) FROM operation_block WHERE comm = ?1 AND block = ?4) "
        "AND seq <= (SELECT coalesce(max(seq), 9223372036854775807) FROM operation_block WHERE comm = ?1 AND block = ?5)";
    const int64_t parameter[] = {(int64_t)comm, (int64_t)first, (int64_t)last, (int64_t)(first / BLOCK), (int64_t)(last / BLOCK + 2)};
    struct cursor row = cursor_new(source->trace, sql, parameter, 5);
    int capacity = 0, result;
    *operations = (struct operations){0};
    while ((result = cursor_next(&row, err)) == 1) {
        if (operations->count == capacity) {
            capacity = capacity ? capacity * 2 : 256;
            struct tui_operation *grown = reallocarray(operations->operation, (size_t)capacity, sizeof *grown);
            if (!grown) {
                cursor_end(&row);
                operations_free(operations);
                return error_set(err, "can't show the operations: memory is short");
            }
            operations->operation = grown;
        }
        struct record record = {.api = (uint16_t)cursor_number(&row, 0), .phase = RECORD_ENTER};
        for (int i = 0; i < WORDS; i++)
            record.word[i] = (uint64_t)cursor_number(&row, 1 + i);
        struct tui_operation *operation = &operations->operation[operations->count++];
        *operation = (struct tui_operation){.number = record.op.number, .rank = record.op.rank};
        operation_text(&record, operation->text);
    }
    if (result < 0)
        operations_free(operations);
    else if (operations->count)
        qsort(operations->operation, (size_t)operations->count, sizeof *operations->operation, by_number_and_rank);
    return result;
}

/* The lowest number between first and last that ranks called differently. 1, 0 or -1. */
static int differs_between(struct source *source, uint64_t comm, uint64_t first, uint64_t last, uint64_t *number, struct error *err)
{
    struct operations operations;
    int found = 0;
    if (operations_load(&operations, source, comm, first, last, err) < 0)
        return -1;
    for (int i = 1; i < operations.count && !found; i++) {
        const struct tui_operation *here = &operations.operation[i], *before = here - 1;
        found = here->number == before->number && strcmp(here->text, before->text) != 0;
        if (found)
            *number = here->number;
    }
    operations_free(&operations);
    return found;
}

/* The first block whose hashes differ, else the last one, which may not be hashed yet. */
static int block_to_search(struct source *source, uint64_t comm, uint64_t *block, struct error *err)
{
    static const char sql[] = "SELECT block, hash FROM operation_block WHERE comm = ? AND block = ? AND hash <> 0";
    static const char last_sql[] = "SELECT coalesce(max(block), 0) FROM operation_block WHERE comm = ?";
    int64_t parameter[] = {(int64_t)comm, 0};
    struct cursor row = cursor_new(source->trace, last_sql, parameter, 1);
    int64_t last = 0;
    int result;
    while ((result = cursor_next(&row, err)) == 1)
        last = cursor_number(&row, 0) > last ? cursor_number(&row, 0) : last;
    for (; result == 0 && parameter[1] < last; parameter[1]++) {
        int64_t hash = 0;
        bool differs = false;
        row = cursor_new(source->trace, sql, parameter, 2);
        while ((result = cursor_next(&row, err)) == 1) {
            differs |= hash && hash != cursor_number(&row, 1);
            hash = cursor_number(&row, 1);
        }
        if (differs)
            break;
    }
    *block = (uint64_t)parameter[1];
    return result;
}

int operations_divergence(struct source *source, uint64_t comm, uint64_t *number, struct error *err)
{
    static const char sql[] = "SELECT min(number) FROM finding WHERE comm = ? AND code LIKE 'DC10_' AND number IS NOT NULL";
    const int64_t parameter[] = {(int64_t)comm};
    struct cursor row = cursor_new(source->trace, sql, parameter, 1);
    uint64_t block;
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
    if (block_to_search(source, comm, &block, err) < 0)
        return -1;
    return differs_between(source, comm, block * BLOCK, block * BLOCK + BLOCK - 1, number, err);
}
