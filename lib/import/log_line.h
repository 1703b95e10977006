/* log_line.h: finds what NCCL printed (NCCL_DEBUG) in a line of a job's log, whatever a launcher
 * put before it.
 *
 * Pure: text in, plain values out. A line of a file can hold several of NCCL's, because ranks that
 * share a pipe write into each other's lines, and the beginning or end of one may be lost. What is
 * found begins with its own "host:pid:tid [device] ... NCCL LEVEL " (NCCL's src/debug.cc) and ends
 * where the next one begins. */
#ifndef DDPCHECK_IMPORT_LOG_LINE_H
#define DDPCHECK_IMPORT_LOG_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_INFO, LOG_WARN, LOG_TRACE, LOG_CALL };

struct log_line {
    enum log_level level;
    char host[64];
    int pid, tid;
    int device;        /* CUDA device in brackets; -1: CALL lines have none */
    int rank;          /* the launcher's prefix says so; -1 */
    uint64_t time_ns;  /* realtime, of NCCL's timestamp (2.26 and later) or kubectl's; 0: none */
    const char *place; /* WARN, TRACE: "init.cc:1247", in the text; not ended by NUL */
    size_t place_bytes;
    const char *message; /* what follows "NCCL INFO "; in the text, not ended by NUL */
    size_t message_bytes;
    bool cut; /* another one begins inside of this line: the end may be missing */
};

/* The next of NCCL's lines in text[*offset .. bytes), a line of the file without its newline;
 * text[bytes] is NUL. *offset starts at 0 and is moved behind what was found. Returns false if
 * there is none. */
bool log_line_next(const char *text, size_t bytes, size_t *offset, struct log_line *line);

/* The rank that a launcher's prefix gives (torchrun's own "[rank0]:", mpirun --tag-output, srun -l,
 * MPICH's -prepend-rank), or -1. torchrun's "[default0]:" is a local rank and says nothing. */
int log_prefix_rank(const char *text, size_t bytes);
/* The time that text[0 .. bytes) begins with, "2026-11-21 14:03:22.123" with a blank, T or _
 * between and perhaps a zone
 * ("Z", "+01:00"); UTC where there is none. Realtime in ns, 0 if it is no time. */
uint64_t log_prefix_time(const char *text, size_t bytes);

#endif
