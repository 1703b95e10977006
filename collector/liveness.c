/* liveness.c: finds out whether a process still runs and how it ended. */
#include "collector/liveness.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/cgroup.h"
#include "lib/base/descriptors.h"
#include "lib/base/process_file.h"
#include "lib/trace/ring_reader.h"

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

/* That the collector keeps free for its own files. */
enum { SPARED_DESCRIPTORS = 10 };

enum seen { SEEN_GONE, SEEN_THERE, SEEN_UNKNOWN };

/* Without /proc, or without a descriptor to open it with, only a signal that is none says whether
 * there is such a process. */
static enum seen read_stat(pid_t pid, struct stat_line *line)
{
    char text[1024], *at = process_stat_read(pid, text, sizeof text);
    if (!at || sscanf(at + 1, " %c", &line->state) != 1)
        return kill(pid, 0) < 0 && errno == ESRCH ? SEEN_GONE : SEEN_UNKNOWN;
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
    return field >= 22 ? SEEN_THERE : SEEN_UNKNOWN;
}

/* The process that liveness->pid names: whether it is the one that began at start_ticks (0: any).
 */
static enum seen see_process(const struct liveness *liveness, struct stat_line *line)
{
    enum seen seen = read_stat(liveness->pid, line);
    if (seen == SEEN_THERE && liveness->start_ticks && line->start_ticks != liveness->start_ticks)
        return SEEN_GONE;
    return seen;
}

static const struct cgroup_file memory_events = {"memory", "memory.oom_control", "memory.events"};

static int64_t read_oom_kills(const struct liveness *liveness)
{
    return cgroup_read(liveness->memory_events, "oom_kill");
}

void liveness_set_end(struct liveness *liveness, int wait_status)
{
    bool signaled = WIFSIGNALED(wait_status);
    liveness->how = signaled ? END_SIGNAL : END_EXIT;
    liveness->value = signaled ? WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
    if (signaled && liveness->value == SIGKILL && liveness->oom_kills >= 0)
        liveness->oom = read_oom_kills(liveness) > liveness->oom_kills;
}

/* A zombie shows its exit code in /proc; once its parent has taken it, the kernel keeps it with the
 * pidfd. Returns false where it may be between the two. */
static bool ask_how(struct liveness *liveness)
{
    struct stat_line line;
    struct exit_info info = {.mask = EXIT_INFO_MASK};
    if (liveness->pid && see_process(liveness, &line) == SEEN_THERE && line.state == 'Z')
        liveness_set_end(liveness, line.exit_code);
    else if (liveness->pidfd < 0 ||
             (ioctl(liveness->pidfd, PIDFD_GET_EXIT_INFO, &info) && errno != ESRCH))
        return true; /* nothing to ask, or an older kernel */
    else if (info.mask & EXIT_INFO_MASK)
        liveness_set_end(liveness, info.exit_code);
    return liveness->how != END_UNKNOWN;
}

static void find_out_how(struct liveness *liveness)
{
    enum { TRIES = 20 };
    for (int i = 0; i < TRIES && !ask_how(liveness); i++)
        poll(NULL, 0, 1);
}

static uint64_t own_pid_namespace(void)
{
    struct stat status;
    return stat("/proc/self/ns/pid", &status) == 0 ? (uint64_t)status.st_ino : 0;
}

enum { HOLDER_UNSEEN = 0, HOLDER_NONE = -1 };

/* The pid of the process that holds the lock of a ring file (ring.h), or a HOLDER_. */
static pid_t find_lock_holder(int descriptor)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    if (fcntl(descriptor, F_GETLK, &lock) < 0)
        return HOLDER_UNSEEN;
    if (lock.l_type == F_UNLCK)
        return HOLDER_NONE;
    return lock.l_pid > 0 ? lock.l_pid : HOLDER_UNSEEN;
}

/* The kernel grants a write lease only where nobody else has the file open, by a descriptor or a
 * mapping. */
bool liveness_file_in_use(int descriptor)
{
    if (fcntl(descriptor, F_SETLEASE, F_WRLCK) < 0)
        return true;
    fcntl(descriptor, F_SETLEASE, F_UNLCK);
    return false;
}

static bool is_file_abandoned(struct ring_reader *reader)
{
    if (!reader)
        return true;
    int descriptor = ring_reader_descriptor(reader);
    return find_lock_holder(descriptor) == HOLDER_NONE && !liveness_file_in_use(descriptor);
}

static void watch_pid(struct liveness *liveness, pid_t pid, uint64_t start_ticks)
{
    struct stat_line line = {0};
    liveness->pid = pid;
    liveness->start_ticks = start_ticks;
    liveness->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    /* Read after the pidfd is open, so that both are of one process. */
    enum seen seen = see_process(liveness, &line);
    if (seen == SEEN_THERE)
        liveness->start_ticks = line.start_ticks;
    liveness->ended = seen == SEEN_GONE;
    /* With few descriptors the process is looked for by its number. */
    if (liveness->ended || descriptors_are_few(SPARED_DESCRIPTORS))
        liveness_close(liveness);
    if (liveness->ended)
        return;
    cgroup_find(pid, &memory_events, liveness->memory_events, sizeof liveness->memory_events);
    liveness->oom_kills = read_oom_kills(liveness);
}

void liveness_watch(struct liveness *liveness, struct ring_reader *reader)
{
    const struct process_info *info = ring_reader_process(reader);
    uint64_t theirs = ring_reader_pid_namespace(reader), ours = own_pid_namespace();
    bool is_our_namespace = !theirs || !ours || theirs == ours;
    pid_t holder = ring_reader_locked(reader) ? find_lock_holder(ring_reader_descriptor(reader))
                                              : HOLDER_NONE;
    *liveness =
        (struct liveness){.pidfd = -1, .reader = reader, .how = END_UNKNOWN, .oom_kills = -1};
    if (holder > 0)
        watch_pid(liveness, holder, is_our_namespace ? info->start_ticks : 0);
    else if (holder == HOLDER_NONE && is_our_namespace && info->pid > 0)
        watch_pid(liveness, info->pid, info->start_ticks);
    else
        liveness->ended = info->pid <= 0 || is_file_abandoned(reader);
    if (liveness->pid)
        ring_reader_release_descriptor(reader);
}

/* What can't be found out is not taken for an end. */
static bool is_process_gone(const struct liveness *liveness)
{
    struct stat_line line;
    if (liveness->pidfd >= 0)
        return poll(&(struct pollfd){.fd = liveness->pidfd, .events = POLLIN}, 1, 0) == 1;
    if (!liveness->pid)
        return is_file_abandoned(liveness->reader);
    enum seen seen = see_process(liveness, &line);
    return seen == SEEN_GONE || (seen == SEEN_THERE && line.state == 'Z');
}

bool liveness_ended(struct liveness *liveness)
{
    if (!liveness->ended)
        liveness->ended = is_process_gone(liveness);
    if (liveness->ended && liveness->how == END_UNKNOWN)
        find_out_how(liveness);
    return liveness->ended;
}

bool liveness_is_stopped(const struct liveness *liveness)
{
    struct stat_line line;
    return !liveness->ended && liveness->pid && see_process(liveness, &line) == SEEN_THERE &&
           (line.state == 'T' || line.state == 't');
}

void liveness_close(struct liveness *liveness)
{
    if (liveness->pidfd >= 0)
        close(liveness->pidfd);
    liveness->pidfd = -1;
}
