/* directory.c: finds or makes the trace directory and the directory of its rings. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "interpose/ring/budget.h"
#include "interpose/ring/files.h"
#include "interpose/ring/process.h"
#include "interpose/shim/shim.h"
#include "interpose/shim/environment.h"
#include "lib/base/own_path.h"
#include "lib/trace/rings_directory.h"
#include "lib/trace/unrecorded_mark.h"

/* Used once, by the thread that starts the shim; the stack of that thread may be small. */
static struct {
    char part[PATH_MAX], real[PATH_MAX], rings_file[PATH_MAX + 8];
    char temporary[PATH_MAX], text[PATH_MAX], others[PATH_MAX];
    char mark[PATH_MAX + UNRECORDED_MARK_BYTES];
} paths;

/* Nobody else reads a trace, unless it is open to the user's group. */
static mode_t directory_mode(void)
{
    const char *group = environment_get("DDPCHECK_GROUP");
    return group && !strcmp(group, "1") ? 0750 : 0700;
}

/* mkdir -p. */
static int make_directories(const char *path)
{
    char *part = paths.part;
    size_t length = strlen(path);
    if (length >= sizeof paths.part)
        return ENAMETOOLONG;
    for (size_t i = 1; i <= length; i++) {
        if (path[i] != '/' && path[i] != 0)
            continue;
        memcpy(part, path, i);
        part[i] = 0;
        if (mkdir(part, directory_mode()) == 0)
            chmod(part, directory_mode()); /* whatever the umask */
        else if (errno != EEXIST && errno != EISDIR)
            return errno;
    }
    return 0;
}

/* What `rings` names, if that was made for this trace directory. */
static bool read_rings_file(const char *rings_file, const char *directory, char *rings,
                            uint32_t bytes)
{
    int length = file_read(rings_file, rings, bytes);
    if (length <= 0)
        return false;
    rings[strcspn(rings, "\n")] = 0;
    return rings_name_of(rings, directory) != NULL;
}

/* Makes the directory of the rings below one of the parents: the first that has room, or that can
 * be used at all. */
static bool create_below(const char *const *parents, size_t count, bool with_room, const char *name,
                         char *rings, uint32_t bytes)
{
    for (size_t i = 0; i < count; i++) {
        if (!parents[i] || parents[i][0] != '/' || (with_room && !budget_has_room(parents[i])))
            continue;
        int length = snprintf(rings, bytes, "%s/%s", parents[i], name);
        if (length > 0 && (uint32_t)length < bytes && rings_make(rings))
            return true;
    }
    return false;
}

static bool create_rings(const char *name, char *rings, uint32_t bytes)
{
    const char *parents[] = {"/dev/shm", environment_get("TMPDIR"), "/tmp"};
    size_t count = sizeof parents / sizeof *parents;
    return create_below(parents, count, true, name, rings, bytes) ||
           create_below(parents, count, false, name, rings, bytes);
}

/* A host's directory goes with its last process, and the name is made again by the next; hosts that
 * share the trace directory have one name, each in its own memory. Where somebody else has taken
 * the name there is a new one. */
static bool find_rings(const char *directory, const char *rings_file, char *rings, uint32_t bytes)
{
    char name[RINGS_NAME_BYTES];
    if (read_rings_file(rings_file, directory, rings, bytes)) {
        if (rings_is_private(rings))
            return true;
        snprintf(name, sizeof name, "%s", rings_name_of(rings, directory));
        if (create_rings(name, rings, bytes))
            return true;
    }
    return rings_name_make(name, directory) && create_rings(name, rings, bytes);
}

/* Another process was first. What was made here under another name is empty. */
static void take_others(char *rings)
{
    if (strcmp(rings, paths.others) != 0)
        rmdir(rings);
    strcpy(rings, paths.others);
}

/* Writes `rings` so that readers see all of it or nothing. The first process of a directory wins; a
 * name that can't be used any more is replaced. */
