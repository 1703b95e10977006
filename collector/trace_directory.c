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

#include "lib/trace/record.h"

/* Joins "DIR/name". Returns 0, or -1 with err. */
static int join_path(char path[PATH_MAX], const char *directory, const char *name,
                     struct error *err)
{
    if (snprintf(path, PATH_MAX, "%s/%s", directory, name) < PATH_MAX)
        return 0;
    return error_set(err, "the path %s/%s is too long", directory, name);
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
        if (mkdir(part, 0777) < 0 && errno != EEXIST && errno != EISDIR)
            return error_set(err, "can't make the trace directory %s: %s", part, strerror(errno));
        *at = was;
        if (!was)
            break;
    }
    if (!realpath(path, real))
        return error_set(err, "can't use the trace directory %s: %s", path, strerror(errno));
    if (access(real, W_OK | X_OK) < 0)
        return error_set(err, "can't write into the trace directory %s: %s", path, strerror(errno));
    return 0;
}

/* A directory that nobody else can have put there or write into. */
static bool is_private_directory(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
           (status.st_mode & 077) == 0;
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
    FILE *to = fopen(temporary, "we");
    if (!to)
        return error_set(err, "can't write %s: %s", temporary, strerror(errno));
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

int directory_lock(const char *real, int *holder, struct error *err)
{
    char path[PATH_MAX], line[32] = "";
    if (join_path(path, real, "collector.lock", err) < 0)
        return -1;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return error_set(err, "can't open %s: %s", path, strerror(errno));
    /* A shim that only looks whether someone holds the lock holds it for a moment itself. */
    for (int tries = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; tries++) {
        if (errno != EWOULDBLOCK && errno != EINTR) {
            int number = errno;
            close(fd);
            return error_set(err, "can't lock %s: %s", path, strerror(number));
        }
        if (tries == 5) {
            *holder = read_line(path, line, sizeof line) ? atoi(line) : 0;
            close(fd);
            return -2;
        }
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    int length = snprintf(line, sizeof line, "%d\n", (int)getpid());
    if (ftruncate(fd, 0) == 0 && pwrite(fd, line, (size_t)length, 0) < 0)
        error_set(err, "can't write %s: %s", path, strerror(errno)); /* the pid is only a help */
    return fd;
}

int directory_database(const char *real, char database[PATH_MAX], struct error *err)
{
    char host[256] = "localhost", name[264];
    gethostname(host, sizeof host - 1);
    for (char *at = host; *at; at++)
        if (*at == '/')
            *at = '-';
    snprintf(name, sizeof name, "%s.db", host);
    return join_path(database, real, name, err);
}

int directory_move_database(const char *real, const char *database, const char *started,
                            struct error *err)
{
    char old[PATH_MAX], to[PATH_MAX], name[PATH_MAX], log[PATH_MAX];
    if (join_path(old, real, "old", err) < 0)
        return -1;
    if (mkdir(old, 0777) < 0 && errno != EEXIST)
        return error_set(err, "can't make %s for the database of the job before: %s", old,
                         strerror(errno));
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
