/* timeline_emit.c: imports the rows of a timeline, rank by rank, in the order of the rank's clock.
 *
 * Clocks of ranks are not compared: each rank's is set so that its first row begins at the same
 * moment as those of the others. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/import/sink.h"
#include "lib/import/timeline.h"
#include "lib/import/timeline_groups.h"
#include "lib/trace/kinds.h"
#include "lib/trace/lacks.h"
#include "lib/trace/names.h"

/* What happens to a row, in the order in which it does if all is at one moment. */
enum step { STEP_ISSUED, STEP_STARTED, STEP_DONE };

struct timeline_step {
    int64_t time_ns;
    uint32_t row; /* of the rank */
    enum step step;
};

/* One rank while it is imported. */
struct timeline_rank {
    struct import *import;
    const struct foreign_timeline *timeline;
    const struct timeline_group *groups;
    const uint16_t *api;            /* of each operation's name */
    const struct foreign_row **row; /* of this rank */
    uint32_t rows;
    struct import_launch *launch; /* of each row; lane NULL: none */
    struct timeline_step *step;
    int64_t *last_number; /* by group */
    int process;
    int64_t shift_ns; /* rank's clock + this = time since 1970 */
    int64_t iteration;
};

/* Other names of kinds, without case, '_', '-', blanks and what stands before ':'. */
static const struct {
    const char *name;
    uint16_t api;
} other_names[] = {
    {"barrier", API_ncclAllReduce},
    {"allreducecoalesced", API_ncclAllReduce},
    {"allgatherintotensor", API_ncclAllGather},
    {"allgatherbase", API_ncclAllGather},
    {"reducescattertensor", API_ncclReduceScatter},
    {"reducescatterbase", API_ncclReduceScatter},
    {"alltoallsingle", API_ncclAlltoAll},
    {"alltoallbase", API_ncclAlltoAll},
    {"alltoallv", API_ncclAlltoAll},
    {"isend", API_ncclSend},
    {"irecv", API_ncclRecv},
    {"receive", API_ncclRecv},
};

static void plain_name(const char *text, char *plain, size_t bytes)
{
    const char *colon = strrchr(text, ':');
    size_t length = 0;
    for (text = colon ? colon + 1 : text; *text && length + 1 < bytes; text++)
        if (isalnum((unsigned char)*text))
            plain[length++] = (char)tolower((unsigned char)*text);
    plain[length] = '\0';
    if (!strncmp(plain, "nccl", 4))
        memmove(plain, plain + 4, length - 3);
}

static uint16_t api_of_name(const char *text)
{
    char plain[64], known[64];
    plain_name(text, plain, sizeof plain);
    for (unsigned api = 1; api < API_COUNT; api++) {
        if (!kind_find(api))
            continue;
        plain_name(api_name(api), known, sizeof known);
        if (!strcmp(plain, known))
            return (uint16_t)api;
    }
    for (size_t i = 0; i < sizeof other_names / sizeof *other_names; i++)
        if (!strcmp(plain, other_names[i].name))
            return other_names[i].api;
    return API_NONE;
}

static int compare_rows(const void *a, const void *b)
{
    const struct foreign_row *left = *(const struct foreign_row *const *)a,
                             *right = *(const struct foreign_row *const *)b;
    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    return (left > right) - (left < right); /* as they stand in the file */
}

static int compare_steps(const void *a, const void *b)
{
    const struct timeline_step *left = a, *right = b;
    if (left->time_ns != right->time_ns)
        return left->time_ns < right->time_ns ? -1 : 1;
    if (left->row != right->row)
        return left->row < right->row ? -1 : 1;
    return (int)left->step - (int)right->step;
}

static bool is_operation(const struct timeline_rank *rank, const struct foreign_row *row)
{
    return rank->groups[row->group].ranks && rank->api[row->operation] != API_NONE;
}

/* The place in the group of the other end of a message; -1 if it is not known. */
static int message_peer(const struct timeline_group *group, const struct foreign_row *row)
{
    if (row->peer >= 0)
        return timeline_group_find(group, row->peer);
    if (group->ranks != 2)
        return -1;
    return group->rank[0] == row->rank ? 1 : 0;
}

