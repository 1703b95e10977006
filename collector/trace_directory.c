/* trace_directory.c: names and finds the files of a trace directory. */
#include "collector/trace_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/own_path.h"
#include "lib/base/plain_file.h"
#include "lib/trace/collector_lock.h"
#include "lib/trace/ring.h"
#include "lib/trace/rings_directory.h"

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

/* Nobody else may replace what is written there. */
static int check_own_directory(const char *path, struct error *err)
{
    struct own_path own;
    char why[OWN_TEXT_BYTES];
    if (own_directory(path, &own))
        return 0;
    own_explain(&own, why);
    return error_set(err, "can't use the trace directory %s: %s; choose another with -o", path,
                     why);
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
    for (size_t end = strlen(part); end > 1 && part[end - 1] == '/';)
        part[--end] = 0; /* behind which a link would be followed */
    struct stat status;
    if (!realpath(path, real))
        return error_set(err, "can't use the trace directory %s: %s", path, strerror(errno));
    if (stat(real, &status) == 0 && !S_ISDIR(status.st_mode))
        return error_set(err, "can't use %s as trace directory: it is a file", path);
    if (check_own_directory(part, err) < 0)
        return -1;
    if (access(real, W_OK | X_OK) < 0)
        return error_set(err,
                         "can't write into the trace directory %s: %s; run this as its owner, or "
                         "use another directory",
                         path, strerror(errno));
    return 0;
}

static int refuse_trace_file(const char *directory, const char *name, const struct own_path *own,
                             struct error *err)
{
    char why[OWN_TEXT_BYTES];
    own_explain(own, why);
    return error_set(err,
                     "nothing is written into %s/%s: %s; move it away, or give another trace "
                     "directory",
                     directory, name, why);
}

int directory_check_file(int fd, const char *directory, const char *name, struct error *err)
{
    struct own_path own;
    return own_file(fd, directory, &own) ? 0 : refuse_trace_file(directory, name, &own, err);
}

/* SQLite follows links, and writes what it finds at the end of them. */
static int check_database(const char *directory, const char *database, struct error *err)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    char name[NAME_MAX + 1];
    struct own_path own;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        snprintf(name, sizeof name, "%s%s", database, suffixes[i]);
        if (!own_file_named(directory, name, &own))
            return refuse_trace_file(directory, name, &own, err);
    }
    return 0;
}

static bool read_line(const char *path, char *line, int bytes)
{
    FILE *file = plain_file_text(path);
    if (!file)
        return false;
    bool read = fgets(line, bytes, file) != NULL;
    fclose(file);
    if (read)
        line[strcspn(line, "\n")] = 0;
    return read;
}

/* What DIR/rings names, if that was made for this trace directory. */
static bool read_rings_name(const char *real, const char *file, char rings[PATH_MAX])
{
    return read_line(file, rings, PATH_MAX) && rings_name_of(rings, real);
}

static bool make_rings_directory(const char *name, char rings[PATH_MAX])
{
    const char *const parents[] = {"/dev/shm", getenv("TMPDIR"), "/tmp"};
    for (size_t i = 0; i < sizeof parents / sizeof parents[0]; i++)
        if (parents[i] && parents[i][0] == '/' &&
            snprintf(rings, PATH_MAX, "%s/%s", parents[i], name) < PATH_MAX && rings_make(rings))
            return true;
    return false;
}

/* As the shim does it (interpose/ring/directory.c). */
static bool find_rings_directory(const char *real, const char *file, char rings[PATH_MAX])
{
    char name[RINGS_NAME_BYTES];
    if (read_rings_name(real, file, rings)) {
        if (rings_make(rings))
            return true;
        snprintf(name, sizeof name, "%s", rings_name_of(rings, real));
        if (make_rings_directory(name, rings))
            return true;
    }
    return rings_name_make(name, real) && make_rings_directory(name, rings);
}

