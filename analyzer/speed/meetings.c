/* meetings.c: durations of one operation on all its members: who waited, and what the transfer
 * took.
 */
#include <stdlib.h>
#include <string.h>

#include "analyzer/model/array.h"
#include "analyzer/model/process.h"
#include "analyzer/speed/ranks.h"
#include "analyzer/speed/slowdown.h"
#include "analyzer/speed/standings.h"
#include "lib/trace/kinds.h"
#include "lib/trace/lacks.h"
#include "lib/trace/names.h"

enum {
    MEETINGS_OPEN = 4096, /* of a communicator; then the oldest is given up */
    MESSAGE_MEMBERS = 2,
    PAIRS_PER_RANK = 4 /* to and fro, with the next stage and the previous */
};

struct meeting_key {
    uint64_t number;
    int64_t from, to; /* of a message: ranks; else -1 */
};

/* One member's part: its operation, or nothing yet. */
struct meeting_part {
    struct speed_rank *rank;
    uint64_t serial, duration_ns;
};

struct speed_meeting {
    struct meeting_key key;
    uint32_t parts, wanted, api;
    uint64_t bytes; /* the most that a member gave */
    struct meeting_part *part;
    uint32_t capacity;
    UT_hash_handle hh;
};

static struct speed_comm *speed_comm_get(struct analyzer *analyzer, struct comm *comm)
{
    struct speed_comm *known;
    uint64_t id = comm->id;
    TABLE_FIND(analyzer->slot.speed->comms, &id, known);
    if (known || !(known = calloc(1, sizeof *known)))
        return known;
    known->id = id;
    known->comm = comm;
    TABLE_ADD(analyzer->slot.speed->comms, id, known);
    if (TABLE_ADDED(known))
        return known;
    free(known);
    return NULL;
}

/* A quarter of a power of two: sizes that differ less are one class. */
static uint64_t round_bytes(uint64_t bytes)
{
    int bits = 0;
    while (bytes >> bits > 7)
        bits++;
    return bytes >> bits << bits;
}

static uint64_t count_hosts(const struct comm *comm)
{
    for (uint32_t i = 1; i < comm->members; i++)
        if (comm->member[0] && comm->member[i] &&
            strcmp(comm->member[0]->process->info.host, comm->member[i]->process->info.host) != 0)
            return 2;
    return 1;
}

static int64_t stride_of(const struct comm *comm)
{
    if (comm->members < 2 || !comm->member[0] || !comm->member[1])
        return 0;
    return member_shown_rank(comm->member[1]) - member_shown_rank(comm->member[0]);
}

static uint32_t histogram_step(uint64_t ns)
{
    uint32_t octave = 0;
    while (ns >> octave > 2 * TRANSFER_STEPS - 1)
        octave++;
    uint32_t step = octave * TRANSFER_STEPS + (uint32_t)(ns >> octave);
    return step < TRANSFER_STEPS * TRANSFER_OCTAVES ? step : TRANSFER_STEPS * TRANSFER_OCTAVES - 1;
}

static struct speed_class *class_get(struct speed_class **classes,
                                     const struct speed_class_key *key)
{
    struct speed_class *class;
    TABLE_FIND(*classes, key, class);
    if (class || !(class = calloc(1, sizeof *class)))
        return class;
    class->key = *key;
    TABLE_ADD(*classes, key, class);
    if (TABLE_ADDED(class))
        return class;
    free(class);
    return NULL;
}

static int count_transfer(struct speed_comm *comm, const struct speed_meeting *meeting,
                          uint64_t transfer_ns)
{
    struct speed_class_key key;
    memset(&key, 0, sizeof key);
    key.api = meeting->api;
    key.nranks = meeting->wanted;
    key.bytes = round_bytes(meeting->bytes);
    key.stride = stride_of(comm->comm);
    key.hosts = count_hosts(comm->comm);
    struct speed_class *class = class_get(&comm->classes, &key);
    if (!class)
        return -1;
    class->count++;
    class->seconds += (double)transfer_ns / 1e9;
    class->histogram[histogram_step(transfer_ns)]++;
    return 0;
}

