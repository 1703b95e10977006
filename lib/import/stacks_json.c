/* stacks_json.c: reads stacks that a program printed as JSON: `py-spy dump --json`, a list of
 * threads, and `ddpcheck stacks --pid PID --json`, a line for each group of threads with equal
 * stacks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "lib/base/rankset.h"
#include "lib/import/stacks.h"

enum { FRAMES_MOST = 512 };

static const char *json_text_or_empty(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static int json_number_or_zero(const json_t *object, const char *key)
{
    json_int_t number = json_integer_value(json_object_get(object, key));
    return number < 0 || number > INT32_MAX ? 0 : (int)number;
}

static struct frame frame_of_py_spy(const json_t *from)
{
    struct frame frame = {.line = json_number_or_zero(from, "line")};
    const char *file = json_text_or_empty(from, "filename"),
               *module = json_text_or_empty(from, "module");
    bool is_native = *module && !frame.line; /* of `py-spy dump --native` */
    snprintf(frame.function, sizeof frame.function, "%s", json_text_or_empty(from, "name"));
    snprintf(frame.file, sizeof frame.file, "%s%s",
             !strncmp(file, "torch/", strlen("torch/")) ? "site-packages/" : "", file);
    if (is_native) {
        frame.address = NATIVE_FRAME;
        snprintf(frame.module, sizeof frame.module, "%s", module);
        *frame.file = '\0';
    }
    return frame;
}

static struct frame frame_of_ddpcheck(const json_t *from)
{
    const char *symbol = json_text_or_empty(from, "symbol");
    struct frame frame = {.line = json_number_or_zero(from, "line"),
                          .address = *json_text_or_empty(from, "address") ? NATIVE_FRAME : 0};
    snprintf(frame.function, sizeof frame.function, "%s",
             *symbol ? symbol : json_text_or_empty(from, "function"));
    snprintf(frame.file, sizeof frame.file, "%s", json_text_or_empty(from, "file"));
    snprintf(frame.module, sizeof frame.module, "%s", json_text_or_empty(from, "module"));
    return frame;
}

static int add_pasted_thread(struct pasted_stacks *stacks, const json_t *from,
                             const struct pasted_thread *thread, int file_rank,
                             struct frame (*frame_of)(const json_t *))
{
    const json_t *frames = json_object_get(from, "frames");
    int result = pasted_thread(stacks, *thread, file_rank);
    for (size_t i = 0; i < json_array_size(frames) && i < FRAMES_MOST && result > 0; i++) {
        struct frame frame = frame_of(json_array_get(frames, i));
        result = pasted_frame(stacks, &frame);
    }
    return result < 0 ? -1 : 0;
}

/* Several outputs may stand in one file: a list is one process's, or of its children as well. */
static int read_py_spy(struct pasted_stacks *stacks, const json_t *list, int file_rank)
{
    int result = 0, pid = 0;
    for (size_t i = 0; i < json_array_size(list) && !result; i++) {
        const json_t *from = json_array_get(list, i);
        struct pasted_thread thread = {.id = (uint32_t)json_number_or_zero(from, "os_thread_id"),
                                       .state = 'S'};
        snprintf(thread.name, sizeof thread.name, "%s", json_text_or_empty(from, "thread_name"));
        thread.is_main = !strcmp(thread.name, "MainThread");
        if (pid != json_number_or_zero(from, "pid")) {
            pid = json_number_or_zero(from, "pid");
            result = pasted_process(stacks, pid, file_rank) < 0 ? -1 : 0;
        }
        if (!result)
            result = add_pasted_thread(stacks, from, &thread, file_rank, frame_of_py_spy);
    }
    return result;
}

/* --- ddpcheck's own --- */

/* The process, moved to the end: it is the one that threads are added to. */
static int make_last(struct pasted_stacks *stacks, int pid, int rank)
{
    int at = stacks->before, last = stacks->processes - 1;
    while (at <= last && (stacks->process[at].pid != pid || stacks->process[at].rank != rank))
        at++;
    if (at > last)
        return pasted_process(stacks, pid, rank) < 0 ? -1 : 0;
    struct pasted_process moved = stacks->process[at];
    stacks->process[at] = stacks->process[last];
    stacks->process[last] = moved;
    return 0;
}

/* Which pid has which rank stands nowhere: where both are as many, they are in one order. */
static int read_group(struct pasted_stacks *stacks, const json_t *from, int file_rank)
{
    struct rankset pids = {0}, ranks = {0};
    struct pasted_thread thread = {.is_main = json_is_true(json_object_get(from, "main")),
                                   .state = *json_text_or_empty(from, "state"),
                                   .holder = (uint32_t)json_number_or_zero(from, "lock_holder")};
    bool are_known = !rankset_parse(&pids, json_text_or_empty(from, "pids")) &&
                     !rankset_parse(&ranks, json_text_or_empty(from, "ranks")) &&
                     rankset_count(&ranks) == rankset_count(&pids);
    int result = 0, rank = are_known ? rankset_next(&ranks, 0) : file_rank;
    snprintf(thread.name, sizeof thread.name, "%s", json_text_or_empty(from, "name"));
    for (int pid = rankset_next(&pids, 0); pid >= 0 && !result;
         pid = rankset_next(&pids, pid + 1)) {
        result = make_last(stacks, pid, rank);
        if (!result)
            result = add_pasted_thread(stacks, from, &thread, rank, frame_of_ddpcheck);
        rank = are_known ? rankset_next(&ranks, rank + 1) : file_rank;
    }
    rankset_free(&pids);
    rankset_free(&ranks);
    return result;
}

int pasted_json_read(struct pasted_stacks *stacks, const char *text, size_t bytes, int file_rank,
                     struct error *err)
{
    size_t at = 0;
    int result = 0;
    for (at += strspn(text, " \t\r\n"); at < bytes && text[at] && !result;
         at += strspn(text + at, " \t\r\n")) {
        json_error_t why;
        json_t *value = json_loadb(text + at, bytes - at, JSON_DISABLE_EOF_CHECK, &why);
        if (!value)
            return error_set(err, "byte %zu: %s", at, why.text);
        at += (size_t)why.position; /* of the end, if there is no error */
        result = json_is_array(value) ? read_py_spy(stacks, value, file_rank)
                                      : read_group(stacks, value, file_rank);
        json_decref(value);
    }
    return result;
}

bool pasted_json_is(const struct import_head *head)
{
    const char *text = head->bytes + strspn(head->bytes, " \t\r\n");
    bool is_py_spy = *text == '[' && strstr(text, "\"os_thread_id\"") && strstr(text, "\"frames\"");
    return is_py_spy || (*text == '{' && strstr(text, "\"ddpcheck.live-stack/"));
}
