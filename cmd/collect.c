/* ddpcheck collect: stores what the watched programs of a trace directory recorded, in the
 * foreground or as a daemon. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collector/collector.h"
#include "collector/collector_notify.h"
#include "cmd/commands.h"
#include "cmd/options/choice.h"
#include "cmd/hub/job_copy.h"
#include "cmd/options/options.h"
#include "cmd/serve/serve_loop.h"
#include "collector/trace_directory.h"
#include "lib/base/descriptors.h"
#include "lib/nats/transport_nats.h"
#include "lib/trace/collector_lock.h"
#include "lib/trace/trace.h"
#include "lib/trace/trace_missing.h"

struct collect_request {
    bool daemon, foreground, quiet, fresh;
    double hang_after;
    const char *keep;
    struct keep_limits limits;
    long notify_fd;
    double timeout;               /* of `ddpcheck run` */
    const char *metrics;          /* of serve_metrics_start; NULL none */
    const char *hub;              /* URL of the job's hub; NULL none */
    struct choice_options choice; /* of what is reported through notify_fd */
    bool has_database;
    struct error no_database; /* why the directory had none */
};

static const double daemon_wait_s =
    30; /* for the first producer: it started us, but may not have its ring yet */
static const double run_wait_s = 1e9; /* `ddpcheck run` says when the job is over */

/* The call came with Linux 5.9, its function with glibc 2.34. */
static void close_all_from(int first)
{
    if (syscall(SYS_close_range, first, ~0u, 0) == 0)
        return;
    long end = sysconf(_SC_OPEN_MAX);
    for (int fd = first; fd < end; fd++)
        close(fd);
}

/* Becomes a process that neither terminal nor job can take with it. Returns 0 in the daemon, 1 in
 * the caller's process, or -1 with err. */
static int go_to_background(const char *directory, struct error *err)
{
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/collector.log", directory);
    int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666),
        null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (log < 0 || null < 0)
        return error_set(err, "can't open %s: %s", log < 0 ? path : "/dev/null", strerror(errno));
    if (directory_check_file(log, directory, "collector.log", err) < 0)
        return -1;
    pid_t child = fork();
    if (child < 0)
        return error_set(err, "can't start the collector: %s", strerror(errno));
    if (child > 0)
        return 1;
    if (setsid() < 0 || (child = fork()) < 0)
        _exit(STATUS_USAGE);
    if (child > 0)
        _exit(STATUS_CLEAN);
    dup2(null, STDIN_FILENO);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    close_all_from(3);
    setvbuf(stderr, NULL, _IOLBF, 0);
    return 0;
}

static int say_held(const struct collect_request *request, const char *directory, int holder)
{
    notify((int)request->notify_fd, "held %d", holder);
    if (request->daemon || request->notify_fd >= 0)
        return STATUS_CLEAN;
    if (holder > 0)
        fprintf(stderr,
                "ddpcheck: process %d already collects into %s; it also collects from new "
                "processes\n",
                holder, directory);
    else
        fprintf(stderr, "ddpcheck: another process already collects into %s\n", directory);
    return STATUS_CLEAN;
}

static void say_result(const struct collect_request *request, const char *directory,
                       const struct collector_summary *summary)
{
    if (request->quiet || request->daemon || request->notify_fd >= 0)
        return;
    if (!summary->database[0] && request->has_database)
        fprintf(stderr,
                "ddpcheck: nothing to collect: all records of %s are stored already; report: "
                "ddpcheck report %s\n",
                directory, directory);
    else if (!summary->database[0])
        fprintf(stderr, "ddpcheck: nothing to collect: %s\n", request->no_database.text);
    else
        fprintf(stderr, "ddpcheck: %" PRIu64 " records stored in %s\n", summary->records,
                summary->database);
}

static bool is_notified(void *context, const struct finding *finding, struct trace *trace)
{
    return choice_judge(context, finding, trace) == REPORTED;
}

static double first_wait_seconds(const struct collect_request *request)
{
    if (request->notify_fd >= 0)
        return run_wait_s;
    return request->daemon ? daemon_wait_s : 0;
}

/* A host's key in its job: its name, and which of its directories of rings this is: each has a
 * collector. */
static void make_host_key(const char *directory, char key[TRANSPORT_HOST_BYTES])
{
    char name[TRANSPORT_HOST_BYTES - 16] = "", rings[PATH_MAX] = "";
    gethostname(name, sizeof name - 1);
    directory_rings(directory, rings, NULL);
    snprintf(key, TRANSPORT_HOST_BYTES, "%s-%08x", *name ? name : "host", rings_key(rings));
}

/* NULL where there is no hub, or it can't be reached: the host is recorded all the same. */
static struct transport *open_hub(const struct collect_request *request, const char *directory)
{
    char key[TRANSPORT_HOST_BYTES];
    struct error err;
    struct transport *transport;
    if (!request->hub || !*request->hub)
        return NULL;
    make_host_key(directory, key);
    const struct transport_nats_options options = {
        .url = request->hub,
        .host = key,
        .tls_ca = getenv("DDPCHECK_HUB_CA"),
        .tls_cert = getenv("DDPCHECK_HUB_CERT"),
        .tls_key = getenv("DDPCHECK_HUB_KEY"),
    };
    if (transport_nats_open(&transport, &options, &err) == 0)
        return transport;
    fprintf(stderr, "ddpcheck: %s; this host is recorded without the job's hub\n", err.text);
    return NULL;
}

