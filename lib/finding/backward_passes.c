/* backward_passes.c: finds backward passes by the stacks of the kernels. */
#include "lib/finding/backward_passes.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "lib/trace/record.h"
#include "lib/trace/site_operation.h"

enum { STACKS_KEPT = 256 };

/* The stacks that were looked at: a program has few. */
struct known_stacks {
    struct {
        uint64_t stack;
        bool is_backward;
    } kept[STACKS_KEPT];
};

struct pass_counter {
    struct trace *trace;
    const struct member_calls *calls;
    struct known_stacks kernels, collectives;
    struct backward_passes found;
    size_t next; /* index of the first call that is not counted yet */
    bool is_in_pass, has_reduced;
    unsigned before_reduction; /* passes from one to the next; 0: there was none yet */
    unsigned counted;          /* passes up to the last reduction */
};

static bool runs_autograd(struct trace *trace, int process, uint64_t stack)
{
    struct frame frame[SITE_FRAMES_MAX];
    int count = trace_frames(trace, process, stack, false, frame, SITE_FRAMES_MAX);
    for (int i = 0; i < count; i++)
        if (!frame[i].address && strstr(frame[i].file, "/torch/autograd/"))
            return true;
    return false;
}

static bool makes_bucket(struct trace *trace, int process, uint64_t stack)
{
    char operation[SITE_OPERATION_BYTES];
    site_operation_of(trace, process, stack, false, NULL, operation, sizeof operation);
    return !strcmp(operation, site_gradient_bucket);
}

static bool is_known_backward(struct pass_counter *counter, struct known_stacks *known,
                              uint64_t stack,
                              bool (*is_backward)(struct trace *trace, int process, uint64_t stack))
{
    size_t slot = stack % STACKS_KEPT;
    if (known->kept[slot].stack != stack) {
        known->kept[slot].stack = stack;
        known->kept[slot].is_backward = is_backward(counter->trace, counter->calls->process, stack);
    }
    return known->kept[slot].is_backward;
}

static unsigned passes_since_reduction(const struct pass_counter *counter)
{
    return counter->found.passes - counter->counted;
}

static void note_reduction(struct pass_counter *counter)
{
    if (!counter->before_reduction)
        counter->before_reduction = passes_since_reduction(counter);
    counter->found.is_regular &= passes_since_reduction(counter) == counter->before_reduction;
    counter->counted = counter->found.passes;
}

/* The collectives before the serial. */
static void count_calls(struct pass_counter *counter, uint64_t serial)
{
    const struct member_calls *calls = counter->calls;
    for (; counter->next < calls->count && calls->at[counter->next].serial < serial;
         counter->next++) {
        const struct made_at *at = &calls->at[counter->next];
        if (counter->has_reduced || !counter->found.passes || at->is_address ||
            !is_known_backward(counter, &counter->collectives, at->stack, makes_bucket))
            continue;
        counter->has_reduced = true;
        counter->found.reducing++;
        note_reduction(counter);
    }
}

static void count_kernel(struct pass_counter *counter, uint64_t stack, uint64_t serial)
{
    bool is_backward = is_known_backward(counter, &counter->kernels, stack, runs_autograd);
    if (is_backward && !counter->is_in_pass) {
        count_calls(counter, serial);
        counter->found.passes++;
        counter->has_reduced = false;
    }
    counter->is_in_pass = is_backward;
}

/* What was reported late does not stand where it was issued. */
static void read_kernels(struct pass_counter *counter, sqlite3 *database, int process,
                         uint64_t until)
{
    static const char sql[] =
        "SELECT stack, serial FROM event WHERE process = ?1 AND serial > ?2 AND serial <= ?3 "
        "AND stack <> 0 AND flags & ?4 = 0 "
        "AND api IN (SELECT number FROM api WHERE class = 'launch') ORDER BY serial";
    sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(database, sql, -1, &row, NULL) != SQLITE_OK)
        return;
    sqlite3_bind_int(row, 1, process);
    sqlite3_bind_int64(row, 2, (int64_t)counter->calls->at[0].serial);
    sqlite3_bind_int64(row, 3, (int64_t)until);
    sqlite3_bind_int(row, 4, RECORD_FLAG_ADDRESS | RECORD_FLAG_LATE);
    while (sqlite3_step(row) == SQLITE_ROW)
        count_kernel(counter, (uint64_t)sqlite3_column_int64(row, 0),
                     (uint64_t)sqlite3_column_int64(row, 1));
    sqlite3_finalize(row);
    count_calls(counter, until == INT64_MAX ? until : until + 1);
}

struct backward_passes backward_passes_count(struct trace *trace, const struct member_calls *calls,
                                             uint64_t until)
{
    struct backward_passes found = {0};
    struct pass_counter *counter = calls->count ? calloc(1, sizeof *counter) : NULL;
    if (!counter)
        return found;
    counter->trace = trace;
    counter->calls = calls;
    counter->found.is_regular = true;
    for (int database = 0; database < trace_database_count(trace); database++)
        for (int local = 0; local < trace_database_processes(trace, database); local++)
            if (trace_process_of(trace, database, local) == calls->process)
                read_kernels(counter, trace_database(trace, database), local, until);
    found = counter->found;
    found.is_regular &= !counter->before_reduction ||
                        passes_since_reduction(counter) <= counter->before_reduction;
    free(counter);
    return found;
}

bool backward_passes_made(struct trace *trace, const struct member_calls *calls,
                          const struct made_at *at)
{
    return at->stack && !at->is_address && makes_bucket(trace, calls->process, at->stack);
}