static uint64_t shifted_time(const struct timeline_rank *rank, int64_t clock_ns)
{
    return (uint64_t)(clock_ns + rank->shift_ns);
}

/* A row that can't be matched with its peers' is work of its own. */
static int emit_activity(struct timeline_rank *rank, const struct foreign_row *row)
{
    struct import_activity activity = {
        .name = rank->timeline->operations.by_index[row->operation]->text,
        .kind = rank->groups[row->group].ranks ? ACTIVITY_COMMUNICATION : ACTIVITY_COMPUTE,
        .begin_ns = shifted_time(rank, row->start_ns),
        .end_ns = shifted_time(rank, row->start_ns) + row->duration_ns,
        .iteration = UINT64_MAX,
    };
    if (row->iteration != TIMELINE_UNKNOWN)
        activity.iteration = (uint64_t)row->iteration;
    return import_activity(rank->import, rank->process, &activity);
}

static int member_of_row(const struct timeline_rank *rank, const struct foreign_row *row)
{
    const struct timeline_group *group = &rank->groups[row->group];
    struct import_member member = import_member_new();
    member.comm = rank->timeline->groups.by_index[row->group]->text;
    member.rank = timeline_group_find(group, row->rank);
    member.nranks = group->ranks;
    return member.rank < 0 ? -1 : import_member(rank->import, rank->process, &member);
}

static int emit_call(struct timeline_rank *rank, uint32_t index)
{
    const struct foreign_row *row = rank->row[index];
    int member = member_of_row(rank, row);
    if (member < 0)
        return -1;
    struct import_call call = import_call_new(member, rank->api[row->operation]);
    call.bytes = row->bytes;
    call.state = IMPORT_ISSUED;
    call.time_ns =
        shifted_time(rank, row->issued_ns == TIMELINE_UNKNOWN ? row->start_ns : row->issued_ns);
    if (kind_has(call.api, KIND_TO_PEER))
        call.root = message_peer(&rank->groups[row->group], row);
    else if (row->number > rank->last_number[row->group])
        call.number = (uint64_t)(rank->last_number[row->group] = row->number);
    if (import_call(rank->import, &call))
        return -1;
    rank->launch[index] = import_last_launch(rank->import);
    return 0;
}

/* An iteration begins with the first operation that is issued in it. */
static int begin_iteration(struct timeline_rank *rank, const struct timeline_step *step)
{
    const struct foreign_row *row = rank->row[step->row];
    if (step->step != STEP_ISSUED || row->iteration <= rank->iteration || row->iteration < 0)
        return 0;
    rank->iteration = row->iteration;
    return import_iteration(rank->import, rank->process, (uint64_t)row->iteration,
                            shifted_time(rank, step->time_ns));
}

static bool is_matched(const struct timeline_rank *rank, const struct foreign_row *row)
{
    const struct timeline_group *group = &rank->groups[row->group];
    if (!is_operation(rank, row) || timeline_group_find(group, row->rank) < 0)
        return false;
    return !kind_has(rank->api[row->operation], KIND_TO_PEER) || message_peer(group, row) >= 0;
}

static int emit_step(struct timeline_rank *rank, const struct timeline_step *step)
{
    const struct foreign_row *row = rank->row[step->row];
    if (begin_iteration(rank, step))
        return -1;
    if (!is_matched(rank, row))
        return step->step == STEP_DONE ? emit_activity(rank, row) : 0;
    if (step->step == STEP_ISSUED)
        return emit_call(rank, step->row);
    return import_launch_state(rank->import, rank->launch[step->row],
                               step->step == STEP_STARTED ? IMPORT_STARTED : IMPORT_DONE,
                               shifted_time(rank, step->time_ns));
}

