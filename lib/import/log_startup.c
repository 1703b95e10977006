/* log_startup.c: start-ups that hang: barriers over PyTorch's store, Lightning's members, and ranks
 * that wait for NCCL's id: who has come, and so who has not, or who came twice. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/rankset.h"
#include "lib/base/text.h"
#include "lib/import/log_messages.h"
#include "lib/import/log_phrases.h"
#include "lib/import/scan.h"

enum {
    BARRIERS_MAX = 256,
    RANKS_MAX = 1 << 20,
    KEY_BYTES = 64,
    RANKS_BYTES = 256,
    REASON_BYTES = 160,
    LINES_AFTER = 40 /* behind Lightning's line: a job that prints so much goes on */
};

/* Ranks that meet at one point. */
struct start_barrier {
    char key[KEY_BYTES];
    struct rankset came; /* ranks that said that they are there */
    int64_t world, most; /* most: how many have come, as any of them counted; 0 not known */
    bool is_over;        /* all came */
};

struct log_startup {
    struct start_barrier *barrier; /* by key */
    uint32_t barriers;
    struct start_barrier members; /* Lightning's */
    uint64_t lines_since;         /* since a member's last line */
    int64_t last_member;          /* its rank */
    uint64_t last_head;           /* what that line began with, but for digits */
    struct rankset for_id;        /* ranks of a group that wait for NCCL's id */
    int64_t owner;                /* the rank of the group that should have stored it */
    bool has_lost_store;          /* the connection to the store ended before */
    char reason[REASON_BYTES];    /* of the last socket that could not be bound or connected */
};

static const char todo_barrier[] =
    "See that rank's own log and node: it has not started, ended before, or can't reach the master "
    "(address, port, firewall). The others wait until the time-out.";
static const char todo_several[] =
    "More processes came than the world has: an earlier run, a second job or a restart used the "
    "same store. Give each job a port of its own, and end what is left of earlier runs.";
static const char todo_twice[] =
    "Two processes have the same rank, as a rule because two nodes both believe to be the first: "
    "see NODE_RANK, --node-rank or SLURM_NODEID on each node.";
static const char todo_id[] =
    "That rank did not come to the group's first collective: an exception, a slow load before it, "
    "or other work; see its own log. If it did come, the ranks make their groups in another order.";

static const char todo_store[] =
    "See the log of rank 0 and of its node: an exception, a signal, memory. The others only lost "
    "it.";

/* --- a store's barrier --- */

static struct start_barrier *find_barrier(struct log_startup *startup, const char *key,
                                          size_t bytes)
{
    char name[KEY_BYTES];
    snprintf(name, sizeof name, "%.*s", (int)(bytes < KEY_BYTES ? bytes : KEY_BYTES - 1), key);
    for (uint32_t i = 0; i < startup->barriers; i++)
        if (!strcmp(startup->barrier[i].key, name))
            return &startup->barrier[i];
    if (!startup->barrier)
        startup->barrier = calloc(BARRIERS_MAX, sizeof *startup->barrier);
    if (!startup->barrier || startup->barriers == BARRIERS_MAX)
        return NULL;
    struct start_barrier *barrier = &startup->barrier[startup->barriers++];
    memcpy(barrier->key, name, sizeof name);
    return barrier;
}

/* The same rank repeats the line until all have come. */
static int barrier_line(struct log_startup *startup, const char *text)
{
    static const char *const templates[] = {
        "barrier to initialize process group for rank: {i:rank}, key: {w:key} "
        "(world_size={i:world}, worker_count={i:most}",
        "barrier to initialize process group for {r:} seconds, rank: {i:rank}, key: {w:key} "
        "(world_size={i:world}, num_workers_joined={i:most}",
        "in store based barrier on rank: {i:rank}, for key: {w:key} (world_size={i:world}, "
        "worker_count={i:most}",
        "in store based barrier on rank {i:rank}, for key: {w:key} (world_size={i:world}, "
        "num_workers_joined={i:most}",
    };
    struct scanned found;
    bool fits = false;
    for (size_t i = 0; !fits && i < sizeof templates / sizeof *templates; i++)
        fits = scan(text, templates[i], &found);
    if (!fits)
        return 0;
    int64_t rank = scanned_number(&found, "rank", -1), most = scanned_number(&found, "most", 0);
    const struct scanned_field *key = &found.field[found.fields - 3];
    struct start_barrier *barrier = find_barrier(startup, key->text, key->bytes);
    if (!barrier)
        return startup->barrier ? 1 : -1;
    barrier->is_over = false;
    barrier->world = scanned_number(&found, "world", 0);
    barrier->most = most > barrier->most ? most : barrier->most;
    bool is_rank = rank >= 0 && rank < RANKS_MAX;
    return is_rank && rankset_add(&barrier->came, (int)rank) ? -1 : 1;
}

