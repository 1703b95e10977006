/* Prints what each process of a trace called last: read_trace DIR|DATABASE...
 *
 *     cc read_trace.c $(pkg-config --cflags --libs ddpcheck) -o read_trace
 */
#include <ddpcheck/names.h>
#include <ddpcheck/site.h>
#include <ddpcheck/trace.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct last_call {
    struct record record; /* api is API_NONE until there is one */
    uint64_t collectives;
};

static void print_place(struct trace *trace, int process, const struct record *record)
{
    struct frame frames[SITE_FRAMES_MAX];
    char function[256], place[256];
    int count =
        site_frames(trace, process, record->stack, record->flags & RECORD_FLAG_ADDRESS, frames);
    if (count > 0)
        printf(" in %s %s", frame_function(&frames[0], function, sizeof function),
               frame_place(&frames[0], 60, place, sizeof place));
}

int main(int argc, char **argv)
{
    struct error err = {{0}};
    struct trace *trace;
    if (argc < 2 || trace_open(&trace, (const char *const *)argv + 1, argc - 1, &err) < 0) {
        fprintf(stderr, "read_trace: %s\n", argc < 2 ? "which trace?" : err.text);
        return 2;
    }
    int count = trace_process_count(trace), process, got;
    struct last_call *last = calloc((size_t)count, sizeof *last);
    struct record record;
    while (last && (got = trace_next(trace, &process, &record, &err)) > 0)
        if (api_class_of(record.api) == CLASS_COLLECTIVE && record.phase == RECORD_ENTER) {
            last[process].record = record;
            last[process].collectives++;
        }
    if (!last || got < 0)
        fprintf(stderr, "read_trace: %s\n", last ? err.text : "out of memory");
    for (int i = 0; last && i < count; i++) {
        const struct process_info *info = trace_process(trace, i);
        char text[256];
        printf("process %d on %s: %" PRIu64 " collectives", (int)info->pid, info->host,
               last[i].collectives);
        if (last[i].collectives > 0) {
            printf(", the last %s", record_text(&last[i].record, text, sizeof text));
            print_place(trace, i, &last[i].record);
        }
        putchar('\n');
    }
    int status = last && got == 0 ? 0 : 2;
    free(last);
    trace_close(trace);
    return status;
}
