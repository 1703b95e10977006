/* log_ras.c: the report that `ncclras` prints as text: which ranks of a communicator are behind, do
 * not answer, or have an error; and the processes that `ncclras -m` reports as dead.
 *
 * The texts are those of NCCL 2.24 to 2.31 (src/ras/client_support.cc). RAS names only the ranks of
 * small groups; if all groups but one are named, the ranks of that one are known as well. The text
 * has no time: of several reports the last counts, and how often it was repeated. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/import/log_messages.h"
#include "lib/trace/kinds.h"
#include "lib/import/scan.h"

enum { GROUPS_MAX = 256, BLOCKS_MAX = 256, VALUES_MAX = 64, RANKS_MAX = 1 << 16, NOBODY = -1 };
enum { REPEATED_LEAST = 2 }; /* two in a row may be of one second */
enum section { SECTION_NONE, SECTION_COUNTS, SECTION_MISSING, SECTION_ERROR, SECTION_STATUS };

/* "26 ranks have launched up to operation 6650". */
struct ras_value {
    int64_t count;
    int ranks, named;
};

/* What one report says about one kind of collective of one communicator. */
struct ras_block {
    uint64_t hash;
    uint16_t api; /* API_NONE: all kinds together (before NCCL 2.26) */
    int size;
    uint32_t values;
    struct ras_value value[VALUES_MAX];
    int64_t *of_rank; /* `size` counts; NOBODY: not named */
    int repeated;     /* reports before it that had the same counts */
};

struct log_ras {
    uint64_t reports, communicators, ranks, faulty; /* of the last report */
    int size[GROUPS_MAX];                           /* of the communicators of a group of rows */
    int widest;
    bool in_table, has_dead;
    enum section section;
    uint64_t hash; /* of the communicator in hand */
    int comm_size;
    struct ras_block *block; /* in hand */
    struct ras_block blocks[BLOCKS_MAX];
    uint32_t block_count;
};

static const char todo_dead[] =
    "Look at that process: its log, its exit status, dmesg of its node. The others wait for it.";
static const char todo_silent[] =
    "Its process does not answer RAS: it was stopped, is stuck in the driver, or its node lost the "
    "network. Look at its stacks; ask RAS again after a minute.";

/* --- what the lines say --- */

static struct ras_block *find_ras_block(struct log_ras *ras, uint16_t api)
{
    for (uint32_t i = 0; i < ras->block_count; i++)
        if (ras->blocks[i].hash == ras->hash && ras->blocks[i].api == api)
            return &ras->blocks[i];
    return NULL;
}

/* "Communicator ranks have different AllGather operation counts". */
static int begin_counts(struct log_ras *ras, const char *kind)
{
    uint16_t api = kind_of_nccl(kind, strcspn(kind, " "));
    struct ras_block *block = find_ras_block(ras, api);
    ras->block = NULL;
    ras->section = SECTION_COUNTS;
    if (ras->comm_size < 1)
        return 1;
    if (!block && ras->block_count == BLOCKS_MAX)
        return 1;
    int64_t *of_rank = calloc((size_t)ras->comm_size, sizeof *of_rank);
    if (!of_rank)
        return -1;
    for (int i = 0; i < ras->comm_size; i++)
        of_rank[i] = NOBODY;
    struct ras_block before = {0};
    if (!block)
        block = &ras->blocks[ras->block_count++];
    else
        before = *block;
    *block = (struct ras_block){
        .hash = ras->hash, .api = api, .size = ras->comm_size, .of_rank = of_rank};
    block->repeated = before.repeated + 1; /* until a count differs */
    free(before.of_rank);
    for (uint32_t i = 0; i < before.values; i++)
        block->value[i] = before.value[i];
    ras->block = block;
    return 1;
}

/* The next group of ranks with one count. */
static void add_ras_value(struct ras_block *block, int ranks, int64_t count)
{
    if (block->values == VALUES_MAX)
        return;
    struct ras_value *value = &block->value[block->values++];
    if (value->ranks != ranks || value->count != count)
        block->repeated = 0; /* it holds what the report before said */
    *value = (struct ras_value){.count = count, .ranks = ranks};
}

