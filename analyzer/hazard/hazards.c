/* hazards.c: finds conflicting accesses that nothing orders. */
#include "analyzer/hazard/hazards.h"

#include <stdlib.h>

#include "analyzer/model/array.h"
#include "analyzer/model/graphs.h"
#include "analyzer/hazard/hazard_sites.h"
#include "analyzer/model/process.h"
#include "lib/trace/names.h"

enum { COVERED_MAX = 32, ROWS_MAX = 16 };

struct hazards {
    bool off; /* records were lost: order may be missing */
    struct intervals ranges;
    struct hazard_sites sites;
};

/* A piece of work that is looked up. */
struct search {
    struct process *process;
    const struct stream_state *stream;
    const struct flight *later;
    const struct use *use;
    bool no_inferred;
    struct flight *best; /* that it conflicts with; NULL */
    struct conflict conflict;
    struct interval *covered[COVERED_MAX];
    uint32_t covered_count;
    struct interval *same; /* one of these, of just this range */
};

static const struct hazard_rule *const rules[] = {&hazard_write, &hazard_read, &hazard_fill,
                                                  &hazard_operations};

struct hazards *hazards_of(struct process *process)
{
    if (!process->slot.hazards)
        process->slot.hazards = calloc(1, sizeof *process->slot.hazards);
    return process->slot.hazards;
}

bool hazards_are_off(const struct hazards *hazards)
{
    return hazards && hazards->off;
}

void hazards_switch_off(struct hazards *hazards)
{
    hazards->off = true;
    hazard_sites_drop_unreported(&hazards->sites);
    intervals_free(&hazards->ranges);
}

void hazards_free(struct hazards *hazards)
{
    if (!hazards)
        return;
    hazard_sites_free(&hazards->sites);
    intervals_free(&hazards->ranges);
    free(hazards);
}

static const struct hazard_rule *rule_of(const struct conflict *conflict)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i]->applies(conflict))
            return rules[i];
    return NULL;
}

/* Calls of one communicator in one ncclGroup run at the same time. A send to itself and its receive
 * at one address move nothing. */
static bool is_one_launch(const struct flight *a, const struct flight *b)
{
    return a->kind == FLIGHT_OPERATION && b->kind == FLIGHT_OPERATION && a->member == b->member &&
           a->record.op.group && a->record.op.group == b->record.op.group &&
           a->place.position == b->place.position;
}

static bool is_to_itself(const struct flight *flight)
{
    return api_class_of(flight->record.api) == CLASS_P2P &&
           !kind_has(flight->record.api, KIND_ONE_SIDED) &&
           flight->record.op.root == flight->member->rank;
}

static bool covers(const struct search *search, const struct interval *range)
{
    const struct stretch *stretch = &search->use->stretch;
    const struct access *access = &search->use->access;
    return range->begin >= stretch->begin && range->end <= stretch->end &&
           stretch->pitch <= stretch->width && (access->writes || !range->access.writes) &&
           access->sureness <= range->access.sureness &&
           (search->later->kind == FLIGHT_OPERATION || range->flight->kind != FLIGHT_OPERATION);
}

static bool is_better(const struct interval *range, const struct search *search)
{
    const struct access *than = &search->conflict.before;
    if (!search->best || range->access.sureness != than->sureness)
        return !search->best || range->access.sureness < than->sureness;
    if (range->access.writes != than->writes)
        return range->access.writes;
    return range->flight->place.position > search->best->place.position;
}

static bool was_reported(const struct flight *flight, enum certainty certainty)
{
    return flight->reported == FLIGHT_REPORTED_CERTAIN ||
           (flight->reported && certainty == POSSIBLE);
}

static void consider(struct search *search, struct interval *range)
{
    struct conflict conflict = {
        .process = search->process,
        .earlier = range->flight,
        .later = search->later,
        .before = range->access,
        .after = search->use->access,
    };
    if (!is_better(range, search))
        return;
    const struct hazard_rule *rule = rule_of(&conflict);
    enum certainty certainty = rule ? rule->certainty(&conflict) : POSSIBLE;
    if (!rule || (certainty == POSSIBLE && search->no_inferred) ||
        was_reported(range->flight, certainty) || was_reported(search->later, certainty))
        return;
    search->best = range->flight;
    search->conflict = conflict;
}

static void look_at(void *context, struct interval *range)
{
    struct search *search = context;
    const struct flight *earlier = range->flight, *later = search->later;
    if (earlier == later || !stretch_meets(&search->use->stretch, range->begin, range->end))
        return;
    bool conflicts = (range->access.writes || search->use->access.writes) &&
                     (earlier->kind == FLIGHT_OPERATION || later->kind == FLIGHT_OPERATION);
    bool is_covered = search->covered_count < COVERED_MAX && covers(search, range);
    if (!conflicts && !is_covered)
        return;
    bool one_launch = is_one_launch(earlier, later);
    if (one_launch && is_to_itself(earlier) && is_to_itself(later) &&
        range->begin == search->use->stretch.begin)
        return;
    enum order order = one_launch ? ORDER_NONE
                                  : order_before(search->process, &earlier->place, search->stream);
    if (order == ORDER_BEFORE && is_covered)
        search->covered[search->covered_count++] = range;
    else if (order == ORDER_NONE && conflicts)
        consider(search, range);
}

