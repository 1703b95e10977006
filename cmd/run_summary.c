/* run_summary.c: says at the end what a job came to, and what of it could not be recorded. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/run.h"
#include "cmd/run_hub.h"
#include "cmd/hub/job_folder.h"
#include "lib/trace/trace.h"
#include "lib/trace/unrecorded_mark.h"

static void print_unrecorded(const struct watched_run *run)
{
    if (run->unrecorded == 0)
        return;
    fprintf(stderr,
            "ddpcheck: %d %s of the job called NCCL and could not be recorded: ", run->unrecorded,
            run->unrecorded == 1 ? "process" : "processes");
    if (run->unrecorded_error == EMFILE)
        fprintf(stderr,
                "too few file descriptors; each process needs %d that are free; raise the limit "
                "(ulimit -n 1024) and run the job again\n",
                RECORDING_DESCRIPTORS);
    else if (run->unrecorded_error == EEXIST)
        fprintf(stderr, "it became more than %d programs, one after the other\n",
                RECORDED_PROGRAMS);
    else
        fprintf(stderr, "%s; the processes have said where\n", strerror(run->unrecorded_error));
}

void run_print_gone(struct watched_run *run, const char *text)
{
    run->gone = true;
    fprintf(
        stderr,
        "ddpcheck: the trace in %s was deleted while the job ran: its %s records are lost; what "
        "is printed here is all that is known\n",
        run->options.directory_name, text);
}

void run_print_full(const struct watched_run *run, const char *text)
{
    uint64_t stored, unstored;
    int rings = 0;
    if (sscanf(text, "%" SCNu64 " %" SCNu64 " %n", &stored, &unstored, &rings) != 2 || rings == 0)
        return;
    fprintf(stderr,
            "ddpcheck: the disk of %s was full: %" PRIu64 " records are stored, %" PRIu64
            " are not; they stay in %s.\n          With room on the disk, 'ddpcheck collect %s' "
            "stores them.\n",
            run->options.directory_name, stored, unstored, text + rings,
            run->options.directory_name);
}

void run_print_report(const struct watched_run *run, const char *before)
{
    if (!run->job_news.any)
        fprintf(stderr, "%sddpcheck report %s\n", before, run->options.directory_name);
    else if (run_hub_pid(run->joined))
        fprintf(stderr, "%sddpcheck report %s/" JOB_DATABASE "\n", before,
                run->options.directory_name);
    else
        fprintf(stderr, "%sddpcheck report nats://..., the address of the hub\n", before);
}

/* One process may have been several programs, and is a rank by its communicator. */
static void print_counts(const struct watched_run *run)
{
    const char *plural = run->ranks == 1 ? "" : "s";
    if (run->ranks == 0)
        fputs("ddpcheck: no rank called NCCL, ", stderr);
    else if (run->communicators == 0)
        fprintf(stderr, "ddpcheck: %d program%s called NCCL without a communicator, ", run->ranks,
                plural);
    else
        fprintf(stderr, "ddpcheck: %d rank%s, %d communicator%s, ", run->ranks, plural,
                run->communicators, run->communicators == 1 ? "" : "s");
}

/* Processes on another host, or with another /dev/shm, have a collector of their own. Each has a
 * lock file, which such a process makes if it is not there. */
static bool others_record(const struct watched_run *run)
{
    static const char prefix[] = "collector-";
    const uint64_t second_ns = 1000000000;
    struct stat status;
    int locks = 0; /* ours is one */
    DIR *directory = opendir(run->directory);
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        if (strncmp(entry->d_name, prefix, sizeof prefix - 1) == 0 &&
            fstatat(dirfd(directory), entry->d_name, &status, 0) == 0)
            locks += (uint64_t)status.st_mtime + 1 >= run->began_ns / second_ns;
    if (directory)
        closedir(directory);
    return locks > 1;
}

static void print_nothing_recorded(const struct watched_run *run, const char *program)
{
    if (!run->joined && others_record(run)) /* with a hub other hosts are no surprise */
        fprintf(stderr,
                "ddpcheck: the job's processes can't share memory with this one: collectors of "
                "their own record them in %s, and may not be done yet; report: ddpcheck report "
                "%s\n",
                run->options.directory_name, run->options.directory_name);
    else
        fprintf(stderr,
                "ddpcheck: the program " TRACE_NO_NCCL_CALL "%s; to find out why: ddpcheck doctor "
                "-- %s\n",
                run->options.plugin ? ", and NCCL loaded no profiler plugin (NCCL_PROFILER_PLUGIN)"
                                    : "",
                program);
}

/* "1 error, 2 notes", as the report begins; of notes alone that they are no more than that. */
static void print_found(const struct watched_run *run)
{
    bool any = false, is_bad = run->found[SEVERITY_ERROR] || run->found[SEVERITY_WARNING];
    const char *nothing = "no finding";
    if (run->sent)
        nothing = "findings are printed on the job's first host";
    else if (run->unrecorded)
        nothing = "no finding in what was recorded";
    if (!is_bad && (run->sent || !run->found[SEVERITY_NOTE])) {
        fputs(nothing, stderr);
        return;
    }
    if (!is_bad)
        fputs("no error, ", stderr);
    for (enum severity severity = SEVERITY_ERROR; severity <= SEVERITY_NOTE; severity++) {
        int count = run->found[severity];
        if (count)
            fprintf(stderr, "%s%d %s%s", any ? ", " : "", count, severity_name(severity),
                    count == 1 ? "" : "s");
        any = any || count;
    }
}

void run_print_summary(const struct watched_run *run, const char *program)
{
    if (run->options.quiet || run->shared || run->left_behind || run->is_unrecorded)
        return;
    if (!run->saw_end) {
        fprintf(
            stderr,
            "ddpcheck: the collector did not come to its end; 'ddpcheck collect %s' stores what "
            "it left\n",
            run->options.directory_name);
        return;
    }
    print_unrecorded(run);
    if (run->ranks == 0 && run->unrecorded)
        return;
    if (run->ranks == 0 && !run->found[SEVERITY_ERROR] && !run->found[SEVERITY_WARNING]) {
        print_nothing_recorded(run, program);
        return;
    }
    print_counts(run);
    print_found(run);
    if (run->gone)
        fputc('\n', stderr);
    else
        run_print_report(run, "; report: ");
}
