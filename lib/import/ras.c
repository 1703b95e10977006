/* ras.c: reads RAS's JSON: one snapshot of a job, or several one after the other in one file.
 *
 * A snapshot says how many collectives each rank of each communicator has launched. One does not
 * show whether a job runs or hangs; several, taken some seconds apart, do:
 * `while sleep 5; do ncclras -f json; done >job.ras`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <uthash.h>

#include "lib/import/import.h"
#include "lib/import/log_line.h"
#include "lib/import/ras_status.h"
#include "lib/trace/names.h"

enum { FILE_MAX = 512 << 20, SAID_BYTES = 512, IN_PROGRESS = 7 };

struct seen_key {
    int member;
};

/* What was reported of a member last. */
struct seen {
    struct seen_key key;
    struct ras_rank rank; /* as it was in the snapshot before */
    bool known, said;
    UT_hash_handle hh;
};

struct ras_reader {
    struct import *import;
    struct import_input *input;
    struct seen *seen;
    uint64_t exact_ns; /* for the next snapshot */
    uint64_t ranks;
};

/* --- one rank --- */

static int version_number(const char *text)
{
    int major = 0, minor = 0, patch = 0;
    if (sscanf(text, "%2d.%3d.%3d", &major, &minor, &patch) < 2)
        return 0;
    return major * 10000 + minor * 100 + patch;
}

/* Its rank in the largest communicator is what people call it. */
static int shown_rank(const struct ras_status *status, const struct ras_comm *comm,
                      const struct ras_rank *rank)
{
    const struct ras_comm *widest = comm;
    int shown = rank->rank;
    for (int i = 0; i < status->comms && rank->pid > 0; i++)
        for (int k = 0; status->comm[i].size > widest->size && k < status->comm[i].ranks; k++)
            if (status->comm[i].rank[k].pid == rank->pid &&
                !strcmp(status->comm[i].rank[k].host, rank->host)) {
                widest = &status->comm[i];
                shown = status->comm[i].rank[k].rank;
            }
    return shown;
}

static int get_ras_process(struct ras_reader *reader, const struct ras_status *status,
                           const struct ras_comm *comm, const struct ras_rank *rank)
{
    char key[32] = "";
    struct import_process process = import_process_new();
    process.host = *rank->host && strcmp(rank->host, "unknown") ? rank->host : NULL;
    process.pid = rank->pid > 0 ? rank->pid : 0;
    process.nccl_version = version_number(status->version);
    if (process.pid && process.host) {
        int index = import_process(reader->import, &process);
        if (index >= 0)
            import_process_rank(reader->import, index, shown_rank(status, comm, rank));
        return index;
    }
    snprintf(key, sizeof key, "%llx %d", (unsigned long long)comm->hash, rank->rank);
    process.rank = rank->rank;
    process.key = key;
    return import_process(reader->import, &process);
}

static int emit_said(struct ras_reader *reader, int process, enum said how, uint64_t time_ns,
                     const struct ras_comm *comm, const char *what)
{
    char text[SAID_BYTES];
    snprintf(text, sizeof text, "%s (communicator %04llx)", what,
             (unsigned long long)comm->hash >> 48);
    return import_said(reader->import, process, how, "NCCL RAS", text, time_ns);
}

