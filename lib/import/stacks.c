/* stacks.c: reads pasted stacks of the processes of a job that hangs: py-spy dump, gdb's
 * `thread apply all bt`, lldb's `thread backtrace all` and Python's faulthandler, one process after
 * the other or a file for each.
 *
 * The rank is that of the file's name; without one, processes are numbered as they come. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/import/input.h"
#include "lib/import/log_job.h"
#include "lib/import/log_text.h"
#include "lib/import/position.h"
#include "lib/import/scan.h"
#include "lib/import/stacks.h"

enum { FILE_MOST = 512 << 20 };

/* --- lines: each of these takes one if it is its own --- */

static struct pasted_process *last_process(struct pasted_stacks *stacks)
{
    return stacks->processes > stacks->before ? &stacks->process[stacks->processes - 1] : NULL;
}

static struct pasted_thread *last_thread(struct pasted_stacks *stacks)
{
    struct pasted_process *process = last_process(stacks);
    return process && process->threads ? &process->thread[process->threads - 1] : NULL;
}

int pasted_process(struct pasted_stacks *stacks, int pid, int rank)
{
    if (!ARRAY_ADD(stacks->process, stacks->processes))
        return -1;
    stacks->process[stacks->processes++] = (struct pasted_process){.pid = pid, .rank = rank};
    return 1;
}

int pasted_thread(struct pasted_stacks *stacks, struct pasted_thread thread, int file_rank)
{
    if (!last_process(stacks) && pasted_process(stacks, 0, file_rank) < 0)
        return -1;
    struct pasted_process *process = last_process(stacks);
    if (!ARRAY_ADD(process->thread, process->threads))
        return -1;
    process->thread[process->threads++] = thread;
    return 1;
}

int pasted_frame(struct pasted_stacks *stacks, const struct frame *frame)
{
    struct pasted_thread *thread = last_thread(stacks);
    if (!thread)
        return 0;
    if (!ARRAY_ADD(thread->frame, thread->frames))
        return -1;
    thread->frame[thread->frames++] = *frame;
    return 1;
}

static void copy_field(char *to, size_t bytes, const struct scanned *found, const char *name)
{
    *to = '\0';
    for (int i = 0; i < found->fields; i++)
        if (found->field[i].name_bytes == strlen(name) &&
            !strncmp(found->field[i].name, name, strlen(name)))
            snprintf(to, bytes, "%.*s", (int)found->field[i].bytes, found->field[i].text);
}

/* "Process 4711: python train.py", "Attaching to process 4711" */
static int read_pasted_process(struct pasted_stacks *stacks, const char *text, int file_rank)
{
    struct scanned found;
    bool is_py_spy = !strncmp(text, "Process ", strlen("Process ")) &&
                     scan(text, "Process {i:pid}: ", &found);
    if (!is_py_spy && !scan(text, "Attaching to process {i:pid}", &found) &&
        !scan(text, "attach {i:pid}", &found))
        return 0;
    return pasted_process(stacks, (int)scanned_number(&found, "pid", 0), file_rank);
}

/* 'Thread 4711 (idle): "MainThread"' */
static int read_py_spy_thread(struct pasted_stacks *stacks, const char *text, int file_rank)
{
    struct scanned found;
    struct pasted_thread thread = {.state = 'S'};
    if (!scan(text, "Thread {w:id} ({w:state}){?: \"{r:name}\"}", &found) || found.begin != text ||
        strstr(text, "(LWP ") || strstr(text, "most recent call"))
        return 0;
    copy_field(thread.name, sizeof thread.name, &found, "name");
    thread.is_main = !strcmp(thread.name, "MainThread");
    thread.id = (uint32_t)strtoul(text + strlen("Thread "), NULL, 0);
    return pasted_thread(stacks, thread, file_rank);
}

/* 'Thread 2 (Thread 0x7f12 (LWP 4712) "worker"):'; number 1 is the main thread. */
static int read_gdb_thread(struct pasted_stacks *stacks, const char *text, int file_rank)
{
    struct scanned found, name;
    if (!scan(text, "Thread {i:number} (", &found) || found.begin != text ||
        (!strstr(text, "(LWP ") && !strstr(text, " process ")))
        return 0;
    struct pasted_thread thread = {.is_main = scanned_number(&found, "number", 0) == 1};
    if (scan(text, "(LWP {i:id})", &found))
        thread.id = (uint32_t)scanned_number(&found, "id", 0);
    if (scan(text, "\"{r:name}\"", &name))
        copy_field(thread.name, sizeof thread.name, &name, "name");
    return pasted_thread(stacks, thread, file_rank);
}