static int barrier_end_line(struct log_startup *startup, const char *text)
{
    struct scanned found;
    if (!scan(text, "Completed store-based barrier for key:{w:key}", &found))
        return 0;
    struct start_barrier *barrier =
        find_barrier(startup, found.field[0].text, found.field[0].bytes);
    if (barrier)
        barrier->is_over = true;
    return 0; /* all is well: nothing to report */
}

/* --- Lightning --- */

static uint64_t hash_head(const char *text, const char *end)
{
    uint64_t hash = HASH_START;
    for (; text < end; text++)
        if (*text < '0' || *text > '9')
            hash = hash_bytes(hash, text, 1);
    return hash;
}

/* A process with two loggers says it twice, one right behind the other, each in its own form. */
static bool is_other_logger(struct log_startup *startup, int64_t rank, const char *text,
                            const char *end)
{
    uint64_t head = hash_head(text, end);
    bool is_other = startup->members.most && startup->last_member == rank &&
                    startup->last_head != head;
    startup->last_member = is_other ? -1 : rank;
    startup->last_head = head;
    return is_other;
}

/* "GLOBAL_RANK: 0, MEMBER: 1/4", once for each process; "All distributed processes registered" by
 * rank 0 when all have come. */
static int member_line(struct log_job *job, struct log_startup *startup, const char *text)
{
    struct start_barrier *members = &startup->members;
    struct scanned found;
    startup->lines_since++;
    if (scan_find(text, "All distributed processes registered")) {
        rankset_free(&members->came);
        *members = (struct start_barrier){.is_over = true};
        return 0;
    }
    if (!scan(text, "GLOBAL_RANK: {i:rank}, MEMBER: {i:}/{i:world}", &found))
        return 0;
    int64_t rank = scanned_number(&found, "rank", -1);
    if (rank < 0 || rank >= RANKS_MAX)
        return 0;
    startup->lines_since = 0;
    members->is_over = false;
    members->most += !is_other_logger(startup, rank, text, found.begin);
    if (members->world > job->world && members->world < RANKS_MAX)
        job->world = (int)members->world;
    members->world = scanned_number(&found, "world", 0);
    return rankset_add(&members->came, (int)rank) ? -1 : 1;
}

/* --- NCCL's id --- */

static int id_line(struct log_startup *startup, const char *text)
{
    struct scanned found;
    if (!scan(text, "[{i:rank}] is setting up NCCL communicator and ret", &found) ||
        !strstr(found.end, "got e"))
        return 0;
    int64_t rank = scanned_number(&found, "rank", -1);
    startup->owner = text_number_behind(found.end, "ncclUniqueId from [");
    startup->has_lost_store |= strcasestr(found.end, "Connection reset") ||
                               strcasestr(found.end, "Broken pipe") ||
                               strcasestr(found.end, "Failed to recv") ||
                               strcasestr(found.end, "Connection closed");
    bool is_rank = rank >= 0 && rank < RANKS_MAX;
    return is_rank && rankset_add(&startup->for_id, (int)rank) ? -1 : 1;
}

/* --- addresses --- */

/* Attempts are warnings, with the address and why; only the last line says that it gave up. */
static int socket_line(struct log_job *job, struct log_startup *startup, const char *text,
                       size_t bytes)
{
    static const char listens[] = "The server socket has failed to listen on any local network",
                      times_out[] = "The client socket has timed out after {r:time} while trying "
                                    "to connect to {r:}";
    struct scanned found;
    char what[MESSAGE_BYTES];
    if (scan(text, "socket has failed to {w:do} to {r:address} (errno: {i:errno} - {r:reason})",
             &found) &&
        *found.field[1].text != '?')
        snprintf(startup->reason, sizeof startup->reason, "%.*s: %.*s", (int)found.field[1].bytes,
                 found.field[1].text, (int)found.field[3].bytes, found.field[3].text);
    bool has_port = scan(text, listens, &found);
    if (!has_port && !scan(text, times_out, &found))
        return 0;
    const char *again = strstr(found.begin, ". The server socket has failed to bind");
    size_t length = again ? (size_t)(again - found.begin) : strcspn(found.begin, "\r\n");
    while (length && found.begin[length - 1] == '.')
        length--;
    snprintf(what, sizeof what, "%.*s%s%s%s", (int)length, found.begin,
             *startup->reason ? " (" : "", startup->reason, *startup->reason ? ")" : "");
    return log_messages_add(job, log_speaker_of(text, bytes), SAID_ERROR, "PyTorch", what,
                            has_port ? log_todo_port : log_todo_connect);
}

static int read_startup_line(struct log_job *job, const char *text, size_t bytes)
{
    struct log_startup *startup = job->state[LOG_STARTUP];
    int result = barrier_line(startup, text);
    if (!result)
        result = barrier_end_line(startup, text);
    if (!result)
        result = member_line(job, startup, text);
    if (!result)
        result = id_line(startup, text);
    return result ? result : socket_line(job, startup, text, bytes);
}

/* --- the end --- */

static const char *rank_word(const struct rankset *ranks)
{
    return rankset_count(ranks) == 1 ? "rank" : "ranks";
}

