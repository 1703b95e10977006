/* state_files.h: traces made by hand for tests of the models: processes, calls, how members stand.
 */
#ifndef DDPCHECK_TEST_STATE_FILES_H
#define DDPCHECK_TEST_STATE_FILES_H

#include <cmocka.h>
#include <locale.h>

#include "lib/trace/store.h"
#include "tests/unit/trace_files.h"
#include "tui/view.h"

static const uint64_t state_epoch_ns =
    1700000000000000000; /* realtime at monotonic 1000 (process_named) */
static const uint64_t state_comm = 0x5ae77eb5ea4ec1ee;

static inline struct store *state_begin(const char *path, const char *host, int first_rank,
                                        int ranks)
{
    struct store *store;
    assert_int_equal(store_open(&store, path, NULL), 0);
    assert_int_equal(store_begin(store, NULL), 0);
    for (int i = 0; i < ranks; i++) {
        struct process_info info =
            process_named(host, 4000 + first_rank + i, state_epoch_ns + 1000);
        info.rank = first_rank + i;
        assert_int_equal(store_process(store, &info, NULL), i);
    }
    return store;
}

static inline void state_end(struct store *store)
{
    store_meta(store, "ended", "now", NULL);
    assert_int_equal(store_commit(store, NULL), 0);
    assert_int_equal(store_close(store, NULL), 0);
}

static inline void state_call(struct store *store, int process, int rank, uint64_t number,
                              uint64_t count, uint64_t time_ns)
{
    struct record record = {.api = API_ncclAllReduce,
                            .phase = RECORD_ENTER,
                            .time_ns = time_ns,
                            .serial = number * 2 + 1,
                            .stream = 0x1000,
                            .op = {.comm = state_comm,
                                   .number = number,
                                   .count = count,
                                   .recvbuff = 0x10000,
                                   .sendbuff = 0x10000,
                                   .datatype = TYPE_FLOAT32,
                                   .root = -1,
                                   .rank = rank,
                                   .launch = number + 1}};
    assert_int_equal(store_event(store, process, &record, NULL), 0);
}

static inline void state_member_at(struct store *store, int process, int rank, int nranks,
                                   uint64_t issued, uint64_t started, uint64_t done,
                                   const char *where)
{
    const struct member_state member = {
        .comm = state_comm,
        .rank = rank,
        .shown_rank = rank,
        .nranks = nranks,
        .process = process,
        .device = process,
        .issued = issued,
        .started = started,
        .done = done,
        .where = where,
        .phase = "",
        .last_call = "AllReduce",
        .since_ns = state_epoch_ns,
    };
    assert_int_equal(store_member(store, &member, 0, NULL), 0);
}

static inline void state_member(struct store *store, int process, int rank, int nranks,
                                uint64_t issued, uint64_t started, uint64_t done)
{
    state_member_at(store, process, rank, nranks, issued, started, done,
                    "in cudaStreamSynchronize");
}

static inline void state_finding(struct store *store, uint32_t id, const char *code,
                                 const char *severity, const char *state, uint64_t number)
{
    const struct store_side side = {
        .ranks = "1", .call = "ncclAllReduce", .phase = "", .where = "", .process = -1};
    const struct store_finding finding = {
        .id = id,
        .code = code,
        .severity = severity,
        .certainty = "certain",
        .state = state,
        .what = "what happened",
        .todo = "mend it",
        .comm = state_comm,
        .number = number,
        .has_number = true,
        .times = 1,
        .first_ns = state_epoch_ns + id,
        .fingerprint = id,
        .side = &side,
        .sides = 1,
    };
    assert_int_equal(store_finding(store, &finding, NULL), 0);
}

/* Opens what the folder holds, as the TUI does. */
static inline void state_open(struct source *source, const char *const *folder)
{
    struct error err = {""};
    if (source_open_all(source, folder, 1, &err) < 0 || source_look(source, &err) < 0)
        fail_msg("%s", err.text);
}

static inline void state_load(struct source *source, struct query *query, struct rows *rows)
{
    struct error err = {""};
    *rows = (struct rows){0};
    query->width = query->width ? query->width : 80;
    if (views[query->view]->load(source, query, rows, &err) < 0)
        fail_msg("%s", err.text);
    assert_false(rows->failed);
}

static inline const char *state_cell(const struct rows *rows, int row, int cell)
{
    assert_true(row < rows->count);
    return rows->row[row].cell[cell].text ? rows->row[row].cell[cell].text : "";
}

#endif