static int collect_once(const struct collect_request *request, const char *directory,
                        struct choice *choice, struct collector_summary *summary)
{
    struct error err;
    struct directory_claim claim;
    int holder = 0, claimed = directory_claim(directory, &claim, &holder, &err);
    if (claimed == -2)
        return say_held(request, directory, holder);
    if (claimed < 0)
        return command_fail(&err);
    struct transport *transport = open_hub(request, directory);
    const char *hub_place = request->hub ? job_copy_place(request->hub) : NULL;
    const struct collector_options options = {
        .directory = directory,
        .database = claim.database,
        .hang_after_ns = (uint64_t)(request->hang_after * 1e9),
        .timeout_ns = (uint64_t)(request->timeout * 1e9),
        .keep = request->limits,
        .fresh = request->fresh,
        .notify_fd = (int)request->notify_fd,
        .is_shown = is_notified,
        .context = choice,
        .first_wait_s = first_wait_seconds(request),
        .hub = transport ? hub_place : NULL,
        .transport = transport,
        .sender = claim.sender,
    };
    int result = collector_run(&options, summary, &err);
    transport_close(transport);
    directory_release(&claim);
    if (result < 0)
        return command_fail(&err);
    say_result(request, directory, summary);
    return STATUS_CLEAN;
}

/* A process that starts recording while the collector is about to end sees the lock held and starts
 * no other: another round takes care of ring files that came since then. What a full disk
 * did not take stays in the rings: a round more would find it full as well. */
static int collect_rounds(const struct collect_request *request, const char *directory)
{
    signal(SIGPIPE, SIG_IGN);
    sigset_t stops;
    sigemptyset(&stops);
    sigaddset(&stops, SIGTERM);
    sigaddset(&stops, SIGINT);
    sigaddset(&stops, SIGHUP);
    sigprocmask(SIG_BLOCK, &stops, NULL);
    struct collect_request next = *request;
    struct collector_summary summary = {0};
    struct choice choice;
    struct error err;
    if (choice_load(&choice, &request->choice, &err) < 0)
        return command_fail(&err);
    int status = collect_once(&next, directory, &choice, &summary);
    while (status == STATUS_CLEAN && summary.records > 0 && !summary.unstored &&
           !summary.left_early && !collector_stopping() && collector_has_newcomers(directory)) {
        next.quiet = true;
        summary.records = 0;
        status = collect_once(&next, directory, &choice, &summary);
    }
    choice_free(&choice);
    return status;
}

int command_collect(int argc, char **argv)
{
    struct collect_request request = {
        .notify_fd = -1, .keep = keep_usual(), .hub = getenv("DDPCHECK_HUB")};
    const char *hang_after = getenv("DDPCHECK_HANG_AFTER");
    if (hang_after)
        request.hang_after = strtod(hang_after, NULL);
    const struct option_entry entries[] = {
        {"daemon", 'd', OPTION_FLAG, NULL, "in the background; messages go to DIR/collector.log",
         &request.daemon},
        {"foreground", 'f', OPTION_FLAG, NULL, "in the foreground (the default)",
         &request.foreground},
        {"hang-after", 0, OPTION_SECONDS, "S",
         "report a rank as missing after S seconds without progress (default 10)",
         &request.hang_after},
        OPTION_KEEP(&request.keep),
        {"quiet", 'q', OPTION_FLAG, NULL, "print errors only", &request.quiet},
        {"fresh", 0, OPTION_FLAG, NULL, NULL, &request.fresh},
        CHOICE_ENTRIES(request.choice, false),
        {"hub", 0, OPTION_TEXT, "URL",
         "the job's hub, as 'ddpcheck hub' prints it (default: $DDPCHECK_HUB)", &request.hub},
        OPTION_METRICS(&request.metrics),
        {"notify-fd", 0, OPTION_NUMBER, "FD", NULL, &request.notify_fd},
        {"timeout", 0, OPTION_SECONDS, "S", NULL, &request.timeout},
    };
    const struct command_options options = {
        .command = "collect",
        .arguments = "DIR",
        .summary = "Stores what watched programs recorded in trace directory DIR, until the last "
                   "of them has exited.",
        .details = "'ddpcheck run' and libddpcheck.so start it by themselves. Start it yourself to "
                   "store what a collector "
                   "that was killed left in shared memory. There is one per directory and host.\n",
        .entries = entries,
        .count = OPTION_COUNT(entries),
    };
    int status = options_parse(&options, &argc, &argv);
    if (status != OPTIONS_GO)
        return status;
    if (argc != 1)
        return options_usage_error(&options, argc ? "only one DIR is possible" : "missing DIR");
    if (request.daemon && request.foreground)
        return options_usage_error(&options, "--daemon and --foreground exclude each other");
    if (keep_parse(request.keep, &request.limits) < 0)
        return keep_usage_error(&options, request.keep);
    char directory[PATH_MAX];
    struct error err;
    descriptors_raise();
    if (descriptors_need("the collector", COLLECTOR_DESCRIPTORS, &err) < 0)
        return command_fail(&err);
    bool is_named_by_user = request.notify_fd < 0; /* else 'ddpcheck run' has made it */
    if (is_named_by_user && trace_check_directory(argv[0], &err) < 0)
        return command_fail(&err);
    umask(0777 & ~directory_mode());
    request.has_database = trace_find_database(argv[0], &request.no_database) == 0;
    if (directory_make(argv[0], directory, &err) < 0)
        return command_fail(&err);
    int background = request.daemon ? go_to_background(directory, &err) : 0;
    if (background < 0)
        return command_fail(&err);
    if (background)
        return STATUS_CLEAN;
    pid_t server = serve_metrics_start(request.metrics, directory, &err);
    if (server < 0)
        return command_fail(&err);
    status = collect_rounds(&request, directory);
    serve_stop(server);
    return status;
}
