/* stored_job.c: hosts that are databases, and a hub that asks them. */
#include "hub/stored_job.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/array.h"

enum {
    /* Kept of all processes together, 160 MB; of each no more than its collector keeps, and what
     * is asked for where there are many. */
    STORED_RECORDS = 1 << 20,
    STORED_TAIL_LEAST = 64,
    STORED_TAIL_MOST = 8192,
    TURNS_MAX = 100000
};
/* The hub's time: nobody waits in it for anybody. */
static const uint64_t began_ns = 1000000000000, turn_ns = 300000000;

struct stored_host {
    struct transport *transport;
    struct join *join;
};

struct stored_process {
    int host, process; /* host -1: no such process */
};

struct stored_job {
    struct transport_local *transports;
    struct transport *transport;
    struct hub *hub;
    struct stored_host *host;
    int hosts;
    struct stored_process *process; /* by the hub's number */
    size_t processes;
    char folder[PATH_MAX], database[PATH_MAX];
};

static uint32_t tail_of_each(int processes)
{
    uint32_t most = STORED_RECORDS / (uint32_t)(processes > 0 ? processes : 1);
    if (most > STORED_TAIL_MOST)
        return STORED_TAIL_MOST;
    return most < STORED_TAIL_LEAST ? STORED_TAIL_LEAST : most;
}

static int open_stored_host(struct stored_job *job, int number, uint32_t tail)
{
    struct stored_host *host = &job->host[number];
    char key[16];
    snprintf(key, sizeof key, "%d", number);
    host->transport = transport_local_host(job->transports, key);
    const struct join_options options = {
        .transport = host->transport, .tail_records = tail, .keeps_ticks = true};
    host->join = host->transport ? join_new(&options) : NULL;
    return host->join ? 0 : -1;
}

/* Of the hub's database; it has what was asked for, and nobody reads it but the hub. */
static int make_hub_folder(struct stored_job *job, struct error *err)
{
    const char *top = getenv("TMPDIR");
    int length = snprintf(job->folder, sizeof job->folder, "%s/ddpcheck-report-XXXXXX",
                          top && *top ? top : "/tmp");
    if (length >= (int)sizeof job->folder || !mkdtemp(job->folder)) {
        job->folder[0] = 0;
        return error_set(err, "can't create a folder in %s: %s", top && *top ? top : "/tmp",
                         strerror(length >= (int)sizeof job->folder ? ENAMETOOLONG : errno));
    }
    length = snprintf(job->database, sizeof job->database, "%s/job.db", job->folder);
    return length < (int)sizeof job->database ? 0 : error_set(err, "can't name %s", job->folder);
}

int stored_job_open(struct stored_job **opened, int hosts, int processes, struct error *err)
{
    struct stored_job *job = calloc(1, sizeof *job);
    bool ready = job && (job->host = calloc((size_t)hosts, sizeof *job->host)) &&
                 (job->transports = transport_local_new()) &&
                 (job->transport = transport_local_hub(job->transports));
    for (int i = 0; i < hosts && ready; i++) {
        job->hosts = i + 1;
        ready = open_stored_host(job, i, tail_of_each(processes)) == 0;
    }
    if (!ready) {
        stored_job_close(job);
        return error_memory(err, "can't analyse the traces");
    }
    *opened = job;
    return 0;
}

struct join *stored_job_host(const struct stored_job *job, int host)
{
    return job->host[host].join;
}

static void note_stored_process(void *context, const char *host, int process, int number)
{
    struct stored_job *job = context;
    if (number < 0)
        return;
    size_t before = job->processes;
    if (!ARRAY_RESERVE(job->process, job->processes, number + 1))
        return; /* its stacks are not shown */
    for (size_t i = before; i < job->processes; i++)
        job->process[i].host = -1;
    job->process[number] = (struct stored_process){atoi(host), process};
}

/* Asks and answers until the hub has what it wants. */
static int let_hub_ask(struct stored_job *job, struct error *err)
{
    uint64_t now_ns = began_ns;
    for (int turn = 0; turn < TURNS_MAX; turn++) {
        int result = hub_step(job->hub, now_ns += turn_ns, 0, err);
        if (result)
            return result < 0 ? -1 : 0;
        for (int i = 0; i < job->hosts; i++)
            join_answer(job->host[i].join);
    }
    return error_set(err, "can't analyse the traces: the hub's questions do not end");
}

int stored_job_judge(struct stored_job *job, uint64_t hang_after_ns, enum hub_ending ending,
                     struct error *err)
{
    const struct hub_options options = {.transport = job->transport,
                                        .database = job->database,
                                        .is_unnamed = true,
                                        .hang_after_ns = hang_after_ns,
                                        .ending = ending};
    if (make_hub_folder(job, err) < 0 || hub_open(&job->hub, &options, err) < 0 ||
        let_hub_ask(job, err) < 0)
        return -1;
    hub_visit_processes(job->hub, note_stored_process, job);
    return 0;
}

void stored_job_visit(struct stored_job *job,
                      void (*visit)(void *context, const struct finding *finding), void *context)
{
    hub_visit_findings(job->hub, visit, context);
}

bool stored_job_process(const struct stored_job *job, int number, int *host, int *process)
{
    if (number < 0 || (size_t)number >= job->processes || job->process[number].host < 0)
        return false;
    *host = job->process[number].host;
    *process = job->process[number].process;
    return true;
}

static void remove_hub_folder(const struct stored_job *job)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    char path[PATH_MAX + 16];
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(path, sizeof path, "%s%s", job->database, ends[i]);
        unlink(path);
    }
    rmdir(job->folder);
}

void stored_job_close(struct stored_job *job)
{
    if (!job)
        return;
    hub_close(job->hub, NULL);
    for (int i = 0; i < job->hosts; i++) {
        join_free(job->host[i].join);
        transport_close(job->host[i].transport);
    }
    transport_close(job->transport);
    transport_local_free(job->transports);
    if (job->folder[0])
        remove_hub_folder(job);
    free(job->host);
    free(job->process);
    free(job);
}