/* "* thread #1, name = 'train', stop reason = signal SIGSTOP"; number 1 is the main thread. */
static int read_lldb_thread(struct pasted_stacks *stacks, const char *text, int file_rank)
{
    struct scanned found;
    text += strspn(text, "* ");
    if (!scan(text, "thread #{i:id}{?, name = '{r:name}'}", &found) || found.begin != text)
        return 0;
    struct pasted_thread thread = {.id = (uint32_t)scanned_number(&found, "id", 0)};
    thread.is_main = thread.id == 1;
    copy_field(thread.name, sizeof thread.name, &found, "name");
    return pasted_thread(stacks, thread, file_rank);
}

/* "Current thread 0x7f12 (most recent call first):", 'Thread 0x7f12 [name] (most recent ...' */
static int read_faulthandler_thread(struct pasted_stacks *stacks, const char *text, int file_rank)
{
    struct pasted_thread thread = {.name = "python"};
    if (!strstr(text, "(most recent call first):"))
        return 0;
    struct pasted_process *process = last_process(stacks);
    /* It prints the main thread last. */
    for (int i = 0; process && i < process->threads; i++)
        process->thread[i].is_main = false;
    thread.is_main = true;
    return pasted_thread(stacks, thread, file_rank);
}

/* '  File "/home/me/train.py", line 12 in step' */
static int read_faulthandler_frame(struct pasted_stacks *stacks, const char *text)
{
    struct scanned found;
    struct frame frame = {0};
    if (!scan(text, "File \"{r:file}\", line {i:line} in {r:function}", &found))
        return 0;
    copy_field(frame.file, sizeof frame.file, &found, "file");
    copy_field(frame.function, sizeof frame.function, &found, "function");
    frame.line = (int)scanned_number(&found, "line", 0);
    return pasted_frame(stacks, &frame);
}

/* "    step (train.py:12)"; with --native also "    poll (libc.so.6)" */
static int read_py_spy_frame(struct pasted_stacks *stacks, const char *text)
{
    struct frame frame = {0};
    const char *open = strstr(text, " ("), *close = strrchr(text, ')');
    size_t blanks = strspn(text, " \t");
    if (!blanks || !open || !close || close < open || close[1] || text[blanks] == '#')
        return 0;
    snprintf(frame.function, sizeof frame.function, "%.*s", (int)(open - text - (long)blanks),
             text + blanks);
    const char *colon = memrchr(open, ':', (size_t)(close - open));
    const char *end = colon && isdigit((unsigned char)colon[1]) ? colon : close;
    bool is_torch =
        !strncmp(open + 2, "torch/", strlen("torch/")); /* it leaves out where it lies */
    snprintf(frame.file, sizeof frame.file, "%s%.*s", is_torch ? "site-packages/" : "",
             (int)(end - open - 2), open + 2);
    if (end == colon)
        frame.line = (int)strtol(colon + 1, NULL, 10);
    if (strstr(frame.file, ".so") || end != colon) {
        frame.address = NATIVE_FRAME;
        snprintf(frame.module, sizeof frame.module, "%s", frame.file);
        frame.file[0] = '\0';
    }
    return pasted_frame(stacks, &frame);
}

