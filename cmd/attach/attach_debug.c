/* attach_debug.c: the pages of PyTorch's debug server (torch.distributed.debug of 2.11 and later)
 * with the Flight Recorder of all ranks. Rank 0 runs it where the program has asked for it. */
#include "cmd/attach/attach_sources.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/array.h"

/* Its usual port (start_debug_server), on the host of rank 0; it asks all ranks for a page. */
enum { DEBUG_PORT = 25999, ANSWER_S = 15, PAGE_MAX = 64 << 20, READ_BYTES = 1 << 16 };

static const char *const debug_pages[] = {"/fr_trace", "/fr_trace_nccl"};

/* --- whether it is the job's --- */

/* The socket that listens on the port, of /proc/net/tcp or tcp6; 0: there is none. */
static unsigned long find_listener(const char *table)
{
    enum { LISTENS = 0x0a }; /* the kernel's TCP_LISTEN */
    FILE *file = fopen(table, "re");
    char line[256];
    unsigned long inode = 0, found = 0;
    unsigned port, state;
    while (file && !found && fgets(line, sizeof line, file))
        if (sscanf(line, "%*d: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x %*x:%*x %*x:%*x %*x %*u %*u %lu",
                   &port, &state, &inode) == 3 &&
            port == DEBUG_PORT && state == LISTENS)
            found = inode;
    if (file)
        fclose(file);
    return found;
}

static bool holds_socket(int pid, unsigned long inode)
{
    char path[64], wanted[64], target[64];
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    snprintf(wanted, sizeof wanted, "socket:[%lu]", inode);
    DIR *folder = opendir(path);
    bool holds = false;
    for (struct dirent *entry; folder && !holds && (entry = readdir(folder));) {
        ssize_t bytes = readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1);
        target[bytes > 0 ? bytes : 0] = '\0';
        holds = !strcmp(target, wanted);
    }
    if (folder)
        closedir(folder);
    return holds;
}

/* A rank, or a process that it has started, listens there: not another job's. */
static bool is_server_of_job(const struct live_job *job)
{
    unsigned long inode = find_listener("/proc/net/tcp");
    if (!inode)
        inode = find_listener("/proc/net/tcp6");
    for (int i = 0; inode && i < job->found_count; i++)
        for (int k = 0; k < job->ranks; k++)
            if (!job->rank[k].is_gone &&
                live_is_below(job->found, job->found_count, job->found[i].pid,
                              job->rank[k].process.pid) &&
                holds_socket(job->found[i].pid, inode))
                return true;
    return false;
}

/* --- its pages --- */

/* Returns the socket, or -1 with errno. */
static int connect_debug(void)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons(DEBUG_PORT),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval limit = {.tv_sec = ANSWER_S};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (!connect(fd, (const struct sockaddr *)&address, sizeof address))
        return fd;
    int failed = errno;
    close(fd);
    errno = failed;
    return -1;
}

/* All that comes, NUL-terminated, which the caller frees; NULL: nothing, or too much. */
static char *read_answer(int fd)
{
    char *text = NULL;
    size_t bytes = 0, capacity = 0;
    ssize_t got = 1;
    while (got > 0 && bytes < PAGE_MAX && ARRAY_RESERVE(text, capacity, bytes + READ_BYTES + 1)) {
        got = recv(fd, text + bytes, READ_BYTES, 0);
        bytes += got > 0 ? (size_t)got : 0;
    }
    if (got != 0 || !bytes) {
        free(text);
        return NULL;
    }
    text[bytes] = '\0';
    return text;
}

/* The page of a server that answers as PyTorch's does. */
static bool fetch_page(struct attach_sources *sources, int fd, const char *page)
{
    char request[128];
    snprintf(request, sizeof request, "GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n", page);
    char *answer = send(fd, request, strlen(request), MSG_NOSIGNAL) > 0 ? read_answer(fd) : NULL;
    const char *body = answer && !strncmp(answer, "HTTP/", 5) && strstr(answer, " 200 ")
                           ? strstr(answer, "\r\n\r\n")
                           : NULL;
    FILE *file = body ? attach_open_own(sources, "debug.html") : NULL;
    if (file) {
        fputs(body, file);
        fclose(file);
    }
    free(answer);
    return file;
}

void attach_read_debug(struct attach_sources *sources, const struct live_job *job)
{
    int pages = 0, fd = is_server_of_job(job) ? 0 : -1;
    for (size_t i = 0; i < sizeof debug_pages / sizeof *debug_pages && fd >= 0; i++) {
        fd = connect_debug();
        if (fd < 0)
            break;
        pages += fetch_page(sources, fd, debug_pages[i]);
        close(fd);
    }
    if (pages)
        text_add(&sources->read, "PyTorch's debug server at localhost:%d\n", DEBUG_PORT);
}