static void name_rank(struct ras_block *block, int rank, int64_t count)
{
    if (rank >= 0 && rank < block->size)
        block->of_rank[rank] = count;
}

/* Lines below "different ... operation counts". */
static int counts_line(struct log_ras *ras, const char *text)
{
    static const char launched[] = " launched up to operation ",
                      none[] = "not launched any operations";
    struct ras_block *block = ras->block;
    const char *found = strstr(text, launched);
    int64_t count = found ? text_number_behind(found, launched) : 0;
    int64_t rank = text_number_behind(text, "Rank ");
    if (!block || count < 0)
        return 1;
    if (found || strstr(text, none)) {
        bool one = rank >= 0 && rank < block->size;
        add_ras_value(block, one ? 1 : atoi(text), count);
        if (one && block->values) {
            name_rank(block, (int)rank, count);
            block->value[block->values - 1].named = 1;
        }
        return 1;
    }
    if (rank < 0 || !block->values || !scan_find(text, " -- "))
        return 0;
    struct ras_value *value = &block->value[block->values - 1];
    name_rank(block, (int)rank, value->count);
    value->named++;
    return 1;
}

/* A rank of a communicator has the job's number only where that has all ranks. */
static struct log_speaker speaker_in(const struct log_ras *ras, int64_t rank)
{
    bool is_known = ras->comm_size == ras->widest && rank >= 0 && rank < RANKS_MAX;
    return (struct log_speaker){.rank = is_known ? (int)rank : -1};
}

static int say_of_rank(struct log_job *job, int64_t rank, enum said how, const char *what,
                       const char *todo)
{
    char text[MESSAGE_BYTES];
    const struct log_ras *ras = job->state[LOG_RAS];
    snprintf(text, sizeof text, "rank %lld of communicator %04llx%s %s", (long long)rank,
             (unsigned long long)ras->hash >> 48,
             ras->comm_size == ras->widest ? "" : " (a smaller one)", what);
    return log_messages_add(job, speaker_in(ras, rank), how, "NCCL RAS", text, todo);
}

/* "The missing rank: 21", "The missing ranks: 3,5", "Rank 1 -- GPU 0 managed by process ...". */
static int missing_rank_line(struct log_job *job, const char *text)
{
    const struct log_ras *ras = job->state[LOG_RAS];
    const char *list = scan_find(text, "The missing rank");
    const char *at = list ? strchr(list, ':') : scan_find(text, "Rank ");
    const char *what = "does not answer", *todo = todo_silent;
    enum said how = SAID_WARNING;
    if (ras->has_dead) {
        what = "does not answer: its process is considered dead";
        todo = todo_dead;
        how = SAID_ERROR;
    }
    int result = at ? 1 : 0;
    if (at)
        at += strcspn(at, "0123456789");
    while (at && isdigit((unsigned char)*at) && result > 0) {
        char *end;
        long long rank = strtoll(at, &end, 10);
        result = say_of_rank(job, rank, how, what, todo);
        if (!list)
            break;
        at = end + strspn(end, ", ");
    }
    return result;
}

static int error_line(struct log_job *job, const char *text)
{
    const struct log_ras *ras = job->state[LOG_RAS];
    int64_t rank = text_number_behind(text, "Rank ");
    const char *what = text + strspn(text, " ");
    char line[MESSAGE_BYTES];
    if (rank >= 0 && scan_find(text, " -- "))
        return say_of_rank(job, rank, SAID_ERROR, "reports an error", todo_silent);
    if (!scan_find(text, "error"))
        return 0;
    snprintf(line, sizeof line, "communicator %04llx: %s", (unsigned long long)ras->hash >> 48,
             what);
    return log_messages_add(job, LOG_NOBODY, SAID_ERROR, "NCCL RAS", line,
                            "Look for NCCL WARN lines of these ranks.");
}

/* --- the parts of a report --- */

static void begin_report(struct log_ras *ras)
{
    ras->reports++;
    ras->communicators = ras->ranks = ras->faulty = 0;
    ras->widest = ras->comm_size = 0;
    ras->has_dead = ras->in_table = false;
    ras->section = SECTION_NONE;
    ras->block = NULL;
    memset(ras->size, 0, sizeof ras->size);
}