/* Debug information of the C library names its sources as they were where it was built. */
static bool is_of_c_library(const char *file)
{
    static const char *const folders[] = {"../sysdeps/", "./sysdeps/", "./nptl/",  "./posix/",
                                          "./io/",       "./socket/",  "./time/",  "./misc/",
                                          "./malloc/",   "./csu/",     "./stdlib/"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (!strncmp(file, folders[i], strlen(folders[i])))
            return true;
    return false;
}

static void copy_function(struct frame *frame, const char *name, size_t bytes)
{
    size_t own = !strncmp(name, "__GI_", strlen("__GI_")) ? strlen("__GI_") : 0; /* glibc's */
    snprintf(frame->function, sizeof frame->function, "%.*s", (int)(bytes - own), name + own);
}

/* "#1  0x00007f12 in poll () from /lib/libc.so.6", "#2  main (argc=1) at train.c:12" */
static int read_gdb_frame(struct pasted_stacks *stacks, const char *text)
{
    struct frame frame = {.address = NATIVE_FRAME};
    text += strspn(text, " \t");
    if (*text != '#' || !isdigit((unsigned char)text[1]))
        return 0;
    text += 1 + strspn(text + 1, "0123456789");
    text += strspn(text, " ");
    const char *in = strstr(text, " in ");
    if (!strncmp(text, "0x", 2) && in)
        text = in + strlen(" in ");
    copy_function(&frame, text, strcspn(text, " ("));
    const char *at = NULL, *from = NULL;
    for (const char *next = text; (next = strstr(next, " at ")); next += 4)
        at = next + strlen(" at ");
    for (const char *next = text; (next = strstr(next, " from ")); next += 6)
        from = next + strlen(" from ");
    const char *colon = at ? strrchr(at, ':') : NULL;
    if (colon && isdigit((unsigned char)colon[1])) {
        snprintf(frame.file, sizeof frame.file, "%.*s", (int)(colon - at), at);
        frame.line = (int)strtol(colon + 1, NULL, 10);
        if (is_of_c_library(frame.file)) {
            snprintf(frame.module, sizeof frame.module, "libc.so");
            frame.file[0] = '\0';
            frame.line = 0;
        }
    } else if (from)
        snprintf(frame.module, sizeof frame.module, "%s", from);
    return pasted_frame(stacks, &frame);
}

/* "  * frame #2: 0x0000555 train`step(s=0x1) at train.c:41:9", "frame #0: 0x7f1 libc.so.6`poll" */
static int read_lldb_frame(struct pasted_stacks *stacks, const char *text)
{
    struct frame frame = {.address = NATIVE_FRAME};
    struct scanned found;
    text += strspn(text, "* ");
    if (!scan(text, "frame #{i:number}: {w:address} {r:module}`{w:function}", &found) ||
        found.begin != text)
        return 0;
    copy_function(&frame, found.field[3].text, found.field[3].bytes);
    copy_field(frame.module, sizeof frame.module, &found, "module");
    if (scan(found.end, " at {r:file}:{i:line}", &found)) {
        copy_field(frame.file, sizeof frame.file, &found, "file");
        frame.line = (int)scanned_number(&found, "line", 0);
    }
    return pasted_frame(stacks, &frame);
}

static int read_stacks_line(struct pasted_stacks *stacks, const char *text, int file_rank)
{
    int (*const heads[])(struct pasted_stacks *, const char *,
                         int) = {read_pasted_process, read_gdb_thread, read_lldb_thread,
                                 read_faulthandler_thread, read_py_spy_thread};
    int (*const frames[])(struct pasted_stacks *, const char *) = {
        read_gdb_frame, read_lldb_frame, read_faulthandler_frame, read_py_spy_frame};
    int taken = 0;
    for (size_t i = 0; i < sizeof heads / sizeof *heads && !taken; i++)
        taken = heads[i](stacks, text, file_rank);
    for (size_t i = 0; i < sizeof frames / sizeof *frames && !taken; i++)
        taken = frames[i](stacks, text);
    return taken;
}

/* --- the files --- */

static int read_json(struct pasted_stacks *stacks, struct import_input *input, int rank,
                     struct error *err)
{
    size_t bytes;
    char *text = input_whole(input, FILE_MOST, &bytes, err);
    int result = text ? pasted_json_read(stacks, text, bytes, rank, err) : -1;
    free(text);
    return result;
}

static int read_text(struct pasted_stacks *stacks, struct import_input *input, int rank,
                     struct error *err)
{
    int taken = 0;
    char *line;
    size_t bytes;
    while (taken >= 0 && (line = input_line(input, &bytes, err)))
        taken = read_stacks_line(stacks, line, rank);
    return taken < 0 || err->text[0] ? -1 : 0;
}

static int read_stacks(struct import *import, struct import_input *input, struct error *err)
{
    void **state = import_state(import);
    struct pasted_stacks *stacks = *state ? *state : calloc(1, sizeof *stacks);
    int rank = log_rank_of_path(input_path(input));
    struct import_head head;
    *state = stacks;
    if (!stacks)
        return error_set(err, OUT_OF_MEMORY);
    stacks->before = stacks->processes;
    stacks->time_ns = LOG_UNDATED_NS; /* when a stack was taken is not in it */
    input_head(input, &head);
    int result = pasted_json_is(&head) ? read_json(stacks, input, rank, err)
                                       : read_text(stacks, input, rank, err);
    if (result && !err->text[0])
        error_set(err, OUT_OF_MEMORY);
    else if (!result && !last_thread(stacks))
        import_refuse(import, "%s: it holds no stack", input_path(input));
    return result;
}

static int import_pasted(struct import *import, const struct pasted_stacks *stacks,
                         const struct pasted_process *from, int rank, int ranks)
{
    struct position_report report = {
        .process = import_process_new(),
        .time_ns = stacks->time_ns,
        .thread = calloc((size_t)from->threads + 1, sizeof *report.thread),
        .threads = from->threads};
    char key[32]; /* processes of two hosts may have one pid */
    snprintf(key, sizeof key, "rank %d", rank);
    report.process.key = key;
    report.process.rank = rank;
    report.process.pid = from->pid;
    report.process.world_size = ranks;
    report.process.title = "a pasted stack";
    for (int i = 0; i < from->threads && report.thread; i++)
        report.thread[i] = (struct position_thread){.id = from->thread[i].id,
                                                    .holder = from->thread[i].holder,
                                                    .is_main = from->thread[i].is_main,
                                                    .syscall = -2,
                                                    .state = from->thread[i].state,
                                                    .name = from->thread[i].name,
                                                    .frame = from->thread[i].frame,
                                                    .frames = from->thread[i].frames};
    int result = report.thread ? position_import(import, &report) : -1;
    free(report.thread);
    return result;
}

static void free_pasted(struct pasted_stacks *stacks)
{
    for (int i = 0; i < stacks->processes; i++) {
        for (int k = 0; k < stacks->process[i].threads; k++)
            free(stacks->process[i].thread[k].frame);
        free(stacks->process[i].thread);
    }
    free(stacks->process);
    free(stacks);
}

/* Those without a rank of their own are numbered as they come. */
static int end_stacks_import(struct import *import)
{
    struct pasted_stacks *stacks = *import_state(import);
    int result = 0, next = 0, ranks = 0;
    for (int i = 0; stacks && i < stacks->processes; i++)
        ranks += stacks->process[i].threads > 0;
    for (int i = 0; stacks && i < stacks->processes && !result; i++) {
        const struct pasted_process *process = &stacks->process[i];
        if (process->threads)
            result = import_pasted(import, stacks, process,
                                   process->rank >= 0 ? process->rank : next++, ranks);
    }
    if (stacks)
        free_pasted(stacks);
    *import_state(import) = NULL;
    return result;
}

/* A job's log may have such stacks as well: it is one that begins with them, or has no line of
 * NCCL's or PyTorch's. */
static int sniff_stacks(const struct import_head *head)
{
    enum { BEGINS = 90, HAS = 70 };
    const char *text = head->bytes + strspn(head->bytes, " \t\r\n");
    struct scanned found;
    if (pasted_json_is(head) || (scan(text, "Process {i:pid}: ", &found) && found.begin == text &&
                                 strstr(text, "\nThread ")))
        return BEGINS;
    if (strstr(text, "(most recent call first):") &&
        (!strncmp(text, "Thread 0x", 9) || !strncmp(text, "Current thread 0x", 17) ||
         !strncmp(text, "Timeout (", 9)))
        return BEGINS;
    bool has_gdb_stack = strstr(text, "\n#0 ") &&
                         (strstr(text, "(LWP ") || strstr(text, "Thread 0x"));
    bool has_py_spy_stack = scan(text, "\nProcess {i:pid}: ", &found) &&
                            scan(found.end, "\nThread {i:id} (", &found);
    bool has_lldb_stack = strstr(text, "thread #1") && strstr(text, " frame #0: 0x");
    return has_gdb_stack || has_lldb_stack || has_py_spy_stack ? HAS : 0;
}

const struct import_source import_source_stacks = {
    .name = "stacks",
    .title = "a pasted stack",
    .lacks = LACKS_POSITIONS,
    .says_little = true,
    .sniff = sniff_stacks,
    .read = read_stacks,
    .end = end_stacks_import,
};
