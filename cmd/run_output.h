/* run_output.h: what `ddpcheck run` prints while it watches a job, and a hub while it serves one.
 */
#ifndef DDPCHECK_RUN_OUTPUT_H
#define DDPCHECK_RUN_OUTPUT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

/* A thread prints what this process writes to `stderr`: a reader that is gone (`| head -1`) or
 * pauses (`| less`) keeps nobody from ending the job in time. File descriptor 2 stays what it is,
 * for children. */
struct run_output {
    bool is_open;
    pthread_t thread;
    int from;     /* what is to be printed */
    FILE *before; /* stderr */
};

/* The process is never ended by SIGPIPE from here on. Without descriptors or memory for the thread
 * stderr stays as it is. */
void run_output_begin(struct run_output *output);

/* Waits until all is printed, or until one of the job's signals arrives at `signals`, a signalfd;
 * if that is -1, until a reader reads no more. */
void run_output_end(struct run_output *output, int signals);

#endif
