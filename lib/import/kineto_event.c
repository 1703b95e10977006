/* kineto_event.c: reads one event of a Kineto trace. */
#include "lib/import/kineto_event.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Arguments that are whole numbers. */
static const struct {
    const char *name;
    enum kineto_number number;
} numbers[] = {
    {"External id", KINETO_EXTERNAL},
    {"external id", KINETO_EXTERNAL},
    {"correlation", KINETO_CORRELATION},
    {"In msg nelems", KINETO_IN},
    {"Out msg nelems", KINETO_OUT},
    {"In msg size", KINETO_IN},
    {"Out msg size", KINETO_OUT},
    {"Group size", KINETO_SIZE},
    {"Global rank start", KINETO_START},
    {"Global rank stride", KINETO_STRIDE},
    {"Rank", KINETO_RANK},
    {"Seq", KINETO_SEQ},
    {"stream", KINETO_STREAM},
    {"device", KINETO_DEVICE},
    {"Input Tensors start", KINETO_SEND},
    {"Output Tensors start", KINETO_RECV},
};

static void copy_cut(char *to, size_t bytes, const char *from)
{
    size_t length = strlen(from);
    length = length < bytes ? length : bytes - 1;
    memcpy(to, from, length);
    to[length] = '\0';
}

int kineto_text_read(struct json_stream *json, char *text, size_t bytes)
{
    enum json_token token = json_next(json);
    if (token == TOKEN_STRING)
        copy_cut(text, bytes, json_text(json, NULL));
    return json_skip(json);
}

/* The first whole number in a text, which may stand in brackets. */
static void first_number(const char *text, int64_t *number)
{
    const char *at = text + strcspn(text, "-0123456789");
    char *end;
    long long value = strtoll(at, &end, 10);
    if (end != at)
        *number = value;
}

int kineto_number_read(struct json_stream *json, int64_t *number)
{
    int depth = json_depth(json);
    bool found = false;
    do {
        enum json_token token = json_next(json);
        if (token == TOKEN_ERROR)
            return -1;
        if (found || (token != TOKEN_INTEGER && token != TOKEN_FRACTION && token != TOKEN_STRING))
            continue;
        int64_t value;
        if (json_int64(json, &value))
            *number = value;
        else
            first_number(json_text(json, NULL), number);
        found = true;
    } while (json_depth(json) > depth);
    return 0;
}

/* Appends a number or "..." to a list. */
static void add_rank(char *ranks, size_t bytes, const char *rank)
{
    size_t length = strlen(ranks);
    if (length + strlen(rank) + 2 < bytes)
        snprintf(ranks + length, bytes - length, "%s%s", length ? "," : "", rank);
}

/* "[0, 1, ..., 31]" to "0,1,...,31". */
static void ranks_of_text(const char *text, char *ranks, size_t bytes)
{
    size_t at = 0;
    for (; *text && at + 1 < bytes; text++)
        if (*text == ',' || *text == '.' || *text == '-' || (*text >= '0' && *text <= '9'))
            ranks[at++] = *text;
    ranks[at] = '\0';
}

int kineto_ranks_read(struct json_stream *json, char *ranks, size_t bytes)
{
    int depth = json_depth(json);
    ranks[0] = '\0';
    do {
        enum json_token token = json_next(json);
        if (token == TOKEN_ERROR)
            return -1;
        if (token == TOKEN_STRING && json_depth(json) == depth)
            ranks_of_text(json_text(json, NULL), ranks, bytes);
        else if (token == TOKEN_INTEGER || token == TOKEN_STRING)
            add_rank(ranks, bytes, json_text(json, NULL));
    } while (json_depth(json) > depth);
    return 0;
}

static void set_collective(struct kineto_event *event)
{
    event->collective = NULL;
    event->collective =
        kind_name_find(KIND_KINETO, event->collective_name, strlen(event->collective_name));
}