static int publish_rings(const char *directory, const char *rings_file, char *rings, uint32_t bytes)
{
    char *temporary = paths.temporary;
    int length =
        snprintf(temporary, sizeof paths.temporary, "%s/.rings-%d", directory, (int)getpid());
    if (length < 0 || (size_t)length >= sizeof paths.temporary)
        return ENAMETOOLONG;
    int text_bytes = snprintf(paths.text, sizeof paths.text, "%s\n", rings);
    /* What lies there under the name of a file of ours is left over, or a trap. */
    unlink(temporary);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return errno;
    fchmod(fd, directory_mode() & 0640);
    errno = ENOSPC; /* of a write that is cut short */
    int error = write(fd, paths.text, (size_t)text_bytes) == text_bytes ? 0 : errno;
    if (close(fd) && !error)
        error = errno;
    if (!error && link(temporary, rings_file)) {
        if (errno == EEXIST &&
            read_rings_file(rings_file, directory, paths.others, sizeof paths.others) &&
            rings_is_private(paths.others) && strlen(paths.others) < bytes)
            take_others(rings);
        else if (rename(temporary, rings_file))
            error = errno;
    }
    unlink(temporary);
    return error;
}

bool directory_mark_unrecorded(const char *directory, int error)
{
    char name[UNRECORDED_MARK_BYTES];
    unrecorded_mark_name(name, error, process_start_ticks());
    snprintf(paths.mark, sizeof paths.mark, "%s/%s", directory, name);
    int made = mkdir(paths.mark, 0700);
    if (made < 0 && errno == EEXIST)
        return true; /* the program that this process was before has said it */
    if (made == 0)
        chmod(paths.mark, 0700); /* whatever the umask: the collector removes it */
    if (error == EEXIST)
        problem_print(PROBLEM_DIRECTORY,
                      "process %d has become one program after the other, and %d of them are "
                      "recorded; nothing is recorded of those that follow",
                      (int)getpid(), RECORDED_PROGRAMS);
    if (error == EMFILE)
        problem_print(PROBLEM_DIRECTORY,
                      "too few file descriptors (ulimit -n): ddpcheck needs %d that are free in "
                      "each process; nothing is recorded of this one",
                      RECORDING_DESCRIPTORS);
    return error == EMFILE || error == EEXIST;
}

/* Another user who can replace what is in the trace directory could mix records into it, and read
 * them. Removes '/' at the end of the name: behind it a link would be followed. */
static bool is_own_directory(const char *wanted, const char *real)
{
    struct own_path own;
    char why[OWN_TEXT_BYTES];
    size_t length = strlen(wanted);
    while (length > 1 && wanted[length - 1] == '/')
        length--;
    memcpy(paths.part, wanted, length);
    paths.part[length] = 0;
    if (own_directory(paths.part, &own))
        return true;
    if (own.problem == OWN_FAILED && directory_mark_unrecorded(real, own.number))
        return false;
    own_explain(&own, why);
    problem_print(PROBLEM_DIRECTORY,
                  "can't use the trace directory %s: %s; nothing is recorded (set DDPCHECK_DIR)",
                  wanted, why);
    return false;
}

bool directory_find(char *path, uint32_t path_bytes, char *rings, uint32_t rings_bytes)
{
    const char *wanted = environment_get("DDPCHECK_DIR");
    if (!wanted || !*wanted)
        wanted = "ddpcheck-trace";
    char *real = paths.real, *rings_file = paths.rings_file;
    int error = make_directories(wanted);
    if (!error && !realpath(wanted, real))
        error = errno;
    if (!error && strlen(real) >= path_bytes)
        error = ENAMETOOLONG;
    if (error) {
        problem_print(
            PROBLEM_DIRECTORY,
            "can't use the trace directory %s: %s; nothing is recorded (set DDPCHECK_DIR)", wanted,
            strerror(error));
        return false;
    }
    if (!is_own_directory(wanted, real))
        return false;
    strcpy(path, real);
    snprintf(rings_file, sizeof paths.rings_file, "%s/rings", real);
    if (!find_rings(real, rings_file, rings, rings_bytes)) {
        if (directory_mark_unrecorded(real, ENOSPC))
            return false;
        problem_print(PROBLEM_DIRECTORY,
                      "no place for the rings: neither /dev/shm nor TMPDIR nor /tmp "
                      "lets this user make a directory; nothing is recorded (set TMPDIR to a "
                      "directory of your own)");
        return false;
    }
    if (read_rings_file(rings_file, real, paths.others, sizeof paths.others) &&
        !strcmp(paths.others, rings))
        return true;
    error = publish_rings(real, rings_file, rings, rings_bytes);
    if (error && !directory_mark_unrecorded(real, error))
        problem_print(
            PROBLEM_DIRECTORY,
            "can't write %s: %s; nothing is recorded (set DDPCHECK_DIR to a directory that "
            "this user can write)",
            rings_file, strerror(error));
    return !error;
}
