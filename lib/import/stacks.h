/* stacks.h: pasted stacks of the processes of a job that hangs, as their readers gather them. */
#ifndef DDPCHECK_IMPORT_STACKS_H
#define DDPCHECK_IMPORT_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/import/import.h"
#include "lib/trace/trace.h"

/* NATIVE_FRAME: the address of a frame that is not Python's, where the real one is not kept. */
enum { PASTED_NAME_BYTES = 64, NATIVE_FRAME = 1 };

struct pasted_thread {
    uint32_t id, holder; /* as in struct position_thread */
    bool is_main;
    char state, name[PASTED_NAME_BYTES];
    struct frame *frame; /* innermost first */
    int frames;
};

struct pasted_process {
    int pid, rank; /* 0, -1: not known */
    struct pasted_thread *thread;
    int threads;
};

struct pasted_stacks {
    struct pasted_process *process;
    int processes;
    int before; /* of the files before this one */
    uint64_t time_ns;
};

/* Each returns 1, or -1 when memory is short; pasted_frame 0 where no thread has begun. */
int pasted_process(struct pasted_stacks *stacks, int pid, int rank);
/* A file's first thread begins a process, with the rank of the file's name (-1: it has none). */
int pasted_thread(struct pasted_stacks *stacks, struct pasted_thread thread, int file_rank);
int pasted_frame(struct pasted_stacks *stacks, const struct frame *frame);

/* stacks_json.c: what `py-spy dump --json` and `ddpcheck stacks --pid PID --json` print. Returns 0
 * or -1 with err (without the file's name). */
int pasted_json_read(struct pasted_stacks *stacks, const char *text, size_t bytes, int file_rank,
                     struct error *err);
bool pasted_json_is(const struct import_head *head);

#endif
