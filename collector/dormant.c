/* dormant.c: finds processes of the job in /proc whose shim is dormant, and where they stand. */
#include "collector/dormant.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/collector.h"
#include "lib/base/process_file.h"
#include "lib/base/rankset.h"
#include "lib/live/live.h"

enum { CANDIDATES_MAX = 1024, PLACE_BYTES = 320, ENVIRONMENT_BYTES = 1 << 17 };
static const uint64_t quiet_ns = 500000000, search_again_ns = 1000000000,
                      search_rarely_ns = 32000000000;

/* What of a rank a process has before its first call. Shells, tools beside a rank and launchers
 * that are native programs have none, though their environment is the rank's. */
enum rank_sign { SIGN_UNREAD, NO_SIGN, RUNS_PYTHON, HAS_LIBRARY };

struct candidate {
    int pid, parent, rank; /* rank -1: no launcher's variable says it */
    enum rank_sign sign;
    bool is_recorded; /* it has called NCCL */
    bool is_launcher; /* of one that has, or of another candidate */
    bool may_be_rank; /* of those without a number: neither what started ranks nor what a rank
                         started */
};

struct reported_rank {
    int rank, pid;  /* of ranks that are not known (-1) each process is one */
    uint64_t place; /* string id */
};

struct dormant_search {
    uint64_t searched_ns, pause_ns, last_call_ns;
    struct rankset recorded; /* ranks that have had a ring */
    struct candidate candidate[CANDIDATES_MAX];
    int candidates;
    struct reported_rank reported[CANDIDATES_MAX];
    int reports;
    char environment[ENVIRONMENT_BYTES];
};

/* The value of a variable; NULL if there is none. */
static const char *variable_of(const char *environment, size_t bytes, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = environment; at < environment + bytes; at += strlen(at) + 1)
        if (!strncmp(at, name, length) && at[length] == '=')
            return at + length + 1;
    return NULL;
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

/* By the files that it has mapped, whose list is read when it is needed first: it can be long. */
static enum rank_sign rank_sign_of(struct candidate *candidate)
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

static void add_candidate(struct dormant_search *search, int pid, const char *directory)
{
    static const char *const ranks[] = {"DDPCHECK_RANK", "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                        "SLURM_PROCID"};
    char stat[512];
    struct candidate candidate = {.pid = pid, .rank = -1};
    size_t bytes =
        process_file_read(pid, "environ", search->environment, sizeof search->environment);
    const char *trace = variable_of(search->environment, bytes, "DDPCHECK_DIR");
    if (!trace || strcmp(trace, directory) || search->candidates == CANDIDATES_MAX)
        return;
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks && candidate.rank < 0; i++) {
        const char *value = variable_of(search->environment, bytes, ranks[i]);
        candidate.rank = value ? atoi(value) : -1;
    }
    const char *end = process_stat_read(pid, stat, sizeof stat);
    char state;
    if (!end || sscanf(end + 1, " %c %d", &state, &candidate.parent) != 2 || state == 'Z')
        return;
    search->candidate[search->candidates++] = candidate;
}

static void find_candidates(struct dormant_search *search, const char *directory)
{
    DIR *processes = opendir("/proc");
    search->candidates = 0;
    for (struct dirent *entry; processes && (entry = readdir(processes));) {
        int pid = atoi(entry->d_name);
        if (pid > 0 && pid != getpid())
            add_candidate(search, pid, directory);
    }
    if (processes)
        closedir(processes);
}

static struct candidate *candidate_with(struct dormant_search *search, int pid)
{
    for (int i = 0; i < search->candidates; i++)
        if (search->candidate[i].pid == pid)
            return &search->candidate[i];
    return NULL;
}

/* Of a rank's processes the one with the best sign, of these the outermost: the others are its
 * loaders. */
static const struct candidate *candidate_of(struct dormant_search *search, int rank)
{
    struct candidate *best = NULL;
    for (int i = 0; i < search->candidates; i++) {
        struct candidate *candidate = &search->candidate[i];
        if (candidate->rank != rank || rank_sign_of(candidate) == NO_SIGN)
            continue;
        struct candidate *parent = candidate_with(search, candidate->parent);
        bool is_child = parent && parent->rank == rank && rank_sign_of(parent) >= candidate->sign;
        if (!is_child && (!best || candidate->sign > best->sign))
            best = candidate;
    }
    return best;
}