/* Readers see the whole file or no file. The first writer wins, unless what it names
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
        if (errno == EEXIST && read_rings_name(real, file, others) && rings_is_private(others)) {
            if (strcmp(rings, others) != 0)
                rmdir(rings); /* made here under another name */
            memcpy(rings, others, sizeof others);
        } else
            failed = rename(temporary, file) != 0;
    }
    int number = errno;
    unlink(temporary);
    return failed ? error_set(err, "can't write %s: %s", file, strerror(number)) : 0;
}

bool directory_read_rings(const char *real, char rings[PATH_MAX])
{
    char file[PATH_MAX];
    return join_path(file, real, "rings", NULL) == 0 && read_rings_name(real, file, rings) &&
           rings_is_private(rings);
}

int directory_rings(const char *real, char rings[PATH_MAX], struct error *err)
{
    char file[PATH_MAX], named[PATH_MAX];
    if (join_path(file, real, "rings", err) < 0)
        return -1;
    if (!find_rings_directory(real, file, rings))
        return error_set(err,
                         "no place for the ring files of %s: neither /dev/shm nor TMPDIR nor /tmp "
                         "lets this user make a private directory; set TMPDIR to a directory of "
                         "your own",
                         real);
    if (read_rings_name(real, file, named) && !strcmp(named, rings))
        return 0;
    return write_rings_file(real, file, rings, err);
}

/* What a holder writes into its lock. */
struct lock_text {
    int pid;
    char host[HOST_NAME_MAX + 1];
    uint64_t sender; /* of all collectors that have had the lock; 0: it has none */
};

static struct lock_text read_lock(const char *path)
{
    struct lock_text text = {0, "", 0};
    FILE *file = plain_file_text(path);
    if (file && fscanf(file, "%d %64s %" SCNx64, &text.pid, text.host, &text.sender) < 1)
        text.pid = 0;
    if (file)
        fclose(file);
    return text;
}

/* Returns a file descriptor; -1 with err; -2 if another process holds the lock. `sender`: the
 * random number in it, which is written if there is none. */
static int take_lock(const char *directory, const char *name, const char *host, uint64_t *sender,
                     struct error *err)
{
    char path[PATH_MAX];
    if (join_path(path, directory, name, err) < 0)
        return -1;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return error_set(err, "can't open %s: %s", path, strerror(errno));
    if (directory_check_file(fd, directory, name, err) < 0) {
        close(fd);
        return -1;
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
    *sender = read_lock(path).sender;
    if (!*sender && getrandom(sender, sizeof *sender, 0) < 0)
        *sender = 0;
    if (ftruncate(fd, 0) == 0)
        dprintf(fd, "%d\n%s\n%016" PRIx64 "\n", (int)getpid(), host, *sender);
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
    uint64_t unused;
    *claim = (struct directory_claim){.lock = -1, .first_lock = -1};
    find_host(host);
    if (directory_rings(real, rings, err) < 0)
        return -1;
    collector_lock_name(name, rings);
    if (join_path(path, real, name, err) < 0 || join_path(first, real, "collector.lock", err) < 0)
        return -1;
    claim->lock = take_lock(real, name, host, &claim->sender, err);
    if (claim->lock < 0) {
        *holder = claim->lock == -2 ? read_lock(path).pid : 0;
        return claim->lock;
    }
    claim->first_lock = take_lock(real, "collector.lock", host, &unused, err);
    bool is_host_taken = claim->first_lock == -2 && !strcmp(read_lock(first).host, host);
    if (is_host_taken)
        snprintf(name, sizeof name, "%s-%08x.db", host, rings_key(rings));
    else
        snprintf(name, sizeof name, "%s.db", host);
    if (claim->first_lock != -1 && join_path(claim->database, real, name, err) == 0 &&
        check_database(real, name, err) == 0)
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

void directory_remove_rings(const char *rings)
{
    char guard[PATH_MAX + sizeof RING_GUARD];
    if (!*rings)
        return;
    snprintf(guard, sizeof guard, "%s/" RING_GUARD, rings);
    unlink(guard);
    if (rmdir(rings) < 0 && errno != ENOTEMPTY && errno != EEXIST && errno != ENOENT)
        fprintf(stderr, "ddpcheck: can't remove %s: %s\n", rings, strerror(errno));
}