static bool was_seen(void *process, const struct interval *range)
{
    return order_was_seen(process, &range->flight->place);
}

static int enter(struct process *process, struct intervals *ranges, const struct use *use,
                 struct flight *flight)
{
    if (intervals_want_sweep(ranges)) {
        intervals_remove_where(ranges, was_seen, process);
        intervals_swept(ranges);
    }
    const struct stretch *stretch = &use->stretch;
    if (stretch->pitch <= stretch->width)
        return intervals_add(ranges, stretch->begin, stretch->end, use->access, flight);
    uint64_t begin = stretch->begin;
    for (int row = 0; row < ROWS_MAX && begin < stretch->end; row++, begin += stretch->pitch)
        if (intervals_add(ranges, begin, begin + stretch->width, use->access, flight))
            return -1;
    return 0;
}

/* What is covered goes; one of just the same range is kept for who takes its place. */
static void drop_covered(struct search *search, struct intervals *ranges)
{
    const struct stretch *stretch = &search->use->stretch;
    search->same = NULL;
    for (uint32_t i = 0; i < search->covered_count; i++) {
        struct interval *range = search->covered[i];
        if (!search->same && range->begin == stretch->begin && range->end == stretch->end)
            search->same = range;
        else
            intervals_remove(ranges, range);
    }
}

static void report_conflict(struct search *search, struct flight *later)
{
    const struct hazard_rule *rule = rule_of(&search->conflict);
    search->best->reported = later->reported = hazard_found(rule, &search->conflict);
}

static void look_up(struct search *search, const struct intervals *ranges)
{
    search->covered_count = 0;
    intervals_visit(ranges, search->use->stretch.begin, search->use->stretch.end, look_at, search);
}

/* Its own uses do not conflict with each other. */
static void put_access(struct analyzer *analyzer, struct process *process,
                       const struct stream_state *stream, struct intervals *ranges,
                       struct flight *flight, const struct use *use, uint32_t uses)
{
    struct search search = {
        .process = process,
        .stream = stream,
        .later = flight,
        .no_inferred = analyzer->options.no_inferred,
    };
    flight->ranges++; /* ours */
    for (uint32_t i = 0; i < uses && !analyzer->failed; i++) {
        if (search.no_inferred && use[i].access.sureness == GUESSED)
            continue;
        search.use = &use[i];
        look_up(&search, ranges);
        if (search.best &&
            (flight->kind == FLIGHT_KERNEL || i + 1 == uses)) { /* pointers stand for themselves */
            report_conflict(&search, flight);
            search.best = NULL;
        }
        drop_covered(&search, ranges);
        if (search.same)
            intervals_take_over(search.same, use[i].access, flight);
        else if (enter(process, ranges, &use[i], flight))
            analyzer->failed = true;
    }
    if (!--flight->ranges)
        free(flight);
}

void hazards_put(struct analyzer *analyzer, const struct event *event, const struct work *work,
                 enum flight_kind kind, const struct use *use, uint32_t uses)
{
    struct process *process = event->process;
    struct hazards *hazards = hazards_of(process);
    if (!hazards)
        analyzer->failed = true;
    if (!hazards || hazards->off || !work->stream || !uses)
        return;
    struct flight *flight = malloc(sizeof *flight);
    if (!flight) {
        analyzer->failed = true;
        return;
    }
    bool is_captured = work->stream->is_captured;
    if (kind != FLIGHT_OPERATION && event->thread->group_calls && !is_captured)
        hazards_check_group(event, work, kind, use, uses);
    *flight = (struct flight){
        .kind = (uint8_t)kind,
        .from_graph = is_captured,
        .place = work->place,
        .member = event->member,
        .record = *event->record,
        .site = event->site,
    };
    struct intervals *ranges = is_captured ? capture_intervals(work->stream->capture)
                                           : &hazards->ranges;
    if (event->record->flags &
        RECORD_FLAG_LATE) { /* its conflicts are those of who comes after it */
        flight->ranges++;
        for (uint32_t i = 0; i < uses && !analyzer->failed; i++)
            analyzer->failed = enter(process, ranges, &use[i], flight) != 0;
        if (!--flight->ranges)
            free(flight);
        return;
    }
    put_access(analyzer, process, work->stream, ranges, flight, use, uses);
}

static bool is_not_entered(const struct intervals *ranges, uint32_t i)
{
    return !ranges->node[i].flight || !ranges->node[i].flight->copy;
}

/* Each piece of captured work runs once more, at the place of the launch. Nothing in the graph is
 * looked up against the rest of it: that was done in the capture. */
