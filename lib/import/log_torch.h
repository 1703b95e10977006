/* log_torch.h: what PyTorch's NCCL watchdog says about a job that hangs (ProcessGroupNCCL.cpp,
 * torch 1.13 to 2.12).
 *
 * Pure: text in, plain values out. These lines are in every bug report: who is at which number of
 * which process group. PyTorch counts its collectives from 1. */
#ifndef DDPCHECK_IMPORT_LOG_TORCH_H
#define DDPCHECK_IMPORT_LOG_TORCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reports are one rank's words about others. */
enum watchdog_source { FROM_WATCHDOG, FROM_DESYNC_REPORT, FROM_FINGERPRINT };

struct watchdog_line {
    int rank;       /* -1: not reported */
    char group[64]; /* "0(default_pg)", "1"; "": the line does not say which process group */
    int64_t seq;    /* the collective that timed out; -1: the line names none */
    char op[32];    /* "ALLREDUCE", "_ALLGATHER_BASE"; "" */
    int64_t numel_in, numel_out;                         /* -1: not reported */
    int64_t timeout_ms, ran_ms;                          /* -1 */
    int64_t last_enqueued, last_completed, last_started; /* -1: not reported, or none */
    uint64_t time_ns;                                    /* the caller's: torch_line_time */
    uint8_t datatype;                                    /* enum datatype; TYPE_NONE */
    enum watchdog_source source;
    bool has_last;   /* last_enqueued and last_completed were reported */
    bool is_signal;  /* some rank's watchdog found a timeout and had all write their dumps */
    bool found_here; /* this rank's did */
    int found_by;    /* the job's rank whose watchdog did; -1: not said, or this one's */
};

struct watchdog_line watchdog_line_new(void); /* nothing is known */
/* True if the line (text[bytes] is NUL) is one of the watchdog's. */
bool watchdog_parse(const char *text, size_t bytes, struct watchdog_line *line);

/* The rank in the job that PyTorch puts before its messages, "[PG ID 0 PG GUID 0(default_pg)
 * Rank 2]" or "[Rank 2]"; `otherwise` where it names the rank in another group, or none. In the
 * second form `otherwise`, the launcher's rank, is the better one if it is known (not -1). */
int torch_job_rank(const char *text, int otherwise);

/* The time in the head of a line of PyTorch's C++ side, "[E626 06:24:44.903881913
 * ProcessGroupNCCL.cpp:616]": month, day and local time. The year is that which brings it nearest
 * to `dated_ns`, a time with a year in the same log; if that is 0, nearest before `written_ns` of
 * the file, or a day after it at most. 0: there is no such head. */
uint64_t torch_line_time(const char *text, uint64_t dated_ns, uint64_t written_ns);

/* The NCCL call of PyTorch's name of an operation ("_REDUCE_SCATTER_BASE": ncclReduceScatter), enum
 * api; 0: several, or none known. *count: the elements that this call is given, as NCCL counts
 * them, -1 if that can't be reported. */
uint16_t watchdog_api(const struct watchdog_line *line, int64_t *count);

#endif
