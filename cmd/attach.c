/* ddpcheck attach: why a job hangs that runs now and that nobody watched, from outside of it. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/attach/attach_sources.h"
#include "cmd/attach/attach_write.h"
#include "cmd/commands.h"
#include "cmd/import_judge.h"
#include "cmd/options/options.h"

enum { PIDS_MAX = 4096, LOOKS_USUAL = 4, LOOKS_LEAST = 2, LOOKS_MAX = 3600 };

struct attach_request {
    const char *output, *slurm_job;
    bool json, tui, python_only;
    int color;
    long looks;
};

/* Where things lie: the folder of this call, and in it what was read and, without -o, its trace. */
struct attach_files {
    char folder[PATH_MAX / 2], database[PATH_MAX];
    bool is_kept;
};

static int make_attach_folder(struct attach_files *files, struct error *err)
{
    const char *temporary = getenv("TMPDIR");
    snprintf(files->folder, sizeof files->folder, "%s/ddpcheck-attach-XXXXXX",
             temporary && *temporary ? temporary : "/tmp");
    if (!mkdtemp(files->folder))
        return error_set(err, "cannot make a folder like %s: %s", files->folder, strerror(errno));
    snprintf(files->database, sizeof files->database, "%s/trace.db", files->folder);
    return 0;
}

static void remove_folder(const struct attach_files *files)
{
    if (!files->is_kept)
        unlink(files->database);
    rmdir(files->folder);
}

/* -o FILE.db, or a directory, which gets a database of this host, as those of other hosts. */
static int choose_database(struct attach_files *files, const char *output, struct error *err)
{
    char host[256] = "host";
    struct stat file;
    size_t length = strlen(output);
    files->is_kept = true;
    gethostname(host, sizeof host - 1);
    if (length > 3 && !strcmp(output + length - 3, ".db"))
        snprintf(files->database, sizeof files->database, "%s", output);
    else if (mkdir(output, 0777) && errno != EEXIST)
        return error_set(err, "cannot make %s: %s", output, strerror(errno));
    else
        snprintf(files->database, sizeof files->database, "%s/%s.db", output, host);
    if (!stat(files->database, &file)) {
        error_set(err, "%s is there already; name another, or remove it", files->database);
        return -1;
    }
    return 0;
}

/* The trace of a job that is watched, which says more than stacks; NULL: it is not. */
static const char *watched_trace(const struct live_job *job)
{
    for (int i = 0; i < job->ranks; i++) {
        const char *directory =
            job->rank[i].is_watched ? live_variable(&job->rank[i].process, "DDPCHECK_DIR") : NULL;
        if (directory)
            return directory;
    }
    return NULL;
}

/* --- the trace and what is shown of it --- */

/* What the ranks printed need hold nothing of interest. */
static void print_refusal(void *context, const char *message)
{
    const struct attach_sources *sources = context;
    if (strncmp(message, sources->folder, strlen(sources->folder)) != 0)
        fprintf(stderr, "ddpcheck: %s\n", message);
}

static int import_seen(struct attach_sources *sources, const struct attach_files *files,
                       struct error *err)
{
    struct import_verdict verdict;
    struct import_result result;
    const struct import_judge *judge = import_judge_new(&verdict, err);
    if (!judge)
        return -1;
    int failed = import_files(
        (const char *const *)sources->path, sources->paths, files->database,
        &(struct import_options){.say = print_refusal, .context = sources, .judge = judge}, &result,
        err);
    import_judge_free(judge);
    return failed;
}

/* The stacks as a file, and what else there is. A job that gets on needs nothing else. */
static int gather(const struct live_job *job, struct attach_sources *sources, struct error *err)
{
    FILE *seen = job->ranks ? attach_open_own(sources, "stacks.jsonl") : NULL;
    if (job->ranks && !seen)
        return error_set(err, "cannot write what was seen: %s", sources->absent.data);
    int failed = seen ? attach_write(job, seen, err) : 0;
    if (seen && fclose(seen) && !failed)
        failed = error_set(err, "cannot write what was seen: %s", strerror(errno));
    if (!failed && !live_job_moves(job))
        attach_sources_read(sources, job);
    if (!failed && !sources->paths) {
        *err = job->why;
        failed = -1;
    }
    return failed;
}

static int show_trace(const char *trace, const struct attach_request *request)
{
    static const char *const colors[] = {"--color=auto", "--color=always", "--color=never"};
    const char *report[] = {"report", colors[request->color], trace, NULL, NULL},
               *tui[] = {"tui", colors[request->color], trace, NULL};
    if (request->tui)
        return command_tui(3, (char **)tui);
    if (request->json)
        report[3] = "--json";
    return command_report(request->json ? 4 : 3, (char **)report);
}