static int copy_content(struct analyzer *analyzer, const struct event *event,
                        const struct intervals *content)
{
    struct process *process = event->process;
    const struct work *work = &event->thread->work;
    struct search search = {
        .process = process,
        .stream = work->stream,
        .no_inferred = analyzer->options.no_inferred,
    };
    for (uint32_t i = 1; i <= content->used; i++) {
        const struct interval *range = &content->node[i];
        if (!range->flight)
            continue;
        if (!range->flight->copy) {
            struct flight *copy = malloc(sizeof *copy);
            if (!copy)
                return -1;
            *copy = *range->flight;
            copy->ranges = 1;
            copy->reported = FLIGHT_UNREPORTED;
            copy->place = work->place;
            copy->site.time_ns = event->site.time_ns;
            range->flight->copy = copy;
        }
        struct use use = {{range->begin, range->end, range->end - range->begin, 0}, range->access};
        search.later = range->flight->copy;
        search.use = &use;
        search.best = NULL;
        look_up(&search, &process->slot.hazards->ranges);
        if (search.best)
            report_conflict(&search, range->flight->copy);
        for (uint32_t k = 0; k < search.covered_count; k++)
            intervals_remove(&process->slot.hazards->ranges, search.covered[k]);
    }
    return 0;
}

void hazards_launch_graph(struct analyzer *analyzer, const struct event *event)
{
    struct process *process = event->process;
    const struct stream_state *stream = event->thread->work.stream;
    struct hazards *hazards = hazards_of(process);
    const struct graph_content *graph = graph_launched(process, event->record->graph.exec);
    if (!hazards)
        analyzer->failed = true;
    if (!hazards || !graph || hazards->off || !stream || stream->is_captured)
        return;
    const struct intervals *content = &graph->ranges;
    int result = copy_content(analyzer, event, content);
    for (uint32_t i = 1; i <= content->used && !result; i++) {
        if (is_not_entered(content, i))
            continue;
        const struct interval *range = &content->node[i];
        struct use use = {{range->begin, range->end, range->end - range->begin, 0}, range->access};
        result = enter(process, &hazards->ranges, &use, range->flight->copy);
    }
    for (uint32_t i = 1; i <= content->used; i++) {
        if (is_not_entered(content, i))
            continue;
        struct flight *copy = content->node[i].flight->copy;
        content->node[i].flight->copy = NULL;
        if (!--copy->ranges)
            free(copy);
    }
    if (result)
        analyzer->failed = true;
}

struct in_flight {
    const struct process *process;
    const struct stream_state *stream;
    const struct flight *found;
};

static void look_for_operation(void *context, struct interval *range)
{
    struct in_flight *search = context;
    const struct flight *flight = range->flight;
    if (flight->kind != FLIGHT_OPERATION ||
        (search->found && search->found->place.position >= flight->place.position))
        return;
    if (!search->stream
            ? order_was_seen(search->process, &flight->place) ||
                  flight->place.position <= search->process->order.unknown
            : order_before(search->process, &flight->place, search->stream) != ORDER_NONE)
        return;
    search->found = flight;
}

const struct flight *hazards_in_flight(struct process *process, uint64_t begin, uint64_t end,
                                       const struct stream_state *stream)
{
    struct in_flight search = {process, stream, NULL};
    if (process->slot.hazards)
        intervals_visit(&process->slot.hazards->ranges, begin, end, look_for_operation, &search);
    return search.found;
}

void hazards_forget_memory(struct process *process, uint64_t begin, uint64_t end)
{
    if (process->slot.hazards)
        intervals_remove_meeting(&process->slot.hazards->ranges, begin, end);
}

struct leaving_member {
    uint64_t comm;
    int rank;
};

static bool is_of_member(void *key, const struct interval *range)
{
    const struct leaving_member *leaving = key;
    const struct member *member = range->flight->member;
    return member && member->comm->id == leaving->comm &&
           (leaving->rank == RECORD_NO_RANK || member->rank == leaving->rank);
}

void hazards_forget_member(struct process *process, uint64_t comm, int rank)
{
    struct leaving_member leaving = {comm, rank};
    if (process->slot.hazards)
        intervals_remove_where(&process->slot.hazards->ranges, is_of_member, &leaving);
}

struct draft *hazards_found(struct process *process, const struct hazard_key *key, uint64_t time_ns)
{
    struct hazards *hazards = hazards_of(process);
    return hazards && !hazards->off ? hazard_sites_found(&hazards->sites, key, time_ns) : NULL;
}

void hazards_visit_members(const struct process *process,
                           void (*visit)(void *context, const struct member *member), void *context)
{
    if (process->slot.hazards)
        intervals_visit_members(&process->slot.hazards->ranges, visit, context);
}

void hazards_report(struct analyzer *analyzer)
{
    for (int i = 0; i < analyzer->processes; i++) {
        struct hazards *hazards = analyzer->process[i] ? analyzer->process[i]->slot.hazards : NULL;
        if (hazards)
            hazard_sites_report(analyzer, &hazards->sites);
    }
}
