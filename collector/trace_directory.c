/* trace_directory.c: names and finds the files of a trace directory. */
#include "collector/trace_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/trace/collector_lock.h"
#include "lib/trace/record.h"

/* Joins "DIR/name". Returns 0, or -1 with err. */
static int join_path(char path[PATH_MAX], const char *directory, const char *name,
                     struct error *err)
{
    if (snprintf(path, PATH_MAX, "%s/%s", directory, name) < PATH_MAX)
        return 0;
    return error_set(err, "the path %s/%s is too long", directory, name);
}

mode_t directory_mode(void)
{
    const char *group = getenv("DDPCHECK_GROUP");
    return group && !strcmp(group, "1") ? 0750 : 0700;
}

int directory_make(const char *path, char real[PATH_MAX], struct error *err)
{
    char part[PATH_MAX];
    if (!path[0] || snprintf(part, sizeof part, "%s", path) >= (int)sizeof part)
        return error_set(err, "can't use '%s' as trace directory: %s", path,
                         path[0] ? "too long" : "it is empty");
    for (char *at = part + 1;; at++) {
        if (*at && *at != '/')
            continue;
        char was = *at;
        *at = 0;
        if (mkdir(part, directory_mode()) == 0)
            chmod(part, directory_mode()); /* whatever the umask */
        else if (errno != EEXIST && errno != EISDIR)
            return error_set(err, "can't create the trace directory %s: %s; choose another with -o",
                             part, strerror(errno));
        *at = was;
        if (!was)
            break;
    }
    struct stat status;
    if (!realpath(path, real))
        return error_set(err, "can't use the trace directory %s: %s", path, strerror(errno));
    if (stat(real, &status) == 0 && !S_ISDIR(status.st_mode))
        return error_set(err, "can't use %s as trace directory: it is a file", path);
    if (access(real, W_OK | X_OK) < 0)
        return error_set(err,
                         "can't write into the trace directory %s: %s; run this as its owner, or "
                         "use another directory",
                         path, strerror(errno));
    return 0;
}

/* A directory that nobody else can have put there or write into. */
static bool is_private_directory(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
           (status.st_mode & 077) == 0;
}

bool directory_file_is_plain(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink <= 1;
}

/* Nothing, or a plain file that has no other name. Its owner says nothing: a file server may
 * replace root by another user. */
static bool is_only_here(const char *path)
{
    struct stat status;
    if (lstat(path, &status) < 0)
        return errno == ENOENT;
    return S_ISREG(status.st_mode) && status.st_nlink <= 1;
}

/* SQLite follows links, and writes what it finds at the end of them. */
static int check_database(const char *database, struct error *err)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    char path[PATH_MAX + 16];
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        snprintf(path, sizeof path, "%s%s", database, suffixes[i]);
        if (!is_only_here(path))
            return error_set(err,
                             "%s is a link, or no plain file: nothing is written into it; move it "
                             "away, or give another trace directory",
                             path);
    }
    return 0;
}

static bool read_line(const char *path, char *line, int bytes)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool read = fgets(line, bytes, file) != NULL;
    fclose(file);
    if (read)
        line[strcspn(line, "\n")] = 0;
    return read;
}

static bool make_rings_directory(const char *real, char rings[PATH_MAX])
{
    const char *const parents[] = {"/dev/shm", getenv("TMPDIR"), "/tmp"};
    for (size_t i = 0; i < sizeof parents / sizeof parents[0]; i++) {
        if (!parents[i] || parents[i][0] != '/')
            continue;
        int length = snprintf(rings, PATH_MAX, "%s/ddpcheck-%u-%016" PRIx64, parents[i],
                              (unsigned)geteuid(), string_id(real, strlen(real)));
        if (length < PATH_MAX && (mkdir(rings, 0700) == 0 || errno == EEXIST) &&
            is_private_directory(rings))
            return true;
    }
    return false;
}

/* Readers see all of the file or none of it. The first who writes it wins, unless what it names
 * can't be used. */
static int write_rings_file(const char *real, const char *file, char rings[PATH_MAX],
                            struct error *err)
{
    char temporary[PATH_MAX], name[32], others[PATH_MAX];
    snprintf(name, sizeof name, ".rings-%d", (int)getpid());
    if (join_path(temporary, real, name, err) < 0)
        return -1;
    /* What lies there under the name of a file of ours is left over, or a trap. */
    unlink(temporary);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    FILE *to = fd < 0 ? NULL : fdopen(fd, "w");
    if (!to) {
        error_set(err, "can't write %s: %s", temporary, strerror(errno));
        if (fd >= 0)
            close(fd);
        return -1;
    }
    fchmod(fd, directory_mode() & 0640);
    int failed = fprintf(to, "%s\n", rings) < 0;
    failed |= fclose(to) != 0;
    if (!failed && link(temporary, file) < 0) {
        if (errno == EEXIST && read_line(file, others, sizeof others) &&
            is_private_directory(others))
            memcpy(rings, others, sizeof others);
        else
            failed = rename(temporary, file) != 0;
    }
    int number = errno;
    unlink(temporary);
    return failed ? error_set(err, "can't write %s: %s", file, strerror(number)) : 0;
}

bool directory_read_rings(const char *real, char rings[PATH_MAX])
{
    char file[PATH_MAX];
    return join_path(file, real, "rings", NULL) == 0 && read_line(file, rings, PATH_MAX) &&
           rings[0] == '/' && is_private_directory(rings);
}

