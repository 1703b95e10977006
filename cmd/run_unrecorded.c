/* run_unrecorded.c: says which processes of a job could not be recorded, and why. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cmd/run.h"
#include "lib/trace/unrecorded_mark.h"

void run_print_unrecorded(const struct watched_run *run)
{
    if (run->unrecorded == 0)
        return;
    fprintf(stderr, "ddpcheck: %d %s of the job called NCCL and could not be recorded: ",
            run->unrecorded, run->unrecorded == 1 ? "process" : "processes");
    if (run->unrecorded_error == EMFILE)
        fprintf(stderr,
                "too few file descriptors; each process needs %d that are free; raise the limit "
                "(ulimit -n 1024) and run the job again\n",
                RECORDING_DESCRIPTORS);
    else
        fprintf(stderr, "%s; the processes have said where\n", strerror(run->unrecorded_error));
}
