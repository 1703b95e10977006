/* failed_program.c: records how the program of `ddpcheck run` failed, and counts the processes
 * that could not record. */
#include "collector/failed_program.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/collector.h"
#include "collector/dormant.h"
#include "collector/uncalled.h"
#include "lib/trace/unrecorded_mark.h"

static struct process_info fill_in_program(const struct known_program *program)
{
    struct process_info info = {
        .pid = program->exit.pid,
        .rank = -1,
        .local_rank = -1,
        .restart = -1,
        .start_ticks = program->exit.start_ticks,
        .realtime_ns = realtime_now_ns(),
        .monotonic_ns = monotonic_now_ns(),
        .launcher = "none",
    };
    uncalled_fill_host(&info);
    snprintf(info.program, sizeof info.program, "%s", program->name);
    snprintf(info.command, sizeof info.command, "%s", program->name);
    return info;
}

static bool add_program_end(struct collector *collector, int process,
                            const struct known_program *program)
{
    const uint64_t now_ns = monotonic_now_ns();
    const int status = program->exit.status;
    struct record said = {.time_ns = now_ns, .api = API_notice_program, .device = RECORD_NO_DEVICE};
    struct record end = {.time_ns = now_ns, .api = API_notice_end, .device = RECORD_NO_DEVICE};
    end.end.how = WIFSIGNALED(status) ? END_SIGNAL : END_EXIT;
    end.end.value = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
    if (*program->function)
        said.range.text = string_id(program->function, strlen(program->function));
    return dormant_add_text(collector, process, program->function, said.range.text, now_ns) &&
           batch_add(collector->batch, process, &said) &&
           batch_add(collector->batch, process, &end);
}

int collector_add_failed_program(struct collector *collector, struct error *err)
{
    const struct known_program *program = &collector->ends.program;
    bool is_needed = !collector->ends.failures || *program->function;
    if (!program->exit.pid || !is_needed)
        return 0;
    const struct process_info info = fill_in_program(program);
    if (!collector->store && collector_open(collector, NULL, err) < 0)
        return -1;
    int process = collector_add_process(collector, &info, err);
    if (process < 0)
        return -1;
    collector->processes.ended[process] = true;
    return add_program_end(collector, process, program)
               ? 1
               : error_set(err, "there is no room for how the program ended");
}

int unrecorded_take(const char *path, int *error)
{
    int count = 0, number;
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        if (unrecorded_mark_read(entry->d_name, &number) &&
            unlinkat(dirfd(directory), entry->d_name, AT_REMOVEDIR) == 0) {
            *error = number;
            count++;
        }
    if (directory)
        closedir(directory);
    return count;
}
