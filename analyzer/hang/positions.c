/* positions.c: groups processes by where they stand. */
#include "analyzer/hang/positions.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/model/process.h"

int position_feed(struct event *event)
{
    const struct record *record = event->record;
    struct process *process = event->process;
    if (record->position.place > PLACE_GONE)
        return ENGINE_SKIPPED;
    if (!process->slot.position)
        process->slot.position = calloc(1, sizeof *process->slot.position);
    if (!process->slot.position)
        return ENGINE_FAILED;
    *process->slot.position = (struct position){
        .place = (enum place_kind)record->position.place,
        .moves = record->position.flags & POSITION_MOVES,
        .works = record->position.flags & POSITION_WORKS,
        .text = process_string(process, record->position.text),
        .text_id = record->position.text,
        .lasts_s = record->position.lasts_s,
        .site = event->site,
    };
    return ENGINE_OK;
}

void position_free(struct position *position)
{
    free(position);
}

static bool is_same_position(const struct position *a, const struct position *b)
{
    return a->place == b->place && a->text_id == b->text_id && a->site.stack == b->site.stack;
}

bool position_waits(const struct position *position)
{
    return position->place == PLACE_OPERATION || position->place == PLACE_WAIT ||
           position->place == PLACE_SETUP;
}

static int place_order(const struct position *position)
{
    if (position_waits(position))
        return 0;
    return position->place == PLACE_GONE ? 2 : 1;
}

/* Those that wait, the most first; of as many, who waits in something that has a name. */
static int compare_positions(const void *left, const void *right)
{
    const struct position_group *a = left, *b = right;
    const struct position *here = a->example->slot.position, *there = b->example->slot.position;
    if (place_order(here) != place_order(there))
        return place_order(here) - place_order(there);
    if (rankset_count(&a->ranks) != rankset_count(&b->ranks))
        return rankset_count(&a->ranks) > rankset_count(&b->ranks) ? -1 : 1;
    if ((here->place == PLACE_WAIT) != (there->place == PLACE_WAIT))
        return here->place == PLACE_WAIT ? 1 : -1;
    return rankset_next(&a->ranks, 0) - rankset_next(&b->ranks, 0);
}

/* A set-up that waits polls, so that other system calls of it show nothing. */
static bool gets_on(const struct position *position)
{
    return position->place == PLACE_SETUP ? position->works
                                          : position->moves && position_waits(position);
}

static int add_position(struct position_groups *groups, const struct process *process)
{
    const struct position *position = process->slot.position;
    int at = 0;
    while (at < groups->count &&
           !is_same_position(groups->group[at].example->slot.position, position))
        at++;
    if (at == groups->count)
        groups->group[groups->count++] =
            (struct position_group){.example = process, .all_work = true};
    groups->group[at].all_work &= position->works;
    groups->some_move |= gets_on(position);
    groups->ranks++;
    return rankset_add(&groups->group[at].ranks, process_shown_rank(process));
}

int positions_group(const struct analyzer *analyzer, struct position_groups *groups)
{
    *groups = (struct position_groups){
        .group = calloc((size_t)analyzer->processes + 1, sizeof *groups->group)};
    if (!groups->group)
        return -1;
    for (int i = 0; i < analyzer->processes; i++) {
        const struct process *process = analyzer->process[i];
        if (!process || !process->slot.position || process_shown_rank(process) < 0)
            continue;
        if (add_position(groups, process)) {
            positions_free(groups);
            return -1;
        }
    }
    if (groups->count)
        qsort(groups->group, (size_t)groups->count, sizeof *groups->group, compare_positions);
    return 0;
}

void positions_free(struct position_groups *groups)
{
    for (int i = 0; i < groups->count; i++)
        rankset_free(&groups->group[i].ranks);
    free(groups->group);
    *groups = (struct position_groups){0};
}