/* Grows up to ITERATIONS_KEPT, with the iterations that there are. */
static int transfer_room(struct speed_comm *comm, uint64_t iteration)
{
    uint32_t room = comm->transfers ? comm->transfers : 32;
    while (room < ITERATIONS_KEPT && iteration >= room)
        room *= 2;
    if (room == comm->transfers)
        return 0;
    float *grown = realloc(comm->transfer, room * sizeof *grown);
    if (!grown)
        return -1;
    memset(grown + comm->transfers, 0, (room - comm->transfers) * sizeof *grown);
    comm->transfer = grown;
    comm->transfers = room;
    return 0;
}

int speed_comm_add_transfer(struct speed_comm *comm, uint64_t iteration, double seconds)
{
    if (transfer_room(comm, iteration))
        return -1;
    uint32_t place = (uint32_t)iteration & (comm->transfers - 1);
    if (comm->newest < iteration) {
        uint64_t n = iteration - comm->newest < comm->transfers ? comm->newest
                                                                : iteration - comm->transfers;
        while (++n < iteration)
            comm->transfer[n & (comm->transfers - 1)] = 0;
        comm->transfer[place] = 0;
        comm->newest = iteration;
    }
    if (comm->newest - iteration < comm->transfers)
        comm->transfer[place] += (float)seconds;
    return 0;
}

double speed_comm_transfer(const struct speed_comm *comm, uint64_t iteration)
{
    bool kept = iteration <= comm->newest && comm->newest - iteration < comm->transfers;
    return kept ? comm->transfer[iteration & (comm->transfers - 1)] : 0;
}

/* Marks its operations; those that waited did so until the shortest began. */
static void resolve_meeting(const struct speed_meeting *meeting, uint64_t transfer_ns)
{
    const struct meeting_part *last = &meeting->part[0];
    for (uint32_t i = 1; i < meeting->parts; i++)
        if (meeting->part[i].duration_ns < last->duration_ns)
            last = &meeting->part[i];
    for (uint32_t i = 0; i < meeting->parts; i++) {
        struct speed_operation *operation =
            speed_operation_find(meeting->part[i].rank, meeting->part[i].serial);
        if (!operation)
            continue;
        operation->resolved = true;
        operation->stands_for = !i;
        operation->waited_ns = operation->done_ns - transfer_ns;
        operation->last = last->rank;
        operation->last_serial = last->serial;
    }
}

/* The members' durations are known, or nobody waits for the others any more. */
static int end_meeting(struct speed_comm *comm, struct speed_meeting *meeting)
{
    uint64_t transfer_ns = UINT64_MAX;
    int result = 0;
    for (uint32_t i = 0; i < meeting->parts; i++)
        if (transfer_ns > meeting->part[i].duration_ns)
            transfer_ns = meeting->part[i].duration_ns;
    if (meeting->parts == meeting->wanted) {
        resolve_meeting(meeting, transfer_ns);
        result = count_transfer(comm, meeting, transfer_ns);
    } else {
        for (uint32_t i = 0; i < meeting->parts; i++) {
            struct speed_operation *operation =
                speed_operation_find(meeting->part[i].rank, meeting->part[i].serial);
            if (operation)
                operation->resolved = true;
        }
    }
    HASH_DEL(comm->meetings, meeting);
    free(meeting->part);
    free(meeting);
    return result;
}

static struct speed_meeting *meeting_get(struct speed_comm *comm, const struct meeting_key *key,
                                         uint32_t wanted)
{
    struct speed_meeting *meeting;
    TABLE_FIND(comm->meetings, key, meeting);
    if (meeting)
        return meeting;
    if (HASH_COUNT(comm->meetings) >= MEETINGS_OPEN && end_meeting(comm, comm->meetings))
        return NULL;
    if (!(meeting = calloc(1, sizeof *meeting)))
        return NULL;
    meeting->key = *key;
    meeting->wanted = wanted;
    TABLE_ADD(comm->meetings, key, meeting);
    if (TABLE_ADDED(meeting))
        return meeting;
    free(meeting);
    return NULL;
}

