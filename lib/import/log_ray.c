/* log_ray.c: actors and workers of Ray that died: which process, on which node, and why as far as
 * Ray knows. An actor is described on several lines, a worker on one; both are said many times. */
#include <stdio.h>
#include <string.h>

#include "lib/import/log_messages.h"
#include "lib/import/scan.h"

enum { NAME_BYTES = 96, DEATHS_MAX = 64, LINES_BETWEEN = 8 };

struct ray_process {
    int64_t pid; /* -1: not said */
    char name[NAME_BYTES], host[NAME_BYTES];
};

struct log_ray {
    int open; /* behind "The actor died": lines that may still describe it */
    struct ray_process actor;
    int64_t died[DEATHS_MAX]; /* pids */
    uint32_t deaths;
};

static const char todo_ray[] =
    "Look at the memory of that node (dmesg, free), and at the worker's own log there: "
    "/tmp/ray/session_latest/logs, worker-*-PID.err. Its peers then wait for it.";
static const char todo_ray_memory[] =
    "The node ran out of memory and Ray killed the worker that used most: fewer workers or less "
    "offloading per node, or RAY_memory_usage_threshold. Its peers then wait for it.";
static const char todo_ray_node[] =
    "The whole node is gone: see whether it is up, and the end of its raylet.out and dmesg.";

/* What Ray says of a death, and what to do. The first that is in the line counts. */
static const struct ray_death {
    const char *text, *says, *todo;
} ray_deaths[] = {
    {"INTENDED", NULL, NULL}, /* ray.kill, or the end of the job */
    {"ray.kill", NULL, NULL},
    {"memory pressure", "was killed for memory", todo_ray_memory},
    {"low on memory", "was killed for memory", todo_ray_memory},
    {"its node has died", "died with its node", todo_ray_node},
    {"node died", "died with its node", todo_ray_node},
    {"", "died", todo_ray},
};

static const struct ray_death *find_death(const char *text)
{
    const struct ray_death *death = ray_deaths;
    while (!strstr(text, death->text))
        death++;
    return death;
}

/* Every peer, and the raylet, reports the same death. */
static bool is_reported(struct log_ray *ray, int64_t pid)
{
    for (uint32_t i = 0; i < ray->deaths; i++)
        if (ray->died[i] == pid)
            return true;
    if (ray->deaths < DEATHS_MAX)
        ray->died[ray->deaths++] = pid;
    return false;
}

static int report_death(struct log_job *job, const struct ray_process *process, const char *text)
{
    const struct ray_death *death = find_death(text);
    char what[MESSAGE_BYTES], pid[32] = "", place[64] = "", detail[NAME_BYTES] = "", times[64] = "";
    struct scanned found;
    if (!death->says || is_reported(job->state[LOG_RAY], process->pid))
        return 1;
    if (process->pid >= 0)
        snprintf(pid, sizeof pid, ", pid %lld", (long long)process->pid);
    const char *slot = strrchr(process->name, '_'); /* verl: "prefixWorkerDict_2:5" */
    if (slot && scan(slot, "_{i:node}:{i:local}", &found))
        snprintf(place, sizeof place, " (node %lld, local rank %lld)",
                 (long long)scanned_number(&found, "node", 0),
                 (long long)scanned_number(&found, "local", 0));
    if (scan(text, "Worker exit type: {w:type}", &found))
        snprintf(detail, sizeof detail, " (%.*s)", (int)found.field[0].bytes, found.field[0].text);
    if (scan(text, "[repeated {i:times}x across cluster]", &found))
        snprintf(times, sizeof times, "; Ray left out %lld more such lines",
                 (long long)scanned_number(&found, "times", 1) - 1);
    snprintf(what, sizeof what, "a Ray worker process %s: %s%s%s%s%s%s%s", death->says,
             *process->name ? process->name : "no name is known", place, pid,
             *process->host ? " on " : "", process->host, detail, times);
    return log_messages_add(job, LOG_NOBODY, LOG_SAID_ENDED, "Ray", what, death->todo);
}

/* "	pid: 4415", "	name: ...", "	ip: ...". */
static bool take_actor_field(struct ray_process *actor, const char *text)
{
    const char *name = scan_find(text, "name: "), *host = scan_find(text, "ip: "),
               *pid = scan_find(text, "pid: ");
    if (scan_find(text, "class_name: ") || scan_find(text, "actor_id: ") ||
        scan_find(text, "namespace: "))
        return true;
    if (name)
        text_copy_until(actor->name, sizeof actor->name, name + 6, " \r\n");
    else if (host)
        text_copy_until(actor->host, sizeof actor->host, host + 4, " \r\n");
    else if (pid)
        actor->pid = text_number_behind(pid, "pid:");
    return name || host || pid;
}

static int read_ray_line(struct log_job *job, const char *text, size_t bytes)
{
    struct log_ray *ray = job->state[LOG_RAY];
    struct scanned found;
    (void)bytes;
    if (scan_find(text, "The actor died unexpectedly before finishing this task") ||
        scan_find(text, "The actor is unavailable")) {
        ray->open = LINES_BETWEEN;
        ray->actor = (struct ray_process){.pid = -1};
        return 1;
    }
    if (scan_find(text, "The actor is dead because its ")) {
        int result = report_death(job, &ray->actor, text);
        ray->open = 0;
        ray->actor = (struct ray_process){.pid = -1};
        return result;
    }
    if (scan_find(text, "A worker died or was killed") ||
        scan_find(text, "Workers (tasks / actors) killed due to memory pressure")) {
        struct ray_process worker = {.pid = -1};
        if (scan(text, "Worker IP address: {w:host} ", &found) ||
            scan(text, ", IP: {w:host}", &found))
            text_copy_until(worker.host, sizeof worker.host, found.field[0].text, " ),\r\n");
        worker.pid = text_number_behind(text, "Worker PID:");
        return report_death(job, &worker, text);
    }
    if (!ray->open)
        return 0;
    ray->open = take_actor_field(&ray->actor, text) ? LINES_BETWEEN : ray->open - 1;
    return 0;
}

const struct log_reader log_ray = {sizeof(struct log_ray), read_ray_line, NULL};
