/* ras_status.c: parses the status that NCCL's RAS prints as JSON. */
#include "lib/import/ras_status.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "lib/import/log_line.h"
#include "lib/trace/kinds.h"

enum { COMMS_MAX = 1 << 20, RANKS_MAX = 1 << 20 };

static int int_of(const json_t *object, const char *key, int otherwise)
{
    const json_t *value = json_object_get(object, key);
    json_int_t number = json_integer_value(value);
    return json_is_integer(value) && number >= INT32_MIN && number <= INT32_MAX ? (int)number
                                                                                : otherwise;
}

static bool flag_of(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

static void text_of(const json_t *object, const char *key, char *to, size_t bytes)
{
    const char *text = json_string_value(json_object_get(object, key));
    size_t length = text ? strlen(text) : 0;
    if (length >= bytes)
        length = bytes - 1;
    if (text)
        memcpy(to, text, length);
    to[length] = '\0';
}

static void counts_of(const json_t *counts, struct ras_rank *rank)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)counts, name, value)
    {
        json_int_t number = json_integer_value(value);
        uint16_t api = kind_of_nccl(name, strlen(name));
        if (api == API_NONE || api >= RAS_KINDS || number <= 0)
            continue;
        rank->count[api] = (uint64_t)number;
        rank->total += (uint64_t)number;
    }
}

static bool parse_ras_rank(const json_t *object, bool missing, struct ras_rank *rank)
{
    const json_t *status = json_object_get(object, "status");
    *rank = (struct ras_rank){
        .rank = int_of(object, "rank", -1),
        .pid = int_of(object, "pid", -1),
        .device = int_of(object, "cuda_dev", -1),
        .missing = missing,
        .unresponsive = flag_of(status, "unresponsive"),
        .dead = flag_of(status, "considered_dead"),
        .finalized = flag_of(status, "finalize_called"),
        .destroyed = flag_of(status, "destroy_flag"),
        .aborted = flag_of(status, "abort_flag"),
        .init_state = int_of(status, "init_state", 0),
        .async_error = int_of(status, "async_error", 0),
    };
    text_of(object, "host", rank->host, sizeof rank->host);
    counts_of(json_object_get(object, "collective_counts"), rank);
    return rank->rank >= 0 && rank->rank < RANKS_MAX;
}

static int parse_ras_comm(const json_t *object, struct ras_comm *comm)
{
    const json_t *ranks = json_object_get(object, "ranks"),
                 *missing = json_object_get(object, "missing_ranks");
    const char *hash = json_string_value(json_object_get(object, "hash"));
    size_t count = json_array_size(ranks) + json_array_size(missing);
    *comm = (struct ras_comm){.hash = hash ? strtoull(hash, NULL, 16) : 0,
                              .size = int_of(object, "size", -1)};
    text_of(object, "secondary_hash", comm->secondary, sizeof comm->secondary);
    if (count > RANKS_MAX)
        return 0;
    comm->rank = calloc(count + 1, sizeof *comm->rank);
    if (!comm->rank)
        return -1;
    for (size_t i = 0; i < count; i++) {
        bool is_missing = i >= json_array_size(ranks);
        const json_t *rank = is_missing ? json_array_get(missing, i - json_array_size(ranks))
                                        : json_array_get(ranks, i);
        comm->ranks += parse_ras_rank(rank, is_missing, &comm->rank[comm->ranks]);
    }
    return 0;
}

int ras_status_parse(const json_t *document, struct ras_status *status, struct error *err)
{
    char time[32];
    const json_t *comms = json_object_get(document, "communicators"),
                 *exact = json_object_get(document, "ddpcheck_time_ns");
    *status = (struct ras_status){
        .exact_ns = json_integer_value(exact) > 0 ? (uint64_t)json_integer_value(exact) : 0};
    if (status->exact_ns)
        return 0;
    if (!json_is_array(comms))
        return error_set(err,
                         "no list \"communicators\": this is not what `ncclras -f json` writes");
    if (json_array_size(comms) > COMMS_MAX)
        return error_set(err, "%zu communicators: more than %d is no job's", json_array_size(comms),
                         COMMS_MAX);
    text_of(document, "nccl_version", status->version, sizeof status->version);
    text_of(document, "timestamp", time, sizeof time);
    status->time_ns = log_prefix_time(time, strlen(time));
    status->comm = calloc(json_array_size(comms) + 1, sizeof *status->comm);
    for (size_t i = 0; status->comm && i < json_array_size(comms); i++)
        if (parse_ras_comm(json_array_get(comms, i), &status->comm[status->comms++])) {
            ras_status_free(status);
            break;
        }
    return status->comm ? 0 : error_set(err, OUT_OF_MEMORY);
}

void ras_status_free(struct ras_status *status)
{
    for (int i = 0; i < status->comms; i++)
        free(status->comm[i].rank);
    free(status->comm);
    status->comm = NULL;
    status->comms = 0;
}
