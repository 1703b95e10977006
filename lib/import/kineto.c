/* kineto.c: traces of torch.profiler (Kineto, Chrome's trace format), of any size.
 *
 * The calls are the rows "record_param_comms" of the CPU, one file per rank; their kernels are
 * joined to them by "External id" or by their launch. With "Seq" (PyTorch since 2026) a call's
 * number is the process group's own; without, calls are counted from the first ProfilerStep, or
 * from the beginning where there are no steps: profilers are started at the same place of the
 * program. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/import/kineto.h"

static int64_t read_kineto_bytes(void *context, void *buffer, size_t bytes, struct error *err)
{
    return input_read(context, buffer, bytes, err);
}

/* "2.27.5" to 22705; older ones to NCCL's older form. */
static int version_of(const char *text)
{
    int major = 0, minor = 0, patch = 0;
    if (sscanf(text, "%d.%d.%d", &major, &minor, &patch) < 2 || major < 0 || major > 99 ||
        minor < 0 || minor > 99)
        return 0;
    return major == 2 && minor <= 8 ? major * 1000 + minor * 100 + patch
                                    : major * 10000 + minor * 100 + patch;
}

static int read_group_config(struct kineto *kineto)
{
    char name[KINETO_NAME_MAX] = "";
    enum json_token token;
    kineto->event.ranks[0] = '\0';
    while ((token = json_next(kineto->json)) == TOKEN_KEY) {
        const char *key = json_text(kineto->json, NULL);
        int result = !strcmp(key, "pg_name") ? kineto_text_read(kineto->json, name, sizeof name)
                     : !strcmp(key, "ranks") ? kineto_ranks_read(kineto->json, kineto->event.ranks,
                                                                 sizeof kineto->event.ranks)
                                             : json_skip(kineto->json);
        if (result)
            return -1;
    }
    if (token == TOKEN_ERROR)
        return -1;
    if (kineto_group_config(&kineto->groups, name, kineto->event.ranks))
        return error_memory(&kineto->err, "can't read %s", kineto->path);
    return 0;
}

static int read_configs(struct kineto *kineto)
{
    enum json_token token = json_next(kineto->json);
    if (token != TOKEN_ARRAY)
        return json_skip(kineto->json);
    while ((token = json_next(kineto->json)) != TOKEN_ARRAY_END)
        if (token == TOKEN_ERROR ||
            (token == TOKEN_OBJECT ? read_group_config(kineto) : json_skip(kineto->json)))
            return -1;
    return 0;
}

static int read_distributed(struct kineto *kineto)
{
    char version[64] = "";
    enum json_token token;
    if (json_next(kineto->json) != TOKEN_OBJECT)
        return json_skip(kineto->json);
    while ((token = json_next(kineto->json)) == TOKEN_KEY) {
        const char *key = json_text(kineto->json, NULL);
        int result;
        if (!strcmp(key, "rank"))
            result = kineto_number_read(kineto->json, &kineto->rank);
        else if (!strcmp(key, "world_size"))
            result = kineto_number_read(kineto->json, &kineto->world_size);
        else if (!strcmp(key, "nccl_version"))
            result = kineto_text_read(kineto->json, version, sizeof version);
        else if (!strcmp(key, "pg_config"))
            result = read_configs(kineto);
        else
            result = json_skip(kineto->json);
        if (result)
            return -1;
    }
    kineto->nccl_version = version_of(version);
    return token == TOKEN_ERROR ? -1 : 0;
}

/* A call that can't be used is said and left out. */
static int keep_call(struct kineto *kineto)
{
    struct kineto_event *event = &kineto->event;
    if (event->ts_ns == KINETO_UNKNOWN) {
        import_refuse(kineto->import,
                      "%s: byte %" PRIu64 ": a call (record_param_comms) without its time (ts)",
                      kineto->path, event->offset);
        return 0;
    }
    if (!event->collective && !*event->collective_name && !kineto->calls) {
        kineto->unnamed++;
        return 0;
    }
    if (!event->collective) {
        import_refuse(kineto->import, "%s: byte %" PRIu64 ": a call (record_param_comms) %s%s",
                      kineto->path, event->offset,
                      *event->collective_name ? "of an unknown kind: "
                                              : "without \"Collective name\"",
                      event->collective_name);
        return 0;
    }
    if (event->collective->api == API_NONE)
        return 0;
    struct kineto_group *group = kineto_group_of(&kineto->groups, event);
    if (!group)
        return error_set(&kineto->err,
                         "%s: byte %" PRIu64 ": " OUT_OF_MEMORY
                         ", or there are more than %d process groups",
                         kineto->path, event->offset, KINETO_GROUPS_MAX);
    kineto->calls++;
    kineto->has_seq |= event->number[KINETO_SEQ] > 0;
    kineto->has_address |= event->number[KINETO_SEND] > 0 || event->number[KINETO_RECV] > 0;
    if (kineto->pid == KINETO_UNKNOWN)
        kineto->pid = event->pid;
    return kineto_stage_call(kineto->stage, event, group->index, &kineto->err);
}

