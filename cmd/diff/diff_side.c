/* diff_side.c: reads one of the two traces that are compared. */
#include "cmd/diff/diff_side.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <uthash.h>

#include "lib/base/array.h"
#include "lib/base/hash.h"
#include "lib/trace/lacks.h"
#include "lib/trace/names.h"

struct table_key {
    uint64_t comm;
    int64_t rank; /* -1: the communicator itself */
};

/* Finds communicators and members by what records call them. */
struct diff_table {
    struct table_key key;
    int index;
    UT_hash_handle hh;
};

/* One thread uses it. */
enum { STORE_FLAGS = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX };

static const char schema[] =
    "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-32768;"
    "CREATE TABLE op(member INTEGER, number INTEGER, api INTEGER, flags INTEGER, count INTEGER, "
    "kind INTEGER, scalar INTEGER,"
    " stack INTEGER, time INTEGER, rank INTEGER, idx INTEGER, process INTEGER)";
int diff_no_memory(struct error *err)
{
    return error_memory(err, "can't compare the traces");
}

int diff_store_failed(struct diff_side *side, struct error *err)
{
    return error_set(err,
                     "can't keep the operations of %s in a temporary file: %s; is there room in "
                     "SQLITE_TMPDIR, TMPDIR or "
                     "/var/tmp?",
                     side->path, sqlite3_errmsg(side->store));
}

static struct diff_table *find_rank_table(const struct diff_side *side, uint64_t comm, int rank)
{
    struct table_key key = {comm, rank};
    struct diff_table *entry;
    HASH_FIND(hh, side->table, &key, sizeof key, entry);
    return entry;
}

static int index_rank_table(struct diff_side *side, uint64_t comm, int rank, int index)
{
    struct diff_table *entry = calloc(1, sizeof *entry);
    if (!entry)
        return -1;
    entry->key = (struct table_key){comm, rank};
    entry->index = index;
    HASH_ADD(hh, side->table, key, sizeof entry->key, entry);
    return 0;
}

static struct diff_comm *get_diff_comm(struct diff_side *side, uint64_t id)
{
    struct diff_table *entry = find_rank_table(side, id, -1);
    if (entry)
        return &side->comm[entry->index];
    if (!ARRAY_ADD(side->comm, side->comms) || index_rank_table(side, id, -1, side->comms))
        return NULL;
    side->comm[side->comms] = (struct diff_comm){.id = id};
    return &side->comm[side->comms++];
}

enum { RANKS_MAX = 1 << 24 };

static int set_comm_member(struct diff_comm *comm, int rank, int member)
{
    if (rank >= comm->ranks) {
        int ranks = rank + 1 > comm->nranks ? rank + 1 : comm->nranks;
        int *more = reallocarray(comm->member, (size_t)ranks, sizeof *more);
        if (!more)
            return -1;
        for (int i = comm->ranks; i < ranks; i++)
            more[i] = -1;
        comm->member = more;
        comm->ranks = ranks;
    }
    comm->member[rank] = member;
    return 0;
}

/* The member that a record speaks of; *member is -1 if it makes no sense. Returns 0, or -1 when
 * memory is short. */
static int find_comm_member(struct diff_side *side, int process, uint64_t id, int rank, int nranks,
                            int *member)
{
    *member = -1;
    if (rank < 0 || rank >= RANKS_MAX || nranks > RANKS_MAX || !id)
        return 0;
    struct diff_comm *comm = get_diff_comm(side, id);
    if (!comm)
        return -1;
    if (nranks > 0)
        comm->nranks = nranks;
    struct diff_table *entry = find_rank_table(side, id, rank);
    if (entry) {
        *member = entry->index;
        return 0;
    }
    if (!ARRAY_ADD(side->member, side->members))
        return -1;
    *member = side->members++;
    side->member[*member] =
        (struct diff_member){.comm = (int)(comm - side->comm), .rank = rank, .process = process};
    return index_rank_table(side, id, rank, *member) || set_comm_member(comm, rank, *member) ? -1
                                                                                             : 0;
}

