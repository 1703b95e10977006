/* positions.c: reads what `ddpcheck attach` writes: JSON lines "ddpcheck.position/1", each of a
 * process that nobody watched, with the stacks of its threads.
 *
 * Several hosts' files may be imported together. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "lib/import/position.h"

enum { FILE_MAX = 512 << 20, THREADS_MAX = 4096, FRAMES_MAX = 512, NATIVE_ADDRESS = 1 };

static const char schema[] = "ddpcheck.position/1";

static const char *position_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static int integer_or(const json_t *object, const char *key, int unknown)
{
    const json_t *value = json_object_get(object, key);
    json_int_t number = json_is_integer(value) ? json_integer_value(value) : unknown;
    return number < INT32_MIN || number > INT32_MAX ? unknown : (int)number;
}

static void read_live_frame(const json_t *from, struct frame *frame)
{
    *frame = (struct frame){.line = integer_or(from, "line", 0),
                            .address = *position_text(from, "address") ? NATIVE_ADDRESS : 0};
    const char *symbol = position_text(from, "symbol");
    snprintf(frame->function, sizeof frame->function, "%s",
             *symbol ? symbol : position_text(from, "function"));
    snprintf(frame->file, sizeof frame->file, "%s", position_text(from, "file"));
    snprintf(frame->module, sizeof frame->module, "%s", position_text(from, "module"));
}

static int read_live_thread(const json_t *from, struct position_thread *thread)
{
    const json_t *frames = json_object_get(from, "frames");
    size_t count = json_array_size(frames) < FRAMES_MAX ? json_array_size(frames) : FRAMES_MAX;
    *thread = (struct position_thread){
        .id = (uint32_t)integer_or(from, "id", 0),
        .holder = (uint32_t)integer_or(from, "lock_holder", 0),
        .syscall = integer_or(from, "syscall", -2),
        .is_main = json_is_true(json_object_get(from, "main")),
        .moves = json_is_true(json_object_get(from, "moves")),
        .works = json_is_true(json_object_get(from, "works")),
        .state = *position_text(from, "state"),
        .name = position_text(from, "name"),
        .frame = calloc(count + 1, sizeof *thread->frame),
    };
    if (!thread->frame)
        return -1;
    for (size_t i = 0; i < count; i++)
        read_live_frame(json_array_get(frames, i), &thread->frame[i]);
    thread->frames = (int)count;
    return 0;
}

static int import_live_process(struct import *import, const json_t *from)
{
    const json_t *threads = json_object_get(from, "threads");
    size_t count = json_array_size(threads) < THREADS_MAX ? json_array_size(threads) : THREADS_MAX;
    struct position_report report = {
        .process = import_process_new(),
        .time_ns = (uint64_t)json_integer_value(json_object_get(from, "time_ns")),
        .lasts_s = integer_or(from, "lasts_s", 0),
        .is_gone = json_is_true(json_object_get(from, "gone")),
        .is_rank = *position_text(from, "launcher"),
        .thread = calloc(count + 1, sizeof *report.thread),
    };
    report.process.host = position_text(from, "host");
    report.process.pid = integer_or(from, "pid", 0);
    report.process.rank = integer_or(from, "rank", -1);
    report.process.local_rank = integer_or(from, "local_rank", -1);
    report.process.world_size = integer_or(from, "world_size", -1);
    report.process.job = position_text(from, "job");
    report.process.program = position_text(from, "program");
    int result = report.thread ? 0 : -1;
    for (size_t i = 0; i < count && !result; i++) {
        result = read_live_thread(json_array_get(threads, i), &report.thread[i]);
        report.threads += !result;
    }
    if (!result)
        result = position_import(import, &report);
    for (int i = 0; i < report.threads; i++)
        free(report.thread[i].frame);
    free(report.thread);
    return result;
}

/* One line of `bytes` bytes. */
static int read_position_line(struct import *import, const struct import_input *input,
                              const char *line, size_t bytes, int number)
{
    json_t *process = bytes ? json_loadb(line, bytes, 0, NULL) : NULL;
    int result = 0;
    if (process && !strcmp(position_text(process, "schema"), schema))
        result = import_live_process(import, process);
    else if (bytes)
        import_refuse(import, "%s: line %d is no process", input_path(input), number);
    json_decref(process);
    return result;
}

/* A process with many threads is a line of several MiB. */
static int read_positions(struct import *import, struct import_input *input, struct error *err)
{
    size_t bytes;
    char *text = input_whole(input, FILE_MAX, &bytes, err);
    int result = text ? 0 : -1, number = 1;
    for (char *line = text, *end; line && line < text + bytes && !result; line = end + 1) {
        end = memchr(line, '\n', (size_t)(text + bytes - line));
        if (!end)
            end = text + bytes;
        result = read_position_line(import, input, line, (size_t)(end - line), number++);
    }
    free(text);
    return result;
}

static int sniff_positions(const struct import_head *head)
{
    return strstr(head->bytes, schema) ? 100 : 0;
}

const struct import_source import_source_positions = {
    .name = "positions",
    .title = "a stack",
    .lacks = LACKS_POSITIONS,
    .says_little = true,
    .sniff = sniff_positions,
    .read = read_positions,
};