/* "    0         1         4       7-8        32        32   RUNNING  INCOMPLETE". */
static bool table_row(struct log_ras *ras, const char *text)
{
    int group, comms, size, used = 0;
    char nodes[16], per_node[16], all[16], status[24], errors[48];
    if (sscanf(text, "%d %d %15s %15s %d %15s %23s %47s%n", &group, &comms, nodes, per_node, &size,
               all, status, errors, &used) < 8 ||
        group < 0 || group >= GROUPS_MAX || comms < 0 || size < 0 || size > RANKS_MAX)
        return false;
    ras->size[group] = size;
    if (size > ras->widest)
        ras->widest = size;
    ras->communicators += (uint64_t)comms;
    ras->ranks += (uint64_t)comms * (uint64_t)size;
    ras->faulty += strcmp(errors, "OK") != 0;
    return true;
}

/* "#0-0 (fa93daea854b060b) MISMATCH". */
static bool heading(struct log_ras *ras, const char *text)
{
    int group, number;
    unsigned long long hash;
    char error[24];
    const char *at = strchr(text, '#');
    if (!at || sscanf(at, "#%d-%d (%llx) %23s", &group, &number, &hash, error) != 4 || group < 0 ||
        group >= GROUPS_MAX)
        return false;
    ras->hash = hash;
    ras->comm_size = ras->size[group];
    ras->block = NULL;
    ras->section = SECTION_NONE;
    if (!strcmp(error, "INCOMPLETE"))
        ras->section = SECTION_MISSING;
    else if (!strcmp(error, "ERROR"))
        ras->section = SECTION_ERROR;
    return true;
}

static int section_line(struct log_job *job, const char *text)
{
    struct log_ras *ras = job->state[LOG_RAS];
    switch (ras->section) {
    case SECTION_COUNTS:
        return counts_line(ras, text);
    case SECTION_MISSING:
        return missing_rank_line(job, text);
    case SECTION_ERROR:
        return error_line(job, text);
    default:
        return 0;
    }
}

/* "[2025-12-19 13:07:07] PEER_DEAD: Process 1524345 on node 172.16.64.245 managing GPU 1". */
static int event_line(struct log_job *job, const char *text)
{
    struct scanned found;
    return scan(text, "PEER_DEAD: Process {i:pid} on node {w:host}", &found)
               ? log_messages_add(job, LOG_NOBODY, SAID_ERROR, "NCCL RAS", found.begin, todo_dead)
               : 0;
}

static int read_ras_line(struct log_job *job, const char *text, size_t bytes)
{
    static const char counts[] = "Communicator ranks have different ";
    struct log_ras *ras = job->state[LOG_RAS];
    const char *found = strstr(text, counts);
    (void)bytes;
    int event = event_line(job, text);
    if (event)
        return event;
    if (scan_find(text, "Communicators... (")) {
        begin_report(ras);
        return 1;
    }
    if (!ras->reports)
        return 0;
    if (scan_find(text, "Ranks    Status  Errors") || scan_find(text, "Ranks   Status  Errors"))
        return ras->in_table = true;
    if (ras->in_table && table_row(ras, text))
        return 1;
    if (heading(ras, text))
        return 1;
    if (scan_find(text, "considered dead (unreachable via the RAS network)"))
        return ras->has_dead = true;
    if (found && strstr(found, " operation counts"))
        return begin_counts(ras, found + strlen(counts));
    if (found)
        ras->section = SECTION_STATUS;
    return section_line(job, text);
}

/* --- the end --- */

/* Where all groups but one are named, the others are of that one. */
static void name_the_rest(struct ras_block *block)
{
    const struct ras_value *rest = NULL;
    int named = 0;
    for (uint32_t i = 0; i < block->values; i++) {
        const struct ras_value *value = &block->value[i];
        if (value->named != value->ranks && rest)
            return;
        if (value->named != value->ranks)
            rest = value;
        else
            named += value->ranks;
    }
    if (!rest || rest->named || rest->ranks + named != block->size)
        return;
    for (int i = 0; i < block->size; i++)
        if (block->of_rank[i] == NOBODY)
            block->of_rank[i] = rest->count;
}