/* Watches the job, reads all that there is, makes a trace of it and shows that. */
static int diagnose(struct live_job *job, const struct live_search *search,
                    const struct attach_request *request, struct attach_files *files,
                    struct attach_sources *sources)
{
    struct error err = {{0}};
    if (request->output && choose_database(files, request->output, &err))
        return command_fail(&err);
    attach_sources_ask(sources, job);
    if (live_job_watch(job, search, &err) || gather(job, sources, &err))
        return command_fail(&err);
    attach_print_seen(job);
    attach_print_sources(sources);
    if (import_seen(sources, files, &err))
        return command_fail(&err);
    return show_trace(files->database, request);
}

static int attach_to(struct live_job *job, const struct live_search *search,
                     const struct attach_request *request)
{
    struct attach_files files = {0};
    struct error err = {{0}};
    const char *trace = watched_trace(job);
    if (request->output && !strcmp(request->output, "-") && !job->ranks)
        return command_fail(&job->why);
    if (request->output && !strcmp(request->output, "-"))
        return live_job_watch(job, search, &err) || attach_write(job, stdout, &err)
                   ? command_fail(&err)
                   : STATUS_CLEAN;
    if (trace) {
        fprintf(stderr, "ddpcheck: this job is watched: its trace is %s\n", trace);
        return show_trace(trace, request);
    }
    if (make_attach_folder(&files, &err))
        return command_fail(&err);
    struct attach_sources sources = {.folder = files.folder};
    int status = diagnose(job, search, request, &files, &sources);
    attach_sources_free(&sources);
    remove_folder(&files);
    return status;
}

/* Returns how many, -1 if one is no process id. */
static int parse_processes(int argc, char **argv, int *pids)
{
    for (int i = 0; i < argc; i++) {
        char *end;
        long pid = strtol(argv[i], &end, 10);
        if (*end || end == argv[i] || pid <= 0 || pid > 1 << 22 || i == PIDS_MAX)
            return -1;
        pids[i] = (int)pid;
    }
    return argc;
}

int command_attach(int argc, char **argv)
{
    struct attach_request request = {.looks = LOOKS_USUAL};
    const struct option_entry entries[] = {
        {"slurm", 0, OPTION_TEXT, "JOB", "the processes of this job of Slurm's on this host",
         &request.slurm_job},
        {"looks", 0, OPTION_NUMBER, "N",
         "looks, a second apart: what changes between them does not hang (default: 4)",
         &request.looks},
        {"python", 0, OPTION_FLAG, NULL, "Python frames only; stops no thread",
         &request.python_only},
        {"output", 'o', OPTION_TEXT, "DIR|FILE.db|-",
         "keep the trace there, of each host its own; -: print what was seen, for ddpcheck import",
         &request.output},
        {"json", 0, OPTION_FLAG, NULL, "print JSON lines (docs/json.md)", &request.json},
        {"tui", 0, OPTION_FLAG, NULL, "show it in the terminal", &request.tui},
        OPTION_COLOR(&request.color),
    };
    const struct command_options options = {
        .command = "attach",
        .arguments = "[PID...]",
        .summary = "Finds why a job hangs that runs now and was started without ddpcheck, from the "
                   "stacks of its processes.\n"
                   "Without PID: every process of yours on this host that uses NCCL; else these, "
                   "with what they started.",
        .details =
            "Nothing in the job is changed; for native frames each thread stops for some "
            "milliseconds, as under a debugger. It needs the right to ptrace the job: the same "
            "user, or CAP_SYS_PTRACE. What stacks show is possible, not certain "
            "(docs/attach.md).\n\n"
            "Exit status: 0 no finding; 1 findings; 2 usage error, or nothing that may be read; "
            "3 no finding, but some ranks are not on this host.\n",
        .entries = entries,
        .count = OPTION_COUNT(entries),
    };
    static int pids[PIDS_MAX];
    int status = options_parse(&options, &argc, &argv);
    if (status != OPTIONS_GO)
        return status;
    int count = parse_processes(argc, argv, pids);
    if (count < 0)
        return options_usage_error(&options, "PID is the number of a process, as in ddpcheck "
                                             "attach 4711");
    if (request.looks < LOOKS_LEAST || request.looks > LOOKS_MAX)
        return options_usage_error(&options,
                                   "--looks is %d to %d: one look does not show what moves",
                                   LOOKS_LEAST, LOOKS_MAX);
    if (request.json && request.tui)
        return options_usage_error(&options, "--json and --tui exclude each other");
    const struct live_search search = {.pids = pids,
                                       .count = count,
                                       .slurm_job = request.slurm_job,
                                       .looks = (int)request.looks,
                                       .native = !request.python_only};
    struct live_job job;
    struct error err = {{0}};
    if (live_job_find(&job, &search, &err))
        return command_fail(&err);
    status = attach_to(&job, &search, &request);
    live_job_free(&job);
    return status;
}
