/* dormant.c: finds processes of the job in /proc whose shim is dormant, and where they stand,
 * and processes that were stopped. */
#include "collector/dormant.h"

#include <stdlib.h>
#include <string.h>

#include "collector/candidates.h"
#include "collector/collector.h"
#include "collector/producer.h"
#include "lib/base/rankset.h"

static const uint64_t quiet_ns = 500000000, search_again_ns = 1000000000,
                      search_rarely_ns = 32000000000;

struct reported_rank {
    int rank, pid;  /* of ranks that are not known (-1) each process is one */
    uint64_t place; /* string id */
};

struct dormant_search {
    uint64_t searched_ns, pause_ns, last_call_ns;
    struct rankset recorded; /* ranks that have had a ring */
    struct candidates candidates;
    struct reported_rank reported[CANDIDATES_MAX];
    int reports;
};

bool dormant_mark_recorded(const struct collector *collector, struct candidates *candidates)
{
    for (int i = 0; i < collector->producer_count; i++) {
        const struct liveness *liveness = &collector->producers[i]->liveness;
        if (!collector->producers[i]->reader || liveness->ended)
            continue;
        struct candidate *of = candidate_with(candidates, liveness->pid);
        if (!liveness->pid)
            return false;
        if (of)
            of->is_recorded = true;
    }
    candidates_mark_launchers(candidates);
    return true;
}

static void mark_possible_ranks(struct dormant_search *search)
{
    for (int i = 0; i < search->candidates.count; i++) {
        struct candidate *candidate = &search->candidates.item[i];
        if (candidate->rank >= 0 || candidate->is_recorded || candidate->is_launcher)
            continue;
        struct candidate *parent = candidate_with(&search->candidates, candidate->parent);
        bool is_helper = parent && !parent->is_launcher && candidate_sign(parent) != NO_SIGN;
        candidate->may_be_rank = !is_helper && candidate_sign(candidate) == HAS_LIBRARY;
    }
}

bool dormant_add_text(struct collector *collector, int process, const char *text, uint64_t id,
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

bool dormant_add(struct collector *collector, int process, const struct dormant_notice *notice,
                 uint64_t now_ns)
{
    uint64_t id = *notice->place ? string_id(notice->place, strlen(notice->place)) : 0;
    struct record record = {
        .time_ns = now_ns, .api = API_notice_dormant, .device = RECORD_NO_DEVICE};
    record.range.text = id;
    record.range.domain = (uint64_t)notice->pid;
    record.range.id = (uint64_t)(int64_t)notice->rank;
    return dormant_add_text(collector, process, notice->place, id, now_ns) &&
           batch_add(collector->batch, process, &record);
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
    if (!dormant_add(collector, process, &(struct dormant_notice){rank, pid, place}, now_ns))
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

/* Processes whose rank no variable says; the analyzer counts them. */
static void report_unranked(struct collector *collector, int reporter, uint64_t now_ns)
{
    char place[CANDIDATE_PLACE_BYTES];
    struct dormant_search *search = collector->dormant;
    if (dormant_mark_recorded(collector, &search->candidates))
        mark_possible_ranks(search);
    for (int i = 0; i < search->candidates.count && batch_room(collector->batch) > 0; i++) {
        const struct candidate *candidate = &search->candidates.item[i];
        if (!candidate->may_be_rank)
            continue;
        candidate_place(candidate->pid, place);
        report_rank(collector, reporter, -1, candidate->pid, place, now_ns);
    }
    for (int i = search->reports; i-- > 0 && batch_room(collector->batch) > 0;) {
        const struct reported_rank *reported = &search->reported[i];
        const struct candidate *still =
            reported->rank < 0 ? candidate_with(&search->candidates, reported->pid) : NULL;
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

static void find_dormant(struct collector *collector, uint64_t now_ns)
{
    char place[CANDIDATE_PLACE_BYTES];
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
    candidates_find(&search->candidates, collector->options.directory);
    for (int rank = 0; rank < ranks && batch_room(collector->batch) > 0; rank++) {
        if (rankset_has(&search->recorded, rank))
            continue;
        const struct candidate *candidate = candidate_of(&search->candidates, rank);
        *place = '\0';
        if (candidate)
            candidate_place(candidate->pid, place);
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

static const uint64_t stopped_again_ns = 500000000;

static void report_change(struct collector *collector, struct producer *producer, bool is_stopped,
                          uint64_t now_ns)
{
    struct record record = {
        .time_ns = now_ns, .api = API_notice_stopped, .device = RECORD_NO_DEVICE};
    record.range.id = is_stopped;
    if (batch_add(collector->batch, producer->process, &record))
        producer->stopped = is_stopped;
}

static void find_stopped(struct collector *collector, uint64_t now_ns)
{
    uint64_t last_ns = collector->hang.last_call_ns;
    if (!last_ns || now_ns - last_ns < quiet_ns ||
        now_ns - collector->stopped_searched_ns < stopped_again_ns)
        return;
    collector->stopped_searched_ns = now_ns;
    for (int i = 0; i < collector->producer_count; i++) {
        struct producer *producer = collector->producers[i];
        bool is_stopped = liveness_is_stopped(&producer->liveness);
        if (producer->reader && is_stopped != producer->stopped)
            report_change(collector, producer, is_stopped, now_ns);
    }
}

void collector_find_idle(struct collector *collector, uint64_t now_ns)
{
    find_dormant(collector, now_ns);
    find_stopped(collector, now_ns);
}