static void set_datatype(struct kineto_event *event, const char *name)
{
    unsigned factor;
    uint8_t datatype = datatype_of_torch(name, strlen(name), &factor);
    if (datatype != TYPE_NONE && factor == 1)
        event->datatype = datatype;
}

/* "[]" or "" says that the parts are equal. */
static int read_split(struct json_stream *json, bool *split)
{
    int depth = json_depth(json);
    do {
        enum json_token token = json_next(json);
        if (token == TOKEN_ERROR)
            return -1;
        if (token == TOKEN_INTEGER ||
            (token == TOKEN_STRING &&
             json_text(json, NULL)[strcspn(json_text(json, NULL), "0123456789")]))
            *split = true;
    } while (json_depth(json) > depth);
    return 0;
}

static int read_argument(struct json_stream *json, struct kineto_event *event)
{
    const char *key = json_text(json, NULL);
    char text[KINETO_NAME_MAX] = "";
    for (size_t i = 0; i < COUNT(numbers); i++)
        if (!strcmp(numbers[i].name, key))
            return kineto_number_read(json, &event->number[numbers[i].number]);
    if (!strcmp(key, "Collective name"))
        return kineto_text_read(json, event->collective_name, sizeof event->collective_name);
    if (!strcmp(key, "Process Group Name"))
        return kineto_text_read(json, event->group, sizeof event->group);
    if (!strcmp(key, "Process Group Description"))
        return kineto_text_read(json, event->description, sizeof event->description);
    if (!strcmp(key, "Process Group Ranks"))
        return kineto_ranks_read(json, event->ranks, sizeof event->ranks);
    if (!strcmp(key, "In split size") || !strcmp(key, "Out split size"))
        return read_split(json, &event->split);
    if (strcmp(key, "dtype"))
        return json_skip(json);
    int result = kineto_text_read(json, text, sizeof text);
    set_datatype(event, text);
    return result;
}

static int read_arguments(struct json_stream *json, struct kineto_event *event)
{
    if (json_next(json) != TOKEN_OBJECT)
        return json_skip(json);
    enum json_token token;
    while ((token = json_next(json)) == TOKEN_KEY)
        if (read_argument(json, event))
            return -1;
    return token == TOKEN_ERROR ? -1 : 0;
}

/* Kernels that exchange data by themselves and spin until their peers have come: the longest are
 * those of the fastest ranks. Parts of names. */
static const char *const waiting_kernels[] = {
    "c10d::symmetric_memory::",
    "multimem_all_reduce",
    "multimem_one_shot",
    "multimem_all_gather",
    "one_shot_all_reduce",
    "two_shot_all_reduce",
    "cross_device_reduce",
    "nvshmem",
    "deep_ep::",
};

static enum kineto_kind find_kernel_kind(const char *name)
{
    if (!strncmp(name, "nccl", 4))
        return KINETO_KERNEL;
    for (size_t i = 0; i < COUNT(waiting_kernels); i++)
        if (strstr(name, waiting_kernels[i]))
            return KINETO_OTHER;
    return KINETO_WORK;
}

static enum kineto_kind find_event_kind(const char *category, const char *name)
{
    bool annotation = !strcmp(category, "user_annotation");
    if (!strcmp(name, "record_param_comms"))
        return KINETO_CALL;
    if (!strcmp(category, "kernel"))
        return find_kernel_kind(name);
    if (!strcmp(category, "gpu_memcpy") || !strcmp(category, "gpu_memset"))
        return KINETO_WORK;
    if ((!strcmp(category, "cuda_runtime") || !strcmp(category, "cuda_driver")) &&
        strstr(name, "Launch") && strstr(name, "Kernel"))
        return KINETO_LAUNCH;
    if (annotation && !strcmp(name, "nccl:coalesced"))
        return KINETO_COALESCED;
    if (annotation && (!strncmp(name, "nccl:send", 9) || !strncmp(name, "nccl:recv", 9)))
        return KINETO_ALONE;
    if (annotation && (!strcmp(name, "nccl:_broadcast_oop") || !strcmp(name, "nccl:_reduce_oop")))
        return KINETO_UNEVEN;
    if (annotation && !strncmp(name, "ProfilerStep#", 13))
        return KINETO_STEP;
    if (annotation && !strncmp(name, "gloo:", 5))
        return KINETO_GLOO;
    /* "nccl:all_reduce", "ncclKernel_AllReduce_RING_LL_Sum_float(...)" of PyTorch 1.8 to 2.1 */
    bool old = !strncmp(name, "nccl:", 5) ||
               (!strncmp(name, "nccl", 4) && !strcasecmp(category, "kernel"));
    return old ? KINETO_OLD : KINETO_OTHER;
}

