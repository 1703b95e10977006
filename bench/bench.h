/* bench.h: timing, and a made-up job whose records are like those of a real one. */
#ifndef DDPCHECK_BENCH_H
#define DDPCHECK_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/trace/record.h"
#include "lib/trace/ring.h"
#include "lib/trace/store.h"

/* CLOCK_MONOTONIC. */
uint64_t bench_now_ns(void);

/* The middle of `count` values; sorts them. */
double bench_median(double *value, int count);

/* An empty directory of its own under TMPDIR, removed with all in it when the program ends. Ends
 * the program if it can't be made. */
const char *bench_directory(void);

/* Ends the program with the message. */
_Noreturn void bench_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Ends the program with the message of `err` if the result is negative. */
void bench_check(int result, const struct error *err);

/* Ends the program if the result of `call` is not 0. */
void bench_need(int result, const char *call);

enum { JOB_RANKS = 8, JOB_STEP_RECORDS = 26 };

/* Training with a communicator of JOB_RANKS members, a process each: a step is some kernels, an
 * event, two gradient buckets and a wait, and the GPU's progress. Zero-initialised
 * is the beginning. */
struct bench_job {
    uint64_t emitted, serial[JOB_RANKS];
};

/* What the process of a rank records about itself. */
struct process_info bench_process(int rank);
/* The job's next record, and the rank that it belongs to. */
int bench_job_next(struct bench_job *job, struct record *record);
/* The ring file of a rank's process in directory `rings`, with room for `capacity` records of each
 * kind; `runs`: it counts as running while this program does. Ends the program if it can't be made.
 */
struct ring_file *bench_ring_file(const char *rings, int rank, uint32_t capacity, bool runs);
/* Its ring of a kind (enum ring_kind), and the records of that. */
struct ring *bench_ring(struct ring_file *file, int kind, struct record **records);
/* All ranks are at the end of a step. */
bool bench_job_step_ends(const struct bench_job *job);
/* A new trace with the processes of the job, in a transaction that has begun. Ends the program if
 * it can't be made. The caller commits and closes it. */
struct store *bench_store_begin(const char *path);
/* Makes a new trace and stores the first `rows` records of the job in it, `batch` a transaction, by
 * a prepared INSERT alone. Ends the program if that fails. */
void bench_insert_raw(const char *path, int rows, int batch);

#endif