static int import_ras_rank(struct log_job *job, const struct ras_block *block, int rank,
                           int64_t least)
{
    struct import_process process = import_process_new();
    struct import_member member = import_member_new();
    char key[48] = "RAS";
    const struct log_ras *ras = job->state[LOG_RAS];
    if (block->size == ras->widest)
        process.rank = rank;
    else
        snprintf(key, sizeof key, "RAS %llx %d", (unsigned long long)block->hash, rank);
    process.key = key;
    process.file = job->path;
    process.title = "NCCL RAS";
    process.lacks = LACKS_MESSAGES | LACKS_CALLS | LACKS_COUNT | LACKS_STATE;
    member.comm_id = block->hash ^ block->api; /* each kind is counted by itself */
    member.rank = rank;
    member.nranks = block->size;
    member.time_ns = LOG_UNDATED_NS;
    int index = import_process(job->import, &process);
    int number = index < 0 ? -1 : import_member(job->import, index, &member);
    if (number < 0)
        return -1;
    if (block->api && block->of_rank[rank] > least) {
        struct import_call call = import_call_new(number, block->api);
        call.number = (uint64_t)least;
        call.time_ns = LOG_UNDATED_NS;
        if (import_call(job->import, &call))
            return -1;
    }
    return import_reached(job->import, number, (uint64_t)block->of_rank[rank], IMPORT_UNKNOWN,
                          LOG_UNDATED_NS) ||
                   import_known_until(job->import, index, LOG_UNDATED_NS)
               ? -1
               : 0;
}

/* Reports in a row that had the same counts: it does not go on. */
static int say_repeated(struct log_job *job, const struct ras_block *block)
{
    char what[MESSAGE_BYTES];
    if (block->repeated < REPEATED_LEAST)
        return 0;
    snprintf(what, sizeof what,
             "communicator %04llx: %d reports in a row have the same counts, which differ between "
             "its ranks: it does not go on",
             (unsigned long long)block->hash >> 48, block->repeated + 1);
    return log_messages_add(job, LOG_NOBODY, SAID_ERROR, "NCCL RAS", what,
                            "See what the ranks that are behind do: their stacks (py-spy, gdb).");
}

static int import_ras_block(struct log_job *job, struct ras_block *block)
{
    int64_t least = INT64_MAX;
    int result = say_repeated(job, block) < 0 ? -1 : 0;
    name_the_rest(block);
    for (uint32_t i = 0; i < block->values; i++)
        least = block->value[i].count < least ? block->value[i].count : least;
    for (int i = 0; i < block->size && !result; i++)
        if (block->of_rank[i] != NOBODY)
            result = import_ras_rank(job, block, i, least);
    return result;
}

/* A report without any fault is worth saying: it is why nothing else is found. */
static int say_healthy(struct log_job *job)
{
    const struct log_ras *ras = job->state[LOG_RAS];
    char what[MESSAGE_BYTES];
    if (ras->faulty)
        return 0;
    snprintf(what, sizeof what, "%llu ranks of %llu communicator%s, and no fault among them",
             (unsigned long long)ras->ranks, (unsigned long long)ras->communicators,
             ras->communicators == 1 ? "" : "s");
    return log_messages_add(job, LOG_NOBODY, SAID_NOTE, "NCCL RAS", what,
                            "RAS counts calls, not what the GPUs have finished: if the job makes "
                            "no progress, all ranks are in the same collective.");
}

static int end_ras(struct log_job *job)
{
    struct log_ras *ras = job->state[LOG_RAS];
    int result = ras->reports && say_healthy(job) < 0 ? -1 : 0;
    for (uint32_t i = 0; i < ras->block_count; i++) {
        if (!result)
            result = import_ras_block(job, &ras->blocks[i]);
        free(ras->blocks[i].of_rank);
    }
    return result;
}

const struct log_reader log_ras = {sizeof(struct log_ras), read_ras_line, end_ras};