static int emit_rank(struct timeline_rank *rank, int64_t begin_ns)
{
    size_t steps = 0;
    for (uint32_t i = 0; i < rank->rows; i++) {
        const struct foreign_row *row = rank->row[i];
        bool issued = row->issued_ns != TIMELINE_UNKNOWN && row->issued_ns <= row->start_ns;
        rank->step[steps++] =
            (struct timeline_step){issued ? row->issued_ns : row->start_ns, i, STEP_ISSUED};
        rank->step[steps++] = (struct timeline_step){row->start_ns, i, STEP_STARTED};
        rank->step[steps++] =
            (struct timeline_step){row->start_ns + (int64_t)row->duration_ns, i, STEP_DONE};
    }
    qsort(rank->step, steps, sizeof *rank->step, compare_steps);
    rank->shift_ns = begin_ns - rank->step[0].time_ns;
    rank->iteration = -1;
    for (uint32_t i = 0; i < rank->timeline->groups.count; i++)
        rank->last_number[i] = -1;
    struct import_process process = import_process_new();
    process.rank = rank->row[0]->rank;
    process.host = rank->timeline->hosts.by_index[rank->row[0]->host]->text;
    process.file = rank->timeline->file;
    process.host = *process.host ? process.host : NULL;
    rank->process = import_process(rank->import, &process);
    for (size_t i = 0; i < steps; i++)
        if (rank->process < 0 || emit_step(rank, &rank->step[i]))
            return -1;
    return 0;
}

/* Where the job is put in time: where its clocks say it was, or, if these do not count from 1970,
 * so that it ended when the newest file was written. */
static int64_t find_begin(const struct foreign_timeline *timeline)
{
    int64_t first = INT64_MAX, last = INT64_MIN;
    for (size_t i = 0; i < timeline->rows; i++) {
        const struct foreign_row *row = &timeline->row[i];
        int64_t begin = row->issued_ns != TIMELINE_UNKNOWN && row->issued_ns < row->start_ns
                            ? row->issued_ns
                            : row->start_ns;
        first = begin < first ? begin : first;
        if (row->start_ns + (int64_t)row->duration_ns > last)
            last = row->start_ns + (int64_t)row->duration_ns;
    }
    if (first > (int64_t)LACKS_TIME_BEGINS)
        return first;
    int64_t begin = timeline->newest_ns - (last - first);
    return begin > (int64_t)LACKS_TIME_BEGINS ? begin : (int64_t)LACKS_TIME_BEGINS;
}

static int emit_ranks(struct timeline_rank *rank, const struct foreign_row **row, size_t rows)
{
    int64_t begin_ns = find_begin(rank->timeline);
    for (size_t first = 0, end; first < rows; first = end) {
        for (end = first; end < rows && row[end]->rank == row[first]->rank;)
            end++;
        rank->row = row + first;
        rank->rows = (uint32_t)(end - first);
        rank->launch = calloc(rank->rows, sizeof *rank->launch);
        rank->step = malloc(3 * (size_t)rank->rows * sizeof *rank->step);
        bool has_room = rank->launch && rank->step;
        int result = has_room ? emit_rank(rank, begin_ns) : sink_no_memory(rank->import);
        free(rank->launch);
        free(rank->step);
        if (result)
            return -1;
    }
    return 0;
}

int timeline_emit(struct import *import, struct foreign_timeline *timeline)
{
    uint32_t groups = timeline->groups.count, operations = timeline->operations.count;
    const struct foreign_row **row = malloc((timeline->rows + 1) * sizeof *row);
    uint16_t *api = calloc(operations + 1, sizeof *api);
    struct timeline_rank rank = {.import = import, .timeline = timeline, .api = api};
    struct timeline_group *group = timeline_groups_new(timeline);
    rank.groups = group;
    rank.last_number = calloc(groups + 1, sizeof *rank.last_number);
    int result = row && api && group && rank.last_number ? 0 : sink_no_memory(import);
    for (uint32_t i = 0; i < operations && !result; i++)
        api[i] = api_of_name(timeline->operations.by_index[i]->text);
    for (size_t i = 0; i < timeline->rows && !result; i++)
        row[i] = &timeline->row[i];
    if (!result) {
        qsort(row, timeline->rows, sizeof *row, compare_rows);
        result = emit_ranks(&rank, row, timeline->rows);
    }
    timeline_groups_free(group, group ? groups : 0);
    free(rank.last_number);
    free(api);
    free(row);
    return result;
}
