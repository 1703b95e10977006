/* liveness.c: finds out whether a process still runs and how it ended. */
#include "collector/liveness.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* linux/pidfd.h of 6.15; older headers lack it. */
struct exit_info {
    uint64_t mask, cgroup_id;
    uint32_t pid, tgid, ppid, uids_and_gids[8];
    int32_t exit_code;
};
enum { EXIT_INFO_MASK = 1 << 3 };
#define PIDFD_GET_EXIT_INFO _IOWR(0xFF, 11, struct exit_info)

struct stat_line {
    char state;
    uint64_t start_ticks;
    int exit_code;
};

/* Reads /proc/PID/stat; the name in its second field may hold anything. */
static bool read_stat(pid_t pid, struct stat_line *line)
{
    char path[32], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = 0;
    char *at = strrchr(text, ')');
    if (!at || sscanf(at + 1, " %c", &line->state) != 1)
        return false;
    *line = (struct stat_line){.state = line->state};
    int field = 2;
    for (char *save, *word = strtok_r(at + 1, " ", &save); word;
         word = strtok_r(NULL, " ", &save)) {
        field++;
        if (field == 22)
            sscanf(word, "%" SCNu64, &line->start_ticks);
        else if (field == 52)
            sscanf(word, "%d", &line->exit_code);
    }
    return field >= 22;
}

static int64_t read_oom_kills(const char *path)
{
    char line[128];
    int64_t kills = -1;
    FILE *file = path[0] ? fopen(path, "re") : NULL;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "oom_kill %" SCNd64, &kills) == 1)
            break;
    if (file)
        fclose(file);
    return kills;
}

/* cgroup v2: "0::/path"; v1: "N:memory:/path". */
static void find_memory_events(struct liveness *liveness)
{
    char path[32], line[PATH_MAX];
    snprintf(path, sizeof path, "/proc/%d/cgroup", (int)liveness->pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        char *group = strchr(line, ':');
        group = group ? strchr(group + 1, ':') : NULL;
        if (!group || strlen(group) > PATH_MAX - 64)
            continue;
        bool is_v2 = strncmp(line, "0::", 3) == 0;
        if (is_v2 || strstr(line, ":memory:"))
            snprintf(liveness->memory_events, sizeof liveness->memory_events,
                     is_v2 ? "/sys/fs/cgroup%.3900s/memory.events"
                           : "/sys/fs/cgroup/memory%.3900s/memory.oom_control",
                     group + 1);
        if (!is_v2 && liveness->memory_events[0])
            break;
    }
    if (file)
        fclose(file);
    liveness->oom_kills = read_oom_kills(liveness->memory_events);
}

static void set_end(struct liveness *liveness, int wait_status)
{
    bool signaled = WIFSIGNALED(wait_status);
    liveness->how = signaled ? END_SIGNAL : END_EXIT;
    liveness->value = signaled ? WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
    if (signaled && liveness->value == SIGKILL && liveness->oom_kills >= 0)
        liveness->oom = read_oom_kills(liveness->memory_events) > liveness->oom_kills;
}

/* A zombie shows its exit code in /proc; once its parent has taken it, the kernel keeps it with the
 * pidfd. Returns false where it may be between the two. */
static bool ask_how(struct liveness *liveness)
{
    struct stat_line line;
    struct exit_info info = {.mask = EXIT_INFO_MASK};
    if (read_stat(liveness->pid, &line) && line.start_ticks == liveness->start_ticks &&
        line.state == 'Z')
        set_end(liveness, line.exit_code);
    else if (liveness->pidfd < 0 ||
             (ioctl(liveness->pidfd, PIDFD_GET_EXIT_INFO, &info) && errno != ESRCH))
        return true; /* nothing to ask, or an older kernel */
    else if (info.mask & EXIT_INFO_MASK)
        set_end(liveness, info.exit_code);
    return liveness->how != END_UNKNOWN;
}

static void find_out_how(struct liveness *liveness)
{
    enum { TRIES = 20 };
    for (int i = 0; i < TRIES && !ask_how(liveness); i++)
        poll(NULL, 0, 1);
}

void liveness_watch(struct liveness *liveness, pid_t pid, uint64_t start_ticks)
{
    *liveness = (struct liveness){
        .pid = pid, .start_ticks = start_ticks, .pidfd = -1, .how = END_UNKNOWN, .oom_kills = -1};
    struct stat_line line;
    if (pid > 0)
        liveness->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    /* Read after the pidfd is open, so that both are of one process. */
    liveness->ended = pid <= 0 || !read_stat(pid, &line) || line.start_ticks != start_ticks;
    if (liveness->ended)
        liveness_close(liveness);
    else
        find_memory_events(liveness);
}

static bool is_process_gone(const struct liveness *liveness)
{
    struct stat_line line;
    if (liveness->pidfd >= 0)
        return poll(&(struct pollfd){.fd = liveness->pidfd, .events = POLLIN}, 1, 0) == 1;
    return !read_stat(liveness->pid, &line) || line.start_ticks != liveness->start_ticks ||
           line.state == 'Z';
}

bool liveness_ended(struct liveness *liveness)
{
    if (!liveness->ended)
        liveness->ended = is_process_gone(liveness);
    if (liveness->ended && liveness->how == END_UNKNOWN)
        find_out_how(liveness);
    return liveness->ended;
}

void liveness_close(struct liveness *liveness)
{
    if (liveness->pidfd >= 0)
        close(liveness->pidfd);
    liveness->pidfd = -1;
}