/* The widest communicator of a rank with collectives; where it has none, the first messages. */
static void note_member(struct speed_rank *rank, struct member *member, const struct passed *passed)
{
    bool is_message = passed->peer >= 0, has_collectives = rank->member && rank->round_peer < 0;
    bool wider = !rank->member || (!is_message && (!has_collectives || rank->member->comm->nranks <
                                                                           member->comm->nranks));
    if (!wider || rank->round)
        return;
    rank->member = member;
    rank->round_peer = passed->peer;
    rank->round_sends = passed->api == API_ncclSend;
}

static void free_pairs(struct speed_comm *comm)
{
    struct speed_pair *pair, *next;
    HASH_ITER(hh, comm->pairs, pair, next) {
        HASH_DEL(comm->pairs, pair);
        free(pair);
    }
}

/* Who sends to whom. 0 or -1 (ENOMEM). */
static int note_meeting_pair(struct speed_comm *comm, const struct meeting_key *key)
{
    uint64_t ends = (uint64_t)key->from << 32 | (uint64_t)key->to;
    struct speed_pair *pair = NULL;
    TABLE_FIND(comm->pairs, &ends, pair);
    if (pair || comm->has_many_pairs)
        return 0;
    if ((int)HASH_COUNT(comm->pairs) >= PAIRS_PER_RANK * comm->comm->nranks) {
        comm->has_many_pairs = true;
        free_pairs(comm);
        return 0;
    }
    if (!(pair = calloc(1, sizeof *pair)))
        return -1;
    pair->ends = ends;
    TABLE_ADD(comm->pairs, ends, pair);
    if (TABLE_ADDED(pair))
        return 0;
    free(pair);
    return -1;
}

static int meet(struct speed_comm *comm, struct speed_rank *rank, const struct passed *passed,
                uint64_t serial)
{
    bool is_message = passed->peer >= 0;
    struct meeting_key key;
    memset(&key, 0, sizeof key);
    key = (struct meeting_key){passed->number, -1, -1};
    if (is_message) {
        bool sends = passed->api == API_ncclSend;
        key.from = sends ? passed->member->rank : passed->peer;
        key.to = sends ? passed->peer : passed->member->rank;
        comm->messages++;
        if (note_meeting_pair(comm, &key))
            return -1;
    } else {
        comm->collectives++;
    }
    uint32_t wanted = is_message ? MESSAGE_MEMBERS : (uint32_t)passed->member->comm->nranks;
    struct speed_meeting *meeting = meeting_get(comm, &key, wanted);
    if (!meeting)
        return -1;
    meeting->api = is_message ? API_ncclSend : passed->api;
    if (meeting->bytes < passed->bytes)
        meeting->bytes = passed->bytes;
    struct meeting_part *grown =
        array_room(meeting->part, sizeof *grown, meeting->parts, &meeting->capacity, 2);
    if (!grown)
        return -1;
    meeting->part = grown;
    meeting->part[meeting->parts++] =
        (struct meeting_part){rank, serial, passed->done_ns - passed->started_ns};
    return meeting->parts == wanted ? end_meeting(comm, meeting) : 0;
}

void speed_passed(struct analyzer *analyzer, const struct passed *passed)
{
    struct member *member = passed->member;
    if (member->process->info.lacks & LACKS_DURATIONS || kind_has(passed->api, KIND_ONE_SIDED))
        return;
    struct speed_rank *rank = speed_rank_get(analyzer, member->process, member->device);
    struct speed_comm *comm = rank ? speed_comm_get(analyzer, member->comm) : NULL;
    if (!comm) {
        analyzer->failed = true;
        return;
    }
    uint64_t newest = rank->newest;
    note_member(rank, member, passed);
    rank->site = passed->site;
    uint64_t serial = speed_rank_add(analyzer, rank, comm, passed);
    if (!serial)
        return;
    /* A message to itself, a communicator of one rank or of an unknown number: nobody waits. */
    if (member->comm->nranks < 2 || passed->peer == member->rank)
        speed_operation_find(rank, serial)->resolved = true;
    else if (meet(comm, rank, passed, serial))
        analyzer->failed = true;
    if (rank->newest == newest)
        return;
    /* Once about each rank has begun another: to look at all of them is then no more than that. */
    if (++analyzer->slot.speed->advanced >= analyzer->slot.speed->count)
        speed_close(analyzer, false);
    else if (rank->newest > rank->closed + OPEN_ITERATIONS)
        speed_rank_close(analyzer, rank, false);
}

