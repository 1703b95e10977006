/* log_tasks.c: barriers of JAX and TensorFlow that timed out. Their coordination service names the
 * tasks that did not come, each on a line of its own, or all of them inside of one text:
 *
 *     Barrier timed out. Id: PjRT_Client_Connect::0. ...
 *     # of tasks that reached the barrier: 8/16.
 *     The first task at the barrier: /job:jax_worker/replica:0/task:13. Some timed out task names:
 *     /job:jax_worker/replica:0/task:6
 *
 * Older ones write "Barrier_id: NAME. Timed out task names:" and no numbers. A task of one job is a
 * rank. */
#include <stdio.h>
#include <string.h>

#include "lib/base/rankset.h"
#include "lib/import/log_messages.h"
#include "lib/import/scan.h"

enum { RANKS_BYTES = 200, NAME_BYTES = 96, JOB_BYTES = 48, RANKS_MAX = 1 << 20, LINES_BETWEEN = 8 };

struct log_tasks {
    char barrier[NAME_BYTES], job[JOB_BYTES];
    int64_t came, of; /* of < 1: not known */
    struct rankset missing;
    int64_t first;   /* the task that came first; -1 not known */
    int open;        /* lines that may still name tasks */
    bool has_list;   /* tasks named from here on are missing */
    bool are_silent; /* they did not miss a barrier: they stopped to send heartbeats */
    bool is_several; /* jobs: "worker" and "ps", whose tasks are no ranks */
};

static const char todo_tasks[] =
    "These tasks did not come to the barrier: see their own logs for an exception, a slow start or "
    "load, a host that is gone. If none did, raise the time-out (jax.distributed.initialize: "
    "initialization_timeout).";

static const char todo_silent[] =
    "These processes ended, or their hosts lost the network: see their own logs, and the "
    "scheduler's (preemption, memory). The others were ended because of them.";

static void copy_field(char *to, size_t bytes, const struct scanned_field *field)
{
    size_t length = field->bytes < bytes ? field->bytes : bytes - 1;
    memcpy(to, field->text, length);
    to[length] = '\0';
}

/* "/job:jax_worker/replica:0/task:6", as many as there are. */
static bool add_tasks(struct log_tasks *tasks, const char *text, bool *no_memory)
{
    struct scanned found;
    bool any = false;
    for (; scan(text, "/job:{r:job}/replica:{i:}/task:{i:task}", &found); text = found.end) {
        char job[JOB_BYTES];
        int64_t task = scanned_number(&found, "task", -1);
        copy_field(job, sizeof job, &found.field[0]);
        if (!*tasks->job)
            memcpy(tasks->job, job, sizeof tasks->job);
        tasks->is_several |= strcmp(tasks->job, job) != 0;
        if (task >= 0 && task < RANKS_MAX && rankset_add(&tasks->missing, (int)task))
            *no_memory = true;
        any = true;
    }
    return any;
}

static int read_tasks_line(struct log_job *job, const char *text, size_t bytes)
{
    static const char *const lists[] = {"imed out task names:", "asks that did not reach",
                                        "stopped sending heartbeats"};
    struct log_tasks *tasks = job->state[LOG_TASKS];
    struct scanned found;
    bool no_memory = false;
    (void)bytes;
    const char *barrier = scan_find(text, "Barrier timed out.");
    bool are_silent = scan_find(text, "tasks are unhealthy (stopped sending heartbeats)");
    if (!barrier && !are_silent && !tasks->open)
        return 0;
    tasks->are_silent |= are_silent;
    if (barrier && !*tasks->barrier) {
        tasks->first = -1;
        if (scan(barrier, "Barrier_id: {r:name}. ", &found) ||
            scan(barrier, "Id: {r:name}. ", &found))
            copy_field(tasks->barrier, sizeof tasks->barrier, &found.field[0]);
        else
            snprintf(tasks->barrier, sizeof tasks->barrier, "of the coordination service");
    }
    if (barrier || are_silent)
        tasks->has_list = false;
    if (scan(text, "tasks that reached the barrier: {i:came}/{i:of}", &found)) {
        tasks->came = scanned_number(&found, "came", 0);
        tasks->of = scanned_number(&found, "of", 0);
    }
    if (scan(text, "first task at the barrier: /job:{r:job}/replica:{i:}/task:{i:task}", &found))
        tasks->first = scanned_number(&found, "task", -1);
    const char *list = tasks->has_list ? text : NULL;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const char *at = strstr(text, lists[i]);
        list = at ? at : list;
    }
    tasks->has_list |= list != NULL;
    bool any = list && add_tasks(tasks, list, &no_memory);
    tasks->open = barrier || any || list ? LINES_BETWEEN : tasks->open - 1;
    if (!tasks->open)
        tasks->has_list = false;
    if (no_memory)
        return -1;
    return barrier || are_silent || any;
}

static void describe_silent(const struct log_tasks *tasks, char *what, size_t bytes)
{
    char list[RANKS_BYTES];
    snprintf(what, bytes, "%s %s of %s stopped sending heartbeats",
             rankset_count(&tasks->missing) == 1 ? "task" : "tasks",
             rankset_text(&tasks->missing, list, sizeof list), tasks->job);
}

static int end_tasks(struct log_job *job)
{
    struct log_tasks *tasks = job->state[LOG_TASKS];
    char what[MESSAGE_BYTES], list[RANKS_BYTES], came[64] = "", first[48] = "";
    int count = rankset_count(&tasks->missing), result = 1;
    if (!*tasks->barrier && !count)
        return 0;
    if (tasks->of > 0)
        snprintf(came, sizeof came, "; %lld of %lld tasks came", (long long)tasks->came,
                 (long long)tasks->of);
    if (tasks->first >= 0)
        snprintf(first, sizeof first, ", task %lld first", (long long)tasks->first);
    bool is_whole = tasks->of < 1 || count == tasks->of - tasks->came; /* it names 20 at most */
    if (tasks->are_silent && count)
        describe_silent(tasks, what, sizeof what);
    else if (count)
        snprintf(what, sizeof what, "%s %s%s of %s did not come to barrier %s in time%s%s",
                 count == 1 ? "task" : "tasks", rankset_text(&tasks->missing, list, sizeof list),
                 is_whole ? "" : " and others", tasks->job, tasks->barrier, came, first);
    else
        snprintf(what, sizeof what,
                 "barrier %s timed out%s%s; which tasks did not come is not in this log",
                 tasks->barrier, came, first);
    const char *todo = tasks->are_silent ? todo_silent : todo_tasks;
    if (!count || tasks->is_several)
        result =
            log_messages_add(job, LOG_NOBODY, SAID_ERROR, "the coordination service", what, todo);
    for (int rank = rankset_next(&tasks->missing, 0); rank >= 0 && result > 0 && !tasks->is_several;
         rank = rankset_next(&tasks->missing, rank + 1))
        result = log_messages_add(job, (struct log_speaker){.rank = rank}, SAID_ERROR,
                                  "the coordination service", what, todo);
    rankset_free(&tasks->missing);
    return result < 0 ? -1 : 0;
}

const struct log_reader log_tasks = {sizeof(struct log_tasks), read_tasks_line, end_tasks};
