/* hub_round.c: the answers of the hosts that were asked at one time, judged in the order of time.
 *
 * Storing them takes longer than judging them, so a second thread does it at the same time. It has
 * the store for itself meanwhile. */
#include <pthread.h>
#include <stdlib.h>

#include "hub/hub_internal.h"
#include "lib/base/array.h"
#include "lib/base/invariant.h"

enum {
    PROCESSES_MANY = 1024, /* all records of more processes are too much to judge in a second */
    STORED_AT_ONCE = 1024
};
/* How long the records of a round wait for the last answer. Within it a host whose collector was
 * killed is asked again, and one that stays away is silent. */
static const uint64_t round_within_ns = 6000000000;
/* The same for ranks that no host has reported: perhaps none records them. */
static const uint64_t members_within_ns = 1500000000;

bool hub_is_large(const struct hub *hub)
{
    return hub->counts.processes > PROCESSES_MANY;
}

bool hub_round_reserve(struct hub *hub, size_t records)
{
    return ARRAY_RESERVE(hub->round.record, hub->round.capacity, hub->round.count + records);
}

void hub_round_keep(struct hub *hub, struct hub_process *process, const struct record *record)
{
    uint64_t time_ns = record->time_ns + process->offset_ns;
    if (time_ns > process->last_ns)
        process->last_ns = time_ns;
    if (!process->begin_ns)
        process->begin_ns = process->last_ns;
    invariant(hub->round.count < hub->round.capacity,
              "a round has room for the record that is kept");
    if (!hub->round.count)
        hub->round.since_ns = hub->now_ns;
    hub->round.record[hub->round.count++] = (struct hub_record){
        .process = process->number, .time_ns = process->last_ns, .record = *record};
}

/* Some ranks of a communicator that is waited for have not been reported by any host yet. A finding
 * names the few that are missing, so all must be counted first. */
static bool awaits_members(const struct hub *hub)
{
    for (const struct hub_comm *comm = hub->comms; comm; comm = comm->hh.next)
        if (comm->waited_for && comm->known < comm->nranks)
            return true;
    return false;
}

static bool awaits_answers(const struct hub *hub)
{
    for (const struct hub_host *host = hub->hosts; host; host = host->hh.next)
        if (host->lives && !host->silent && (host->request || host->wants_more || host->in_line))
            return true;
    return false;
}

static bool is_round_due(const struct hub *hub, uint64_t now_ns)
{
    uint64_t waited_ns = now_ns - hub->round.since_ns;
    bool is_behind_answer = hub_is_large(hub) && hub->round.answer_ns > hub->round.since_ns;
    uint64_t since_ns = is_behind_answer ? hub->round.answer_ns : hub->round.since_ns;
    if (!hub->round.count || (!hub->has_looked && now_ns != UINT64_MAX))
        return false;
    return (waited_ns >= members_within_ns || !awaits_members(hub)) &&
           (now_ns - since_ns >= round_within_ns || !awaits_answers(hub));
}

/* From when on something is known of each process whose records there are: what was judged before
 * would lack some. */
static uint64_t known_since(const struct hub *hub)
{
    uint64_t since_ns = 0;
    for (const struct hub_host *host = hub->hosts; host; host = host->hh.next)
        for (uint32_t i = 0; i < host->processes; i++)
            if (host->process[i].begin_ns > since_ns)
                since_ns = host->process[i].begin_ns;
    return since_ns;
}

/* Where a record of the round is, beside what it is sorted by. */
struct round_place {
    uint64_t time_ns, index;
};

struct sorted_round {
    struct store *store;
    const struct hub_record *record;
    struct round_place *place;
    size_t places;
    bool is_unstored;     /* memory was short */
    struct error failure; /* of the store */
};

static int compare_round_places(const void *a, const void *b)
{
    const struct round_place *left = a, *right = b;
    if (left->time_ns != right->time_ns)
        return left->time_ns < right->time_ns ? -1 : 1;
    return (left->index > right->index) - (left->index < right->index);
}

/* Returns 0, or -1 when memory is short; free() round->place. */
static int sort_round(const struct hub *hub, struct sorted_round *round)
{
    uint64_t known_ns = known_since(hub);
    *round = (struct sorted_round){.store = hub->store, .record = hub->round.record};
    if (!(round->place = malloc(hub->round.count * sizeof *round->place)))
        return -1;
    for (size_t i = 0; i < hub->round.count; i++)
        if (hub->round.record[i].record.api != API_notice_tick ||
            hub->round.record[i].time_ns >= known_ns)
            round->place[round->places++] = (struct round_place){hub->round.record[i].time_ns, i};
    qsort(round->place, round->places, sizeof *round->place, compare_round_places);
    return 0;
}

static void *store_round(void *context)
{
    struct sorted_round *round = context;
    struct record_batch *batch = batch_new();
    int result = 0;
    round->is_unstored = !batch;
    for (size_t i = 0; batch && result == 0 && i < round->places; i++) {
        const struct hub_record *record = &round->record[round->place[i].index];
        batch_add(batch, record->process, &record->record);
        if (batch->count < STORED_AT_ONCE && i + 1 < round->places)
            continue;
        result = batch_write(batch, round->store, &round->failure);
        batch_clear(batch);
    }
    batch_free(batch);
    return NULL;
}

static void judge_round(struct hub *hub, const struct sorted_round *round)
{
    for (size_t i = 0; i < round->places; i++) {
        const struct hub_record *record = &round->record[round->place[i].index];
        invariant(!i || round->place[i - 1].time_ns <= round->place[i].time_ns,
                  "the records of a round are judged in the order of their times");
        hub_analyze(hub, record->process, &record->record);
    }
}

static void judge_and_store(struct hub *hub, struct sorted_round *round)
{
    pthread_t thread;
    hub_write_batch(hub);
    bool is_shared = !pthread_create(&thread, NULL, store_round, round);
    judge_round(hub, round);
    if (is_shared)
        pthread_join(thread, NULL);
    else
        store_round(round);
    if (round->is_unstored)
        hub_drop_for_memory(hub, "what hosts answered");
    if (round->failure.text[0] && !hub->failure.text[0])
        hub->failure = round->failure;
}

void hub_feed_round(struct hub *hub, uint64_t now_ns)
{
    struct sorted_round round;
    if (!is_round_due(hub, now_ns))
        return;
    hub_judge_findings(hub); /* which may explain what the round shows */
    if (sort_round(hub, &round) < 0)
        hub_drop_for_memory(hub, "what hosts answered");
    else
        judge_and_store(hub, &round);
    free(round.place);
    hub->round.count = 0;
    for (struct hub_host *host = hub->hosts; host; host = host->hh.next)
        host->answered = false;
}