/* The ranks below `world` that did not come. */
static int find_missing(const struct start_barrier *meeting, struct rankset *missing)
{
    for (int rank = 0; rank < meeting->world && rank < RANKS_MAX; rank++)
        if (!rankset_has(&meeting->came, rank) && rankset_add(missing, rank))
            return -1;
    return 0;
}

static int add_startup(struct log_job *job, struct text *what, const char *who, const char *todo)
{
    char *text = text_take(what);
    int result = text ? log_messages_add(job, LOG_NOBODY, SAID_ERROR, who, text, todo) : -1;
    free(text);
    return result < 0 ? -1 : 0;
}

/* Whether the ranks that wait are all that have come: then those that have not are known. */
static bool is_complete(const struct start_barrier *meeting)
{
    int count = rankset_count(&meeting->came);
    return count < meeting->world && count == meeting->most &&
           rankset_next(&meeting->came, (int)meeting->world) < 0;
}

static int report_barrier(struct log_job *job, const struct start_barrier *barrier)
{
    struct text what = {0};
    struct rankset missing = {0};
    char list[RANKS_BYTES], other[RANKS_BYTES];
    bool several = barrier->most > barrier->world;
    if (barrier->is_over || barrier->most == barrier->world)
        return 0;
    rankset_text(&barrier->came, list, sizeof list);
    if (several) {
        text_add(&what,
                 "the start-up hangs: %lld processes came to init_process_group of %lld ranks (%s)",
                 (long long)barrier->most, (long long)barrier->world, barrier->key);
    } else if (is_complete(barrier) && !find_missing(barrier, &missing)) {
        text_add(&what,
                 "the start-up hangs: %s %s did not come to init_process_group (%s); %s %s wait, "
                 "%lld of %lld",
                 rank_word(&missing), rankset_text(&missing, other, sizeof other), barrier->key,
                 rank_word(&barrier->came), list, (long long)barrier->most,
                 (long long)barrier->world);
    } else {
        text_add(&what,
                 "the start-up hangs: %lld of %lld ranks came to init_process_group (%s), of which "
                 "%s %s say that they wait; which did not come is not in this log",
                 (long long)barrier->most, (long long)barrier->world, barrier->key,
                 rank_word(&barrier->came), list);
    }
    rankset_free(&missing);
    return add_startup(job, &what, "PyTorch", several ? todo_several : todo_barrier);
}

/* Only rank 0 says that all have come, so a log without rank 0 says nothing. */
static int report_members(struct log_job *job, const struct log_startup *startup)
{
    const struct start_barrier *members = &startup->members;
    struct text what = {0};
    struct rankset missing = {0};
    char list[RANKS_BYTES], other[RANKS_BYTES];
    if (members->is_over || startup->lines_since > LINES_AFTER || !rankset_has(&members->came, 0) ||
        rankset_count(&members->came) >= members->world)
        return 0;
    if (find_missing(members, &missing))
        return -1;
    bool twice = members->most == members->world;
    rankset_text(&members->came, list, sizeof list);
    rankset_text(&missing, other, sizeof other);
    if (twice)
        text_add(&what,
                 "the start-up hangs: %lld processes registered, but only as %s %s, some of them "
                 "twice; none is %s %s",
                 (long long)members->most, rank_word(&members->came), list, rank_word(&missing),
                 other);
    else
        text_add(&what,
                 "the start-up hangs: of %lld ranks only %s registered in this log; nothing is "
                 "heard of %s %s",
                 (long long)members->world, list, rank_word(&missing), other);
    rankset_free(&missing);
    return add_startup(job, &what, "Lightning", twice ? todo_twice : todo_barrier);
}

static int report_id(struct log_job *job, const struct log_startup *startup)
{
    struct text what = {0};
    char list[RANKS_BYTES];
    if (!rankset_count(&startup->for_id))
        return 0;
    text_add(&what, "%s %s of a group waited for the ncclUniqueId of rank %lld of it, %s",
             rank_word(&startup->for_id), rankset_text(&startup->for_id, list, sizeof list),
             (long long)startup->owner,
             startup->has_lost_store ? "and lost the connection to the store: the process that "
                                       "keeps it, as a rule rank 0 of the job, has ended"
                                     : "which did not store it in time");
    return add_startup(job, &what, "PyTorch", startup->has_lost_store ? todo_store : todo_id);
}

static int end_startup(struct log_job *job)
{
    struct log_startup *startup = job->state[LOG_STARTUP];
    int result = report_members(job, startup) | report_id(job, startup);
    for (uint32_t i = 0; i < startup->barriers; i++) {
        result |= report_barrier(job, &startup->barrier[i]);
        rankset_free(&startup->barrier[i].came);
    }
    free(startup->barrier);
    rankset_free(&startup->members.came);
    rankset_free(&startup->for_id);
    return result ? -1 : 0;
}

const struct log_reader log_startup = {sizeof(struct log_startup), read_startup_line, end_startup};