/* False: which of them are recorded can't be seen from here. */
static bool mark_recorded(struct collector *collector)
{
    for (int i = 0; i < collector->producer_count; i++) {
        const struct liveness *liveness = &collector->producers[i]->liveness;
        if (!collector->producers[i]->reader || liveness->ended)
            continue;
        struct candidate *of = candidate_with(collector->dormant, liveness->pid);
        if (!liveness->pid)
            return false;
        if (of)
            of->is_recorded = true;
    }
    return true;
}

/* Those above a process started it. */
static void mark_launchers(struct dormant_search *search)
{
    for (int i = 0; i < search->candidates; i++) {
        struct candidate *above = &search->candidate[i];
        if (!above->is_recorded)
            continue;
        for (int depth = 0; above && depth < CANDIDATES_MAX; depth++) {
            above = candidate_with(search, above->parent);
            if (above)
                above->is_launcher = !above->is_recorded;
        }
    }
}

static void mark_possible_ranks(struct dormant_search *search)
{
    for (int i = 0; i < search->candidates; i++) {
        struct candidate *candidate = &search->candidate[i];
        if (candidate->rank >= 0 || candidate->is_recorded || candidate->is_launcher)
            continue;
        struct candidate *parent = candidate_with(search, candidate->parent);
        bool is_helper = parent && !parent->is_launcher && rank_sign_of(parent) != NO_SIGN;
        candidate->may_be_rank = !is_helper && rank_sign_of(candidate) == HAS_LIBRARY;
    }
}

static bool is_of_library(const char *file)
{
    return strstr(file, "/site-packages/") || strstr(file, "/lib/python") || *file == '<';
}

/* "load() at train.py:12", or what the kernel says of its main thread. */
static void describe_place(int pid, char *place)
{
    struct live_process process;
    struct error err;
    snprintf(place, PLACE_BYTES, "a place that can't be read");
    if (live_read(&process, pid, false, &err) < 0)
        return;
    const struct live_thread *thread = process.thread;
    if (process.threads && thread->state == 'T')
        snprintf(place, PLACE_BYTES, "no code: it is stopped");
    else if (process.threads)
        snprintf(place, PLACE_BYTES, "%s", thread->state == 'R' ? "its own code" : "a system call");
    for (int i = 0; process.threads && i < thread->frames; i++) {
        const struct frame *frame = &thread->frame[i];
        const char *slash = strrchr(frame->file, '/');
        if (!*frame->file || is_of_library(frame->file))
            continue;
        snprintf(place, PLACE_BYTES, "%.120s() at %.120s:%d", frame->function,
                 slash ? slash + 1 : frame->file, frame->line);
        break;
    }
    live_free(&process);
}

static bool add_text(struct collector *collector, int process, const char *text, uint64_t id,
                     uint64_t now_ns)
{
    struct record record = {
        .time_ns = now_ns, .api = API_notice_string, .device = RECORD_NO_DEVICE};
    uint32_t bytes = (uint32_t)strlen(text);
    bool added = true;
    for (uint32_t at = 0; at < bytes; at += sizeof record.string.text) {
        uint32_t piece = bytes - at;
        if (piece > sizeof record.string.text)
            piece = sizeof record.string.text;
        record.string.id = id;
        record.string.bytes = bytes;
        record.string.offset = at;
        memset(record.string.text, 0, sizeof record.string.text);
        memcpy(record.string.text, text + at, piece);
        added = added && batch_add(collector->batch, process, &record);
    }
    return added;
}

/* Once for each place. An empty one: it is gone. */
static void report_rank(struct collector *collector, int process, int rank, int pid,
                        const char *place, uint64_t now_ns)
{
    struct dormant_search *search = collector->dormant;
    uint64_t id = *place ? string_id(place, strlen(place)) : 0;
    int i = 0;
    while (i < search->reports &&
           (search->reported[i].rank != rank || (rank < 0 && search->reported[i].pid != pid)))
        i++;
    if (i == CANDIDATES_MAX || (i == search->reports && !id) ||
        (i < search->reports && search->reported[i].place == id))
        return;
    struct record record = {
        .time_ns = now_ns, .api = API_notice_dormant, .device = RECORD_NO_DEVICE};
    record.range.text = id;
    record.range.domain = (uint64_t)pid;
    record.range.id = (uint64_t)(int64_t)rank;
    if (!add_text(collector, process, place, id, now_ns) ||
        !batch_add(collector->batch, process, &record))
        return;
    search->reports += i == search->reports;
    search->reported[i] = id ? (struct reported_rank){rank, pid, id}
                             : search->reported[--search->reports];
}

