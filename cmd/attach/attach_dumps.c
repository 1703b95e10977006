/* attach_dumps.c: dumps of PyTorch's Flight Recorder: those that lie where the job's variables say,
 * and new ones, which PyTorch writes when something is written to its pipe. */
#include "cmd/attach/attach_sources.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/rankset.h"

/* PyTorch looks at its pipe once a second (ProcessGroupNCCL's heartbeat monitor), and takes some
 * seconds where it has to import what writes stacks. */
enum { DUMP_WAIT_MS = 10000, DUMP_SLICE_MS = 50, RANKS_BYTES = 256 };

/* Where dumps are, in the order in which they are looked for: a variable of the job, a name in its
 * home, a name; the rank follows (torch/csrc/distributed/c10d/FlightRecorder.cpp,
 * DebugInfoWriter::getWriter, of PyTorch 2.10 to 2.15; the last: up to 2.6). */
static const struct dump_place {
    const char *variable, *name;
} dump_places[] = {
    {"TORCH_FR_DUMP_TEMP_FILE", ""},
    {"TORCH_NCCL_DEBUG_INFO_TEMP_FILE", ""},
    {"HOME", "/.cache/torch/comm_lib_trace_rank_"},
    {NULL, "/tmp/nccl_trace_rank_"},
};

/* The file as the process sees it, which may be in a container. */
static void path_of_process(const struct live_rank *rank, const char *name, char *path,
                            size_t bytes)
{
    snprintf(path, bytes, "/proc/%d/%s/%s", rank->process.pid, *name == '/' ? "root" : "cwd", name);
    if (access(path, F_OK) && *name == '/')
        snprintf(path, bytes, "%s", name);
}

/* One that is older than the process is of another job. */
static bool is_dump(const char *path, uint64_t since_ns)
{
    struct stat file;
    if (stat(path, &file) || !S_ISREG(file.st_mode) || !file.st_size)
        return false;
    return (uint64_t)file.st_mtim.tv_sec * 1000000000 + (uint64_t)file.st_mtim.tv_nsec >= since_ns;
}

static bool find_dump(const struct live_rank *rank, uint64_t since_ns, char *path, size_t bytes)
{
    char name[PATH_MAX / 2];
    for (size_t i = 0; i < sizeof dump_places / sizeof *dump_places && !rank->is_gone; i++) {
        const struct dump_place *place = &dump_places[i];
        const char *value = place->variable ? live_variable(&rank->process, place->variable) : "";
        if (!value || (place->variable && !*value))
            continue;
        snprintf(name, sizeof name, "%s%s%d", value, place->name, rank->rank);
        path_of_process(rank, name, path, bytes);
        if (is_dump(path, since_ns))
            return true;
    }
    return false;
}

/* Nobody reads the pipe of a process that has none. */
static bool ask_dump(const struct live_rank *rank)
{
    const char *stem = live_variable(&rank->process, "TORCH_NCCL_DEBUG_INFO_PIPE_FILE");
    char name[PATH_MAX / 2], path[PATH_MAX];
    struct stat file;
    if (!stem || !*stem)
        return false;
    snprintf(name, sizeof name, "%s%d.pipe", stem, rank->rank);
    path_of_process(rank, name, path, sizeof path);
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool asked = !fstat(fd, &file) && S_ISFIFO(file.st_mode) && write(fd, "1\n", 2) == 2;
    close(fd);
    return asked;
}

static int count_dumps(const struct live_job *job, uint64_t since_ns)
{
    char path[PATH_MAX];
    int count = 0;
    for (int i = 0; i < job->ranks; i++)
        count += find_dump(&job->rank[i], since_ns, path, sizeof path);
    return count;
}

/* A rank that does not look at its pipe any more writes none. */
static void ask_dumps(const struct live_job *job)
{
    uint64_t now_ns = realtime_now_ns();
    int asked = 0;
    for (int i = 0; i < job->ranks; i++)
        asked += ask_dump(&job->rank[i]);
    for (int waited = 0; waited < DUMP_WAIT_MS && count_dumps(job, now_ns) < asked;
         waited += DUMP_SLICE_MS)
        nanosleep(&(struct timespec){.tv_nsec = DUMP_SLICE_MS * 1000000}, NULL);
}

static bool runs_torch(const struct live_job *job)
{
    for (int i = 0; i < job->ranks; i++)
        if (job->rank[i].process.python[0])
            return true;
    return false;
}

void attach_read_dumps(struct attach_sources *sources, const struct live_job *job)
{
    struct rankset ranks = {0};
    char path[PATH_MAX], text[RANKS_BYTES];
    ask_dumps(job);
    for (int i = 0; i < job->ranks; i++) {
        const struct live_rank *rank = &job->rank[i];
        uint64_t start_ns = live_start_ns(job, rank->process.pid);
        if (!find_dump(rank, start_ns, path, sizeof path) || rankset_add(&ranks, rank->rank))
            continue;
        attach_add_path(sources, path);
    }
    if (rankset_count(&ranks))
        text_add(&sources->read, "Flight Recorder dumps of %s\n",
                 rankset_words(&ranks, text, sizeof text));
    else if (runs_torch(job))
        text_add(&sources->absent,
                 "Flight Recorder dumps (none was written since the job began; a job that is "
                 "started with TORCH_FR_BUFFER_SIZE=2000 and "
                 "TORCH_NCCL_DEBUG_INFO_PIPE_FILE=/tmp/dump_ writes them when attach asks)\n");
    rankset_free(&ranks);
}