static void free_classes(struct speed_class *classes)
{
    struct speed_class *class, *next;
    HASH_ITER(hh, classes, class, next) {
        HASH_DEL(classes, class);
        free(class);
    }
}

static void free_speed_comm(struct speed_comm *comm)
{
    struct speed_meeting *meeting, *next;
    HASH_ITER(hh, comm->meetings, meeting, next) {
        HASH_DEL(comm->meetings, meeting);
        free(meeting->part);
        free(meeting);
    }
    free_classes(comm->classes);
    free_pairs(comm);
    free(comm->transfer);
    free(comm);
}

static void visit_by_id(const struct speed *speed, uint64_t id, void (*visit)(struct comm *comm))
{
    const struct speed_comm *comm;
    TABLE_FIND(speed->comms, &id, comm);
    if (comm)
        visit(comm->comm);
}

void speed_visit_comms(const struct speed *speed, void (*visit)(struct comm *comm))
{
    for (uint32_t r = 0; r < speed->count; r++) {
        struct speed_rank *rank = speed->rank[r];
        if (rank->member)
            visit(rank->member->comm);
        if (rank->marker)
            visit_by_id(speed, rank->marker->id, visit);
        if (rank->only)
            visit(rank->only->comm);
        for (uint64_t i = 0; i < rank->operations; i++)
            visit(speed_operation_find(rank, rank->first_operation + i)->comm->comm);
    }
    for (uint32_t i = 0; speed->found && i < speed->found->count; i++)
        if (speed->found->slowdown[i].comm)
            visit_by_id(speed, speed->found->slowdown[i].comm->id, visit);
}

void speed_drop_gone(struct speed *speed)
{
    for (uint32_t r = 0; r < speed->count; r++) {
        struct speed_rank *rank = speed->rank[r];
        while (rank->operations &&
               speed_operation_find(rank, rank->first_operation)->comm->comm->is_gone) {
            rank->first_operation++;
            rank->operations--;
        }
    }
}

/* Without memory for it, it is not in the tables of transfers. */
static void add_forgotten(struct speed *speed, const struct speed_class *class)
{
    struct speed_class *sum = class_get(&speed->forgotten, &class->key);
    double mean = class->seconds / (double)class->count;
    if (!sum)
        return;
    if (!sum->comms++)
        sum->least = sum->most = mean;
    sum->count += class->count;
    sum->seconds += class->seconds;
    sum->least = mean < sum->least ? mean : sum->least;
    sum->most = mean > sum->most ? mean : sum->most;
}

void speed_forget(struct speed *speed, const struct comm *forgotten)
{
    struct speed_comm *comm;
    TABLE_FIND(speed->comms, &forgotten->id, comm);
    if (!comm || comm->comm != forgotten)
        return;
    for (const struct speed_class *class = comm->classes; class; class = class->hh.next)
        add_forgotten(speed, class);
    HASH_DEL(speed->comms, comm);
    free_speed_comm(comm);
}

void speed_free(struct speed *speed)
{
    if (!speed)
        return;
    HASH_CLEAR(hh, speed->ranks);
    for (uint32_t i = 0; i < speed->count; i++)
        speed_rank_free(speed->rank[i]);
    struct speed_comm *comm, *next;
    HASH_ITER(hh, speed->comms, comm, next) {
        HASH_DEL(speed->comms, comm);
        free_speed_comm(comm);
    }
    free_classes(speed->forgotten);
    free(speed->rank);
    free(speed->numbers);
    slowdowns_free(speed->found);
    speed_standings_free(speed->standings);
    speed_gaps_free(speed);
    speed_run_delays_free(speed);
    free(speed);
}