int directory_rings(const char *real, char rings[PATH_MAX], struct error *err)
{
    char file[PATH_MAX];
    if (join_path(file, real, "rings", err) < 0)
        return -1;
    if (read_line(file, rings, PATH_MAX) && rings[0] == '/' && is_private_directory(rings))
        return 0;
    if (!make_rings_directory(real, rings))
        return error_set(err,
                         "no place for the ring files of %s: neither /dev/shm nor TMPDIR nor /tmp "
                         "has, or lets this user make, "
                         "a private directory ddpcheck-%u-%016" PRIx64,
                         real, (unsigned)geteuid(), string_id(real, strlen(real)));
    return write_rings_file(real, file, rings, err);
}

/* What a holder writes into its lock. */
struct lock_text {
    int pid;
    char host[HOST_NAME_MAX + 1];
};

static struct lock_text read_lock(const char *path)
{
    struct lock_text text = {0, ""};
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%d %64s", &text.pid, text.host) < 1)
        text.pid = 0;
    if (file)
        fclose(file);
    return text;
}

/* Returns a file descriptor; -1 with err; -2 if another process holds the lock. */
static int take_lock(const char *path, const char *host, struct error *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return error_set(err, "can't open %s: %s", path, strerror(errno));
    if (!directory_file_is_plain(fd)) {
        close(fd);
        return error_set(err,
                         "%s is a link, or no plain file: nothing is written into it; move it "
                         "away, or give another trace directory",
                         path);
    }
    /* A shim that only looks whether someone holds the lock holds it for a moment itself. */
    for (int tries = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; tries++) {
        int number = errno;
        if (number != EWOULDBLOCK && number != EINTR)
            error_set(err, "can't lock %s: %s", path, strerror(number));
        else if (tries < 5) {
            nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
            continue;
        }
        close(fd);
        return number == EWOULDBLOCK || number == EINTR ? -2 : -1;
    }
    if (ftruncate(fd, 0) == 0)
        dprintf(fd, "%d\n%s\n", (int)getpid(), host); /* only a help */
    return fd;
}

static void find_host(char host[HOST_NAME_MAX + 1])
{
    strcpy(host, "localhost");
    gethostname(host, HOST_NAME_MAX);
    for (char *at = host; *at; at++)
        if (*at == '/')
            *at = '-';
}

int directory_claim(const char *real, struct directory_claim *claim, int *holder, struct error *err)
{
    char rings[PATH_MAX], name[HOST_NAME_MAX + 32], path[PATH_MAX], first[PATH_MAX];
    char host[HOST_NAME_MAX + 1];
    *claim = (struct directory_claim){.lock = -1, .first_lock = -1};
    find_host(host);
    if (directory_rings(real, rings, err) < 0)
        return -1;
    collector_lock_name(name, rings);
    if (join_path(path, real, name, err) < 0 || join_path(first, real, "collector.lock", err) < 0)
        return -1;
    claim->lock = take_lock(path, host, err);
    if (claim->lock < 0) {
        *holder = claim->lock == -2 ? read_lock(path).pid : 0;
        return claim->lock;
    }
    claim->first_lock = take_lock(first, host, err);
    bool is_host_taken = claim->first_lock == -2 && !strcmp(read_lock(first).host, host);
    if (is_host_taken)
        snprintf(name, sizeof name, "%s-%08x.db", host, rings_key(rings));
    else
        snprintf(name, sizeof name, "%s.db", host);
    if (claim->first_lock != -1 && join_path(claim->database, real, name, err) == 0 &&
        check_database(claim->database, err) == 0)
        return 0;
    directory_release(claim);
    return -1;
}

void directory_release(struct directory_claim *claim)
{
    if (claim->first_lock >= 0)
        close(claim->first_lock);
    if (claim->lock >= 0)
        close(claim->lock);
    claim->lock = claim->first_lock = -1;
}

int directory_move_database(const char *real, const char *database, const char *started,
                            struct error *err)
{
    char old[PATH_MAX], to[PATH_MAX], name[PATH_MAX], log[PATH_MAX];
    if (join_path(old, real, "old", err) < 0)
        return -1;
    if (mkdir(old, directory_mode()) < 0 && errno != EEXIST)
        return error_set(err, "can't create %s for the database of the job before: %s", old,
                         strerror(errno));
    struct stat status;
    if (lstat(old, &status) < 0 || !S_ISDIR(status.st_mode))
        return error_set(err,
                         "%s is a link, or no directory: the database of the job before is not "
                         "moved there; move it away",
                         old);
    const char *slash = strrchr(database, '/');
    int length = (int)strlen(slash + 1) - 3; /* without ".db" */
    for (int i = 1; i < 1000; i++) {
        char again[16] = "";
        if (i > 1)
            snprintf(again, sizeof again, "-%d", i);
        snprintf(name, sizeof name, "%.*s-%s%s.db", length, slash + 1, started, again);
        if (join_path(to, old, name, err) < 0)
            return -1;
        if (access(to, F_OK) == 0)
            continue;
        if (rename(database, to) < 0)
            return error_set(err, "can't move %s to %s: %s", database, to, strerror(errno));
        /* A reader may have kept SQLite from taking the log into the file. */
        snprintf(log, sizeof log, "%s-wal", database);
        if (strlen(to) + 4 < sizeof to && access(log, F_OK) == 0 &&
            rename(log, strcat(to, "-wal")) < 0)
            return error_set(err, "can't move %s to %s: %s", log, to, strerror(errno));
        snprintf(log, sizeof log, "%s-shm", database);
        unlink(log);
        return 0;
    }
    return error_set(err, "can't move %s away: %s is full of databases of the same second",
                     database, old);
}