static int keep_event(struct kineto *kineto)
{
    struct kineto_event *event = &kineto->event;
    kineto->events++;
    if (event->ts_ns > kineto->last_ns)
        kineto->last_ns = event->ts_ns;
    bool timed = event->ts_ns != KINETO_UNKNOWN;
    switch (event->kind) {
    case KINETO_CALL:
        return keep_call(kineto);
    case KINETO_OLD:
        kineto->old++;
        return 0;
    case KINETO_KERNEL:
        kineto->old += !kineto->calls;
        return timed ? kineto_stage_kernel(kineto->stage, event, &kineto->err) : 0;
    case KINETO_WORK:
        return timed ? kineto_stage_work(kineto->stage, event, &kineto->err) : 0;
    case KINETO_LAUNCH:
        return timed && event->number[KINETO_CORRELATION] != KINETO_UNKNOWN
                   ? kineto_stage_launch(kineto->stage, event, &kineto->err)
                   : 0;
    case KINETO_ALONE:
    case KINETO_COALESCED:
    case KINETO_UNEVEN:
        return timed ? kineto_stage_mark(kineto->stage, event, &kineto->err) : 0;
    case KINETO_STEP:
        if (timed && (kineto->step_ns == KINETO_UNKNOWN || event->ts_ns < kineto->step_ns))
            kineto->step_ns = event->ts_ns;
        return 0;
    case KINETO_GLOO:
        kineto->gloo++;
        return 0;
    case KINETO_OTHER:
        break;
    }
    return 0;
}

/* The elements of an array of events whose TOKEN_ARRAY was read. */
static int stage_events(struct kineto *kineto)
{
    enum json_token token;
    while ((token = json_next(kineto->json)) != TOKEN_ARRAY_END) {
        if (token == TOKEN_ERROR)
            return -1;
        if (token != TOKEN_OBJECT) {
            import_refuse(kineto->import,
                          "%s: byte %" PRIu64 ": what stands among the events is no event",
                          kineto->path, json_offset(kineto->json));
            if (json_skip(kineto->json))
                return -1;
        } else if (kineto_event_read(kineto->json, &kineto->event) || keep_event(kineto)) {
            return -1;
        }
    }
    return 0;
}

static int read_document(struct kineto *kineto)
{
    struct json_stream *json = kineto->json;
    enum json_token token = json_next(json);
    if (token == TOKEN_ARRAY) /* Chrome's other form: the events alone */
        return stage_events(kineto);
    if (token != TOKEN_OBJECT)
        return token == TOKEN_ERROR
                   ? -1
                   : error_set(&kineto->err, "%s: byte 0: no trace: neither an object nor an array",
                               kineto->path);
    while ((token = json_next(json)) == TOKEN_KEY) {
        const char *key = json_text(json, NULL);
        int result;
        if (!strcmp(key, "traceEvents"))
            result = json_next(json) == TOKEN_ARRAY ? stage_events(kineto) : json_skip(json);
        else if (!strcmp(key, "distributedInfo"))
            result = read_distributed(kineto);
        else if (!strcmp(key, "baseTimeNanoseconds"))
            result = kineto_number_read(json, &kineto->base_ns);
        else
            result = json_skip(json);
        if (result)
            return -1;
    }
    return token == TOKEN_ERROR || json_next(json) == TOKEN_ERROR ? -1 : 0;
}

static int read_kineto_file(struct kineto *kineto, struct error *err)
{
    const struct json_options options = {.lenient = true};
    if (json_open(&kineto->json, &options, read_kineto_bytes, kineto->input, err) ||
        kineto_stage_new(&kineto->stage, err))
        return -1;
    int damaged = read_document(kineto);
    if (damaged && !kineto->err.text[0])
        error_set(&kineto->err, "%s: %s", kineto->path, json_error(kineto->json));
    if (kineto_emit(kineto, err))
        return -1;
    if (damaged)
        *err = kineto->err;
    return damaged;
}

static int read_kineto(struct import *import, struct import_input *input, struct error *err)
{
    struct kineto *kineto = calloc(1, sizeof *kineto);
    if (!kineto)
        return error_memory(err, "can't read %s", input_path(input));
    kineto->import = import;
    kineto->input = input;
    kineto->path = input_path(input);
    kineto->rank = kineto->world_size = kineto->pid = kineto->step_ns = KINETO_UNKNOWN;
    int result = read_kineto_file(kineto, err);
    json_close(kineto->json);
    kineto_stage_free(kineto->stage);
    kineto_groups_free(&kineto->groups);
    kineto_forget_launches(kineto);
    free(kineto);
    return result;
}

static int sniff_kineto(const struct import_head *head)
{
    size_t space = strspn(head->bytes, " \t\r\n");
    if (head->bytes[space] != '{' && head->bytes[space] != '[')
        return 0;
    bool events = strstr(head->bytes, "\"traceEvents\""),
         base = strstr(head->bytes, "\"baseTimeNanoseconds\"");
    bool distributed = strstr(head->bytes, "\"distributedInfo\""),
         schema = strstr(head->bytes, "\"schemaVersion\"");
    if (schema && (events || base || distributed))
        return 95;
    if (events || distributed)
        return 80;
    return strstr(head->bytes, "\"record_param_comms\"") ? 70 : 0;
}

const struct import_source import_source_kineto = {
    .name = "kineto",
    .title = "torch.profiler trace (Kineto)",
    .lacks = LACKS_REDOP | LACKS_GROUP | LACKS_STACK | LACKS_CUDA | LACKS_START | LACKS_SETUP |
             LACKS_MARKS | LACKS_PAYLOAD | LACKS_END | LACKS_STREAM | LACKS_DEVICE,
    .sniff = sniff_kineto,
    .read = read_kineto,
};