static void note_thread(struct diff_side *side, int process, uint32_t thread)
{
    if (process >= side->processes)
        return;
    struct diff_process *of = &side->process[process];
    of->several_threads |= of->thread && of->thread != thread;
    of->thread = thread;
}

static int add_side_op(struct diff_side *side, int process, const struct record *record,
                       struct error *err)
{
    int index;
    if (find_comm_member(side, process, record->op.comm, record->op.rank, -1, &index))
        return diff_no_memory(err);
    if (index < 0)
        return 0;
    struct diff_member *member = &side->member[index];
    const int64_t column[] = {
        index,
        (int64_t)record->op.number,
        record->api,
        record->flags,
        (int64_t)record->op.count,
        (int64_t)((uint64_t)record->op.datatype | (uint64_t)record->op.redop << 8 |
                  (uint64_t)record->op.flags << 16 | (uint64_t)(uint32_t)record->op.root << 32),
        (int64_t)record->op.scalar,
        (int64_t)record->stack,
        (int64_t)record->time_ns,
        record->op.rank,
        (int64_t)member->operations,
        process};
    note_thread(side, process, record->thread);
    for (int i = 0; i < (int)(sizeof column / sizeof *column); i++)
        sqlite3_bind_int64(side->insert, i + 1, column[i]);
    if (sqlite3_step(side->insert) != SQLITE_DONE || sqlite3_reset(side->insert) != SQLITE_OK)
        return diff_store_failed(side, err);
    member->operations++;
    side->operations++;
    return 0;
}

static int read_side_record(struct diff_side *side, int process, const struct record *record,
                            struct error *err)
{
    if (record->time_ns) {
        const struct process_info *info = trace_process(side->trace, process);
        uint64_t now = record->time_ns + info->realtime_ns - info->monotonic_ns;
        side->begin_ns = !side->begin_ns || now < side->begin_ns ? now : side->begin_ns;
        side->end_ns = now > side->end_ns ? now : side->end_ns;
    }
    if (record->api == API_notice_member) {
        int member;
        return find_comm_member(side, process, record->comm.comm, record->comm.rank,
                                record->comm.nranks, &member)
                   ? diff_no_memory(err)
                   : 0;
    }
    enum api_class class = api_class_of(record->api);
    bool is_op = record->phase == RECORD_ENTER && (class == CLASS_COLLECTIVE || class == CLASS_P2P);
    if (!is_op || record->flags & (RECORD_FLAG_CAPTURE | RECORD_FLAG_GONE))
        return 0;
    return add_side_op(side, process, record, err);
}

/* A process that is several ranks of one communicator has no rank of its own: its members are known
 * by theirs. */
static int number_side_ranks(struct diff_side *side)
{
    int processes = trace_process_count(side->trace);
    int *first = malloc(((size_t)processes + 1) * sizeof *first),
        *last_comm = malloc(((size_t)processes + 1) * sizeof *first);
    if (!first || !last_comm) {
        free(first);
        free(last_comm);
        return -1;
    }
    for (int i = 0; i < processes; i++)
        first[i] = last_comm[i] = -1;
    for (int i = 0; i < side->comms; i++)
        for (int rank = 0; rank < side->comm[i].ranks; rank++) {
            int index = side->comm[i].member[rank];
            if (index < 0)
                continue;
            int process = side->member[index].process;
            if (last_comm[process] == i)
                first[process] = -2; /* several */
            else if (first[process] == -1)
                first[process] = rank;
            last_comm[process] = i;
        }
    for (int i = 0; i < side->members; i++) {
        struct diff_member *member = &side->member[i];
        int known = trace_process(side->trace, member->process)->rank;
        if (first[member->process] == -2)
            member->shown_rank = member->rank;
        else
            member->shown_rank = known >= 0 ? known : first[member->process];
    }
    free(first);
    free(last_comm);
    return 0;
}