/* Only what is needed of the last event is cleared: the ranks' text is long. */
static void clear_event(struct json_stream *json, struct kineto_event *event)
{
    memset(event, 0, offsetof(struct kineto_event, collective_name));
    event->name[0] = event->collective_name[0] = event->group[0] = event->description[0] =
        event->ranks[0] = '\0';
    event->offset = json_offset(json);
    event->ts_ns = event->dur_ns = event->pid = event->tid = KINETO_UNKNOWN;
    for (int i = 0; i < KINETO_NUMBERS; i++)
        event->number[i] = KINETO_UNKNOWN;
    event->datatype = TYPE_NONE;
}

/* Microseconds, with nanoseconds behind the point. */
static int read_time(struct json_stream *json, int64_t *ns)
{
    enum json_token token = json_next(json);
    if (token == TOKEN_INTEGER || token == TOKEN_FRACTION || token == TOKEN_STRING)
        json_scaled(json, 3, ns);
    return json_skip(json);
}

static bool has_arguments(const char *category, const char *name)
{
    enum kineto_kind kind = find_event_kind(category, name);
    return !*name || (kind != KINETO_OTHER && kind != KINETO_WORK);
}

/* "void softmax<float>(float*, int)" becomes "softmax<float>". Of a name that was cut the last ')'
 * need not be the parameters'. */
static void shorten_kernel_name(char *name)
{
    size_t length = strlen(name);
    bool has_parameters = length && length < KINETO_NAME_MAX - 1 && name[length - 1] == ')';
    int depth = 0;
    for (char *at = has_parameters ? name + length - 1 : name; at > name; at--) {
        depth += (*at == ')') - (*at == '(');
        if (depth == 0) {
            *at = '\0';
            break;
        }
    }
    if (!strncmp(name, "void ", 5))
        memmove(name, name + 5, strlen(name + 5) + 1);
}

int kineto_event_read(struct json_stream *json, struct kineto_event *event)
{
    char category[32] = "", *name = event->name;
    enum json_token token;
    clear_event(json, event);
    while ((token = json_next(json)) == TOKEN_KEY) {
        const char *key = json_text(json, NULL);
        int result;
        if (!strcmp(key, "ts"))
            result = read_time(json, &event->ts_ns);
        else if (!strcmp(key, "cat"))
            result = kineto_text_read(json, category, sizeof category);
        else if (!strcmp(key, "name"))
            result = kineto_text_read(json, name, sizeof event->name);
        else if (!strcmp(key, "dur"))
            result = read_time(json, &event->dur_ns);
        else if (!strcmp(key, "pid") || !strcmp(key, "tid"))
            result = kineto_number_read(json, *key == 'p' ? &event->pid : &event->tid);
        else if (!strcmp(key, "args") && has_arguments(category, name))
            result = read_arguments(json, event);
        else
            result = json_skip(json);
        if (result)
            return -1;
    }
    if (token == TOKEN_ERROR)
        return -1;
    event->kind = find_event_kind(category, name);
    if (event->kind == KINETO_WORK && !strcmp(category, "kernel")) /* "Memset (Device)" is whole */
        shorten_kernel_name(name);
    set_collective(event);
    return 0;
}
