/* candidates.c: finds the processes of the job in /proc, and where they are. */
#include "collector/candidates.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/process_file.h"
#include "lib/live/live.h"

/* The launchers' variables of a rank and of how many there are, the most trusted first. */
static const struct {
    const char *rank, *world_size;
} variables[] = {{"DDPCHECK_RANK", "DDPCHECK_WORLD_SIZE"},
                 {"RANK", "WORLD_SIZE"},
                 {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                 {"PMI_RANK", "PMI_SIZE"},
                 {"SLURM_PROCID", "SLURM_NTASKS"}};

/* The value of a variable; NULL if there is none. */
static const char *variable_of(const char *environment, size_t bytes, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = environment; at < environment + bytes; at += strlen(at) + 1)
        if (!strncmp(at, name, length) && at[length] == '=')
            return at + length + 1;
    return NULL;
}

static int variable_in(const char *environment, size_t bytes, const char *name)
{
    const char *value = variable_of(environment, bytes, name);
    return value ? atoi(value) : -1;
}

static enum rank_sign sign_of_file(const char *name)
{
    static const struct {
        const char *begin;
        enum rank_sign sign;
    } files[] = {{"libnccl", HAS_LIBRARY},
                 {"libcuda", HAS_LIBRARY}, /* and libcudart */
                 {"libtorch", HAS_LIBRARY},
                 {"libpython", RUNS_PYTHON},
                 {"python", RUNS_PYTHON}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (!strncmp(name, files[i].begin, strlen(files[i].begin)))
            return files[i].sign;
    return NO_SIGN;
}

enum rank_sign candidate_sign(struct candidate *candidate)
{
    char path[64], *line = NULL;
    size_t room = 0;
    if (candidate->sign != SIGN_UNREAD)
        return candidate->sign;
    candidate->sign = NO_SIGN;
    snprintf(path, sizeof path, "/proc/%d/maps", candidate->pid);
    FILE *maps = fopen(path, "re");
    while (maps && candidate->sign < HAS_LIBRARY && getline(&line, &room, maps) > 0) {
        const char *name = strrchr(line, '/');
        enum rank_sign sign = name ? sign_of_file(name + 1) : NO_SIGN;
        candidate->sign = sign > candidate->sign ? sign : candidate->sign;
    }
    free(line);
    if (maps)
        fclose(maps);
    return candidate->sign;
}

static void add_candidate(struct candidates *candidates, int pid, const char *directory)
{
    char stat[512], *environment = candidates->environment;
    struct candidate candidate = {.pid = pid, .rank = -1, .world_size = -1};
    size_t bytes = process_file_read(pid, "environ", environment, sizeof candidates->environment);
    const char *trace = variable_of(environment, bytes, "DDPCHECK_DIR");
    if (!trace || strcmp(trace, directory) || candidates->count == CANDIDATES_MAX)
        return;
    for (size_t i = 0; i < sizeof variables / sizeof *variables && candidate.rank < 0; i++) {
        candidate.rank = variable_in(environment, bytes, variables[i].rank);
        candidate.world_size = variable_in(environment, bytes, variables[i].world_size);
        candidate.variable = (int)i;
    }
    const char *end = process_stat_read(pid, stat, sizeof stat);
    char state;
    if (!end || sscanf(end + 1, " %c %d", &state, &candidate.parent) != 2 || state == 'Z')
        return;
    candidates->item[candidates->count++] = candidate;
}

/* What started ranks that another launcher numbers is none. */
static void unmark_launchers(struct candidates *candidates)
{
    for (int i = 0; i < candidates->count; i++) {
        const struct candidate *rank = &candidates->item[i];
        struct candidate *above = rank->rank >= 0 ? candidate_with(candidates, rank->parent) : NULL;
        for (int depth = 0; above && depth < CANDIDATES_MAX; depth++) {
            if (above->rank >= 0 && above->variable > rank->variable)
                above->rank = above->world_size = -1;
            above = candidate_with(candidates, above->parent);
        }
    }
}

void candidates_find(struct candidates *candidates, const char *directory)
{
    DIR *processes = opendir("/proc");
    candidates->count = 0;
    for (struct dirent *entry; processes && (entry = readdir(processes));) {
        int pid = atoi(entry->d_name);
        if (pid > 0 && pid != getpid())
            add_candidate(candidates, pid, directory);
    }
    if (processes)
        closedir(processes);
    unmark_launchers(candidates);
}

void candidates_mark_launchers(struct candidates *candidates)
{
    for (int i = 0; i < candidates->count; i++) {
        struct candidate *above = &candidates->item[i];
        if (!above->is_recorded)
            continue;
        for (int depth = 0; above && depth < CANDIDATES_MAX; depth++) {
            above = candidate_with(candidates, above->parent);
            if (above)
                above->is_launcher = !above->is_recorded;
        }
    }
}

struct candidate *candidate_with(struct candidates *candidates, int pid)
{
    for (int i = 0; i < candidates->count; i++)
        if (candidates->item[i].pid == pid)
            return &candidates->item[i];
    return NULL;
}

const struct candidate *candidate_of(struct candidates *candidates, int rank)
{
    struct candidate *best = NULL;
    for (int i = 0; i < candidates->count; i++) {
        struct candidate *candidate = &candidates->item[i];
        if (candidate->rank != rank || candidate_sign(candidate) == NO_SIGN)
            continue;
        struct candidate *parent = candidate_with(candidates, candidate->parent);
        bool is_child = parent && parent->rank == rank && candidate_sign(parent) >= candidate->sign;
        if (!is_child && (!best || candidate->sign > best->sign))
            best = candidate;
    }
    return best;
}

static bool is_of_library(const char *file)
{
    return strstr(file, "/site-packages/") || strstr(file, "/dist-packages/") ||
           strstr(file, "/lib/python") || *file == '<';
}

/* Part of a library's interface: neither private nor a decorator's. */
static bool is_public(const struct frame *frame)
{
    const char *function = frame->function;
    return *frame->file && *function != '_' && !strstr(function, "._") && *function != '<' &&
           !strstr(function, "<locals>") && strcmp(function, "wrapper") != 0;
}

/* A command of a package, as torchrun: it says nothing of the program. */
static bool is_entry_point(const struct frame *frame)
{
    size_t length = strlen(frame->file);
    return strcmp(frame->function, "<module>") == 0 &&
           (length < 3 || strcmp(frame->file + length - 3, ".py") != 0);
}

/* "load() at train.py:12, in barrier()": the library's function that the program's line calls. Of a
 * package's command the innermost function instead: "next_rendezvous() of torchrun". */
static void describe_frames(const struct frame *frame, int user, char *place)
{
    const char *slash = strrchr(frame[user].file, '/');
    const char *file = slash ? slash + 1 : frame[user].file;
    bool is_command = is_entry_point(&frame[user]);
    int called = is_command ? 0 : user - 1;
    int step = is_command ? 1 : -1;
    while (called >= 0 && called < user && !is_public(&frame[called]))
        called += step;
    bool calls = called >= 0 && called < user;
    if (calls && is_command)
        snprintf(place, CANDIDATE_PLACE_BYTES, "%.100s() of %.100s", frame[called].function, file);
    else
        snprintf(place, CANDIDATE_PLACE_BYTES, "%.100s() at %.100s:%d%s%.80s%s",
                 frame[user].function, file, frame[user].line, calls ? ", in " : "",
                 calls ? frame[called].function : "", calls ? "()" : "");
}

const char *candidate_place(int pid, char *place)
{
    struct live_process process;
    struct error err;
    snprintf(place, CANDIDATE_PLACE_BYTES, "a place that can't be read");
    if (live_read(&process, pid, NULL, &err) < 0)
        return place;
    const struct live_thread *thread = process.thread;
    if (process.threads && thread->state == 'T')
        snprintf(place, CANDIDATE_PLACE_BYTES, "no code: it is stopped");
    else if (process.threads)
        snprintf(place, CANDIDATE_PLACE_BYTES, "%s",
                 thread->state == 'R' ? "its own code" : "a system call");
    for (int i = 0; process.threads && i < thread->frames; i++) {
        const char *file = thread->frame[i].file;
        if (!*file || is_of_library(file))
            continue;
        describe_frames(thread->frame, i, place);
        break;
    }
    live_free(&process);
    return place;
}