static const char *result_text(int result)
{
    static const char *const texts[] = {"",
                                        "unhandled CUDA error",
                                        "system error",
                                        "internal error",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote process error"};
    return result > 0 && result < (int)(sizeof texts / sizeof *texts) ? texts[result]
                                                                      : "unknown error";
}

/* What RAS itself finds wrong with a rank. */
static int emit_rank_state(struct ras_reader *reader, int process, const struct ras_comm *comm,
                           const struct ras_rank *rank, uint64_t time_ns)
{
    char text[SAID_BYTES];
    if (rank->dead)
        return import_process_end(reader->import, process, END_UNKNOWN, 0, time_ns) ||
                       emit_said(reader, process, SAID_WARNING, time_ns, comm,
                                 "the process is considered dead")
                   ? -1
                   : 0;
    if (rank->unresponsive)
        return emit_said(reader, process, SAID_WARNING, time_ns, comm,
                         "the process does not answer");
    if (rank->missing)
        return emit_said(reader, process, SAID_WARNING, time_ns, comm,
                         "the process answers, but does not know of the communicator");
    if (rank->init_state == IN_PROGRESS)
        return emit_said(reader, process, SAID_NOTE, time_ns, comm,
                         "the communicator is still being made");
    if (rank->init_state || (rank->async_error && rank->async_error != IN_PROGRESS)) {
        snprintf(text, sizeof text, "%s: %s",
                 rank->init_state ? "making the communicator failed" : "an asynchronous error",
                 result_text(rank->init_state ? rank->init_state : rank->async_error));
        return emit_said(reader, process, SAID_ERROR, time_ns, comm, text);
    }
    return rank->aborted ? emit_said(reader, process, SAID_WARNING, time_ns, comm,
                                     "the communicator was aborted")
                         : 0;
}

/* --- a communicator --- */

/* The kind of the collectives that `ahead` has launched and `behind` has not, if it is one kind;
 * -1. *fits: what behind has is part of what ahead has, as it must be where all ranks launch the
 * same. */
static int kind_ahead(const struct ras_rank *ahead, const struct ras_rank *behind, bool *fits)
{
    int kind = -1, kinds = 0;
    *fits = true;
    for (int i = 0; i < RAS_KINDS; i++) {
        if (ahead->count[i] > behind->count[i]) {
            kind = i;
            kinds++;
        }
        *fits &= ahead->count[i] >= behind->count[i];
    }
    return kinds == 1 && *fits ? kind : -1;
}

static const struct ras_rank *furthest(const struct ras_comm *comm, bool behind)
{
    const struct ras_rank *found = NULL;
    for (int i = 0; i < comm->ranks; i++) {
        const struct ras_rank *rank = &comm->rank[i];
        if (!rank->missing &&
            (!found || (behind ? rank->total < found->total : rank->total > found->total)))
            found = rank;
    }
    return found;
}

/* Ranks that launched as many collectives or more, but of one kind fewer than `other`, launched
 * others. */
static int say_parted(struct ras_reader *reader, int process, const struct ras_comm *comm,
                      const struct ras_rank *rank, const struct ras_rank *other, uint64_t time_ns)
{
    char text[SAID_BYTES];
    size_t used = (size_t)snprintf(text, sizeof text,
                                   "launched other collectives than rank %d:", other->rank);
    for (int i = 0; i < RAS_KINDS && used < sizeof text; i++)
        if (rank->count[i] != other->count[i])
            used += (size_t)snprintf(text + used, sizeof text - used, " %s %llu, not %llu;",
                                     api_name((unsigned)i) + 4, (unsigned long long)rank->count[i],
                                     (unsigned long long)other->count[i]);
    text[strcspn(text, "\n") - (used < sizeof text)] = '\0';
    return emit_said(reader, process, SAID_ERROR, time_ns, comm, text);
}

static struct seen *seen_of(struct ras_reader *reader, int member)
{
    struct seen_key key = {member};
    struct seen *seen;
    HASH_FIND(hh, reader->seen, &key, sizeof key, seen);
    if (seen || !(seen = calloc(1, sizeof *seen)))
        return seen;
    seen->key = key;
    HASH_ADD(hh, reader->seen, key, sizeof seen->key, seen);
    return seen;
}

static int emit_ras_call(struct ras_reader *reader, int member, int kind, uint64_t number,
                         uint64_t time_ns)
{
    struct import_call call = import_call_new(member, (uint16_t)kind);
    call.number = number;
    call.time_ns = time_ns;
    return import_call(reader->import, &call);
}

/* How far a rank is; and of what kind the first collective is that another one lacks. */
static int import_ras_counts(struct ras_reader *reader, int process, int member,
                             const struct ras_comm *comm, const struct ras_rank *rank,
                             uint64_t time_ns)
{
    const struct ras_rank *least = furthest(comm, true), *most = furthest(comm, false);
    struct seen *seen = seen_of(reader, member);
    bool fits = true;
    if (!seen)
        return -1;
    int kind = rank->total > least->total ? kind_ahead(rank, least, &fits) : -1;
    if (rank->total <= most->total && rank != most)
        kind_ahead(most, rank, &fits);
    if (!fits && !seen->said) {
        seen->said = true;
        if (say_parted(reader, process, comm, rank, most, time_ns))
            return -1;
    }
    if (seen->known && seen->rank.total == rank->total)
        return 0;
    /* What came since the snapshot before, if it is of one kind; then what another rank lacks. */
    int since = seen->known ? kind_ahead(rank, &seen->rank, &fits) : -1;
    if (since >= 0 && emit_ras_call(reader, member, since, seen->rank.total, time_ns))
        return -1;
    if (kind >= 0 && !(since >= 0 && least->total <= seen->rank.total) &&
        emit_ras_call(reader, member, kind, least->total, time_ns))
        return -1;
    seen->rank = *rank;
    seen->known = true;
    return import_reached(reader->import, member, rank->total, IMPORT_UNKNOWN, time_ns);
}

static bool is_hash_alone(const struct ras_status *status, const struct ras_comm *comm)
{
    for (int i = 0; i < status->comms; i++)
        if (&status->comm[i] != comm && status->comm[i].hash == comm->hash)
            return false;
    return true;
}

static int import_ras_comm(struct ras_reader *reader, const struct ras_status *status,
                           const struct ras_comm *comm, uint64_t time_ns)
{
    char name[80];
    snprintf(name, sizeof name, "%016llx %s", (unsigned long long)comm->hash, comm->secondary);
    for (int i = 0; i < comm->ranks; i++) {
        const struct ras_rank *rank = &comm->rank[i];
        reader->ranks++;
        bool silent = rank->missing && !rank->dead; /* nothing is known of where it stands */
        int process = get_ras_process(reader, status, comm, rank);
        struct import_member reported = import_member_new();
        reported.comm = is_hash_alone(status, comm) ? NULL : name;
        reported.comm_id = comm->hash;
        reported.rank = rank->rank;
        reported.nranks = comm->size > 0 ? comm->size : -1;
        reported.device = rank->device;
        reported.time_ns = time_ns;
        if (process < 0)
            return -1;
        int member = silent ? 0 : import_member(reader->import, process, &reported);
        if (member < 0 || emit_rank_state(reader, process, comm, rank, time_ns) ||
            (!rank->missing && import_ras_counts(reader, process, member, comm, rank, time_ns)) ||
            (!rank->missing && import_known_until(reader->import, process, time_ns)))
            return -1;
    }
    return 0;
}

/* --- the file --- */

/* {"event": "PEER_DEAD", "peer": {"host": ..., "pid": ...}}, of `ncclras -m -f json`. */
static int import_ras_event(struct ras_reader *reader, const json_t *document)
{
    const json_t *peer = json_object_get(document, "peer");
    const char *event = json_string_value(json_object_get(document, "event")),
               *time = json_string_value(json_object_get(document, "timestamp"));
    struct import_process process = import_process_new();
    reader->ranks++;
    if (strcmp(event, "PEER_DEAD"))
        return 0;
    process.host = json_string_value(json_object_get(peer, "host"));
    process.pid = (int)json_integer_value(json_object_get(peer, "pid"));
    int index = import_process(reader->import, &process);
    uint64_t time_ns = time ? log_prefix_time(time, strlen(time)) : 0;
    return index < 0 || import_process_end(reader->import, index, END_UNKNOWN, 0, time_ns) ||
                   import_said(reader->import, index, SAID_ERROR, "NCCL RAS",
                               "the process is considered dead", time_ns)
               ? -1
               : 0;
}

static int import_ras_snapshot(struct ras_reader *reader, const json_t *document, struct error *err)
{
    struct ras_status status;
    int result = 0;
    if (json_is_string(json_object_get(document, "event")))
        return import_ras_event(reader, document);
    if (ras_status_parse(document, &status, err))
        return -1;
    if (status.exact_ns) {
        reader->exact_ns = status.exact_ns;
        return 0;
    }
    uint64_t time_ns = reader->exact_ns ? reader->exact_ns : status.time_ns;
    if (!time_ns)
        time_ns = input_modified_ns(reader->input);
    for (int i = 0; i < status.comms && !result; i++)
        result = import_ras_comm(reader, &status, &status.comm[i], time_ns);
    ras_status_free(&status);
    return result;
}

static int read_snapshots(struct ras_reader *reader, const char *text, size_t bytes,
                          struct error *err)
{
    json_error_t wrong;
    int snapshots = 0;
    for (size_t at = 0; at < bytes;) {
        size_t blank = strspn(text + at, " \t\r\n"); /* text ends with NUL */
        if ((at += blank) >= bytes)
            break;
        json_t *document = json_loadb(text + at, bytes - at, JSON_DISABLE_EOF_CHECK, &wrong);
        if (!document)
            return error_set(err, "%s: byte %zu: %s: the snapshots before it (%d) were taken",
                             input_path(reader->input),
                             at + (wrong.position > 0 ? (size_t)wrong.position : 0), wrong.text,
                             snapshots);
        int result = import_ras_snapshot(reader, document, err);
        json_decref(document);
        if (result)
            return err->text[0] ? error_prefix(err, "%s: byte %zu", input_path(reader->input), at)
                                : -1;
        snapshots++;
        at += (size_t)wrong.position;
    }
    return 0;
}

static int read_ras(struct import *import, struct import_input *input, struct error *err)
{
    struct ras_reader reader = {.import = import, .input = input};
    struct seen *seen, *next;
    size_t bytes;
    char *text = input_whole(input, FILE_MAX, &bytes, err);
    if (!text)
        return -1;
    int result = read_snapshots(&reader, text, bytes, err);
    free(text);
    if (!result && !reader.ranks)
        import_refuse(import, "%s: it names no rank", input_path(input));
    HASH_ITER(hh, reader.seen, seen, next) {
        HASH_DEL(reader.seen, seen);
        free(seen);
    }
    return result;
}

static int sniff_ras(const struct import_head *head)
{
    const char *text = head->bytes + strspn(head->bytes, " \t\r\n");
    if (*text != '{')
        return 0;
    if (strstr(text, "\"ddpcheck_time_ns\"") ||
        (strstr(text, "\"event\"") && strstr(text, "\"nvml_devs\"")))
        return 100;
    if (!strstr(text, "\"communicators\""))
        return 0;
    return strstr(text, "\"nccl_version\"") || strstr(text, "\"missing_ranks\"") ||
                   strstr(text, "\"collective_counts\"")
               ? 100
               : 0;
}

const struct import_source import_source_ras = {
    .name = "ras",
    .title = "NCCL RAS status",
    .lacks = LACKS_CALLS | LACKS_COUNT | LACKS_DATATYPE | LACKS_REDOP | LACKS_ROOT |
             LACKS_ADDRESSES | LACKS_STREAM | LACKS_GROUP | LACKS_STACK | LACKS_TIMING |
             LACKS_STATE | LACKS_CUDA | LACKS_START | LACKS_P2P | LACKS_SETUP | LACKS_MARKS |
             LACKS_PAYLOAD,
    .sniff = sniff_ras,
    .read = read_ras,
};