/* A living process whose notices these can be; -1 none. *ranks: of the job. */
static int find_reporter(struct collector *collector, int *ranks)
{
    int reporter = -1;
    *ranks = 0;
    for (int i = 0; i < collector->producer_count; i++) {
        const struct producer *producer = collector->producers[i];
        if (!producer->reader)
            continue;
        const struct process_info *info = ring_reader_process(producer->reader);
        if (info->rank >= 0 && rankset_add(&collector->dormant->recorded, info->rank))
            return -1;
        if (*ranks < info->world_size)
            *ranks = info->world_size;
        if (reporter < 0 && !producer->liveness.ended)
            reporter = producer->process;
    }
    return reporter;
}

/* Processes of which no variable says which rank they are; the analyzer counts them. */
static void report_unranked(struct collector *collector, int reporter, uint64_t now_ns)
{
    char place[PLACE_BYTES];
    struct dormant_search *search = collector->dormant;
    if (mark_recorded(collector)) {
        mark_launchers(search);
        mark_possible_ranks(search);
    }
    for (int i = 0; i < search->candidates && batch_room(collector->batch) > 0; i++) {
        const struct candidate *candidate = &search->candidate[i];
        if (!candidate->may_be_rank)
            continue;
        describe_place(candidate->pid, place);
        report_rank(collector, reporter, -1, candidate->pid, place, now_ns);
    }
    for (int i = search->reports; i-- > 0 && batch_room(collector->batch) > 0;) {
        const struct reported_rank *reported = &search->reported[i];
        const struct candidate *still = reported->rank < 0 ? candidate_with(search, reported->pid)
                                                           : NULL;
        if (reported->rank < 0 && (!still || !still->may_be_rank))
            report_rank(collector, reporter, -1, reported->pid, "", now_ns);
    }
}

/* Where launchers say how many ranks there are, the search ends when all have called. Else it goes
 * on while nothing happens, less and less often. */
static bool is_search_due(struct collector *collector, bool is_counted, uint64_t now_ns)
{
    struct dormant_search *search = collector->dormant;
    if (is_counted || search->last_call_ns != collector->hang.last_call_ns)
        search->pause_ns = search_again_ns;
    if (now_ns - search->searched_ns < search->pause_ns)
        return false;
    search->last_call_ns = collector->hang.last_call_ns;
    search->searched_ns = now_ns;
    if (!is_counted && search->pause_ns < search_rarely_ns)
        search->pause_ns *= 2;
    return true;
}

void collector_find_dormant(struct collector *collector, uint64_t now_ns)
{
    char place[PLACE_BYTES];
    int ranks;
    if (!collector->hang.last_call_ns || now_ns - collector->hang.last_call_ns < quiet_ns)
        return;
    if (!collector->dormant && !(collector->dormant = calloc(1, sizeof *collector->dormant)))
        return;
    struct dormant_search *search = collector->dormant;
    int reporter = find_reporter(collector, &ranks);
    bool are_all_recorded = ranks > 0 && (int)rankset_count(&search->recorded) >= ranks;
    if (reporter < 0 || are_all_recorded || !is_search_due(collector, ranks > 0, now_ns))
        return;
    find_candidates(search, collector->options.directory);
    for (int rank = 0; rank < ranks && batch_room(collector->batch) > 0; rank++) {
        if (rankset_has(&search->recorded, rank))
            continue;
        const struct candidate *candidate = candidate_of(search, rank);
        *place = '\0';
        if (candidate)
            describe_place(candidate->pid, place);
        report_rank(collector, reporter, rank, candidate ? candidate->pid : 0, place, now_ns);
    }
    report_unranked(collector, reporter, now_ns);
}

void dormant_search_free(struct dormant_search *search)
{
    if (search)
        rankset_free(&search->recorded);
    free(search);
}