static void say_progress(const struct diff_side *side, uint64_t events, uint64_t all, time_t *last)
{
    time_t now = time(NULL);
    if (now == *last)
        return;
    *last = now;
    fprintf(stderr, "\rddpcheck: reading %s: %3.0f%% ", side->path,
            all ? 100.0 * (double)events / (double)all : 100);
}

static int read_side_events(struct diff_side *side, struct analyzer *analyzer, bool progress,
                            struct error *err)
{
    struct record record;
    int process, got;
    uint64_t events = 0, all = trace_event_count(side->trace);
    time_t last = time(NULL), begun = last;
    while ((got = trace_next(side->trace, &process, &record, &side->damage)) != 0) {
        if (got < 0)
            continue; /* damaged: the other databases go on */
        if (read_side_record(side, process, &record, err))
            return -1;
        if (analyzer_feed(analyzer, process, &record))
            return diff_no_memory(err);
        if (progress && ++events % 65536 == 0)
            say_progress(side, events, all, &last);
    }
    if (last != begun)
        fputs("\r\033[K", stderr);
    return 0;
}

/* What the sources of the trace's processes never say. */
static unsigned unknown_of(struct trace *trace)
{
    static const struct {
        uint32_t lacks;
        unsigned unknown;
    } fields[] = {
        {LACKS_COUNT, DIFF_NO_COUNT},
        {LACKS_DATATYPE, DIFF_NO_TYPE},
        {LACKS_REDOP, DIFF_NO_REDOP},
        {LACKS_ROOT, DIFF_NO_ROOT},
    };
    unsigned unknown = 0;
    for (int i = 0; i < trace_process_count(trace); i++)
        for (size_t j = 0; j < sizeof fields / sizeof *fields; j++)
            if (trace_process(trace, i)->lacks & fields[j].lacks)
                unknown |= fields[j].unknown;
    return unknown;
}

static int load_side(struct diff_side *side, bool progress, struct error *err)
{
    if (trace_open(&side->trace, &side->path, 1, err))
        return -1;
    side->processes = trace_process_count(side->trace);
    side->process = calloc((size_t)side->processes + 1, sizeof *side->process);
    if (!side->process)
        return diff_no_memory(err);
    if (sqlite3_open_v2("", &side->store, STORE_FLAGS, NULL) != SQLITE_OK ||
        sqlite3_exec(side->store, schema, NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(side->store, "INSERT INTO op VALUES(?,?,?,?,?,?,?,?,?,?,?,?)", -1,
                           &side->insert, NULL) != SQLITE_OK ||
        sqlite3_exec(side->store, "BEGIN", NULL, NULL, NULL) != SQLITE_OK)
        return diff_store_failed(side, err);
    struct analyzer *analyzer = diff_pace_begin(side->trace);
    if (!analyzer)
        return diff_no_memory(err);
    int status = read_side_events(side, analyzer, progress, err);
    if (diff_pace_end(&side->pace, analyzer) && !status)
        status = diff_no_memory(err);
    if (status)
        return -1;
    if (sqlite3_exec(side->store, "COMMIT; CREATE INDEX op_member ON op(member, idx)", NULL, NULL,
                     NULL) != SQLITE_OK)
        return diff_store_failed(side, err);
    side->unknown = unknown_of(side->trace);
    return number_side_ranks(side) ? diff_no_memory(err) : 0;
}

int diff_side_load(struct diff_side *side, const char *path, bool progress, struct error *err)
{
    *side = (struct diff_side){.path = path};
    if (!load_side(side, progress, err))
        return 0;
    diff_side_free(side);
    return -1;
}

void diff_side_free(struct diff_side *side)
{
    struct diff_table *entry, *next;
    HASH_ITER(hh, side->table, entry, next) {
        HASH_DEL(side->table, entry);
        free(entry);
    }
    for (int i = 0; i < side->comms; i++)
        free(side->comm[i].member);
    free(side->comm);
    free(side->member);
    free(side->process);
    diff_pace_free(&side->pace);
    sqlite3_finalize(side->insert);
    sqlite3_close(side->store);
    if (side->trace)
        trace_close(side->trace);
    *side = (struct diff_side){0};
}
