/* view.c: the state of members, for tables. */
#include <stdlib.h>
#include <string.h>

#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"
#include "analyzer/model/progress.h"
#include "analyzer/hang/where.h"

enum {
    CALL_BYTES = 256,
    UNSEEN_MAX = 4096
}; /* ranks without a trace that are shown of one communicator */

static void label_view(const struct comm *comm, struct member_state *view)
{
    if (*comm->name)
        comm_label(comm, view->label);
}

/* The texts of the member before: most members of a communicator have the same. */
struct shared_texts {
    struct where where;
    char *words; /* of where.act; NULL: none yet */
    struct signature last;
    char call[CALL_BYTES]; /* of `last`; "": none yet */
};

static bool has_words_of(const struct shared_texts *shared, const struct act *act)
{
    const struct act *other = &shared->where.act;
    return shared->words && act_equal(act, other) && !strcmp(act->wait.title, other->wait.title) &&
           !strcmp(act->behind.title, other->behind.title);
}

static const char *where_words(struct shared_texts *shared, const struct where *where)
{
    if (has_words_of(shared, &where->act))
        return shared->words;
    free(shared->words);
    shared->words = act_words(&where->act);
    shared->where = *where;
    if (where->act.name == where->ranks)
        shared->where.act.name = shared->where.ranks;
    return shared->words ? shared->words : "";
}

static const char *last_call_words(struct shared_texts *shared, const struct member *member)
{
    if (!member->has_last)
        return "";
    if (!*shared->call || memcmp(&shared->last, &member->last, sizeof shared->last) != 0) {
        shared->last = member->last;
        signature_text(&shared->last, shared->call, sizeof shared->call);
    }
    return shared->call;
}

static void view_member(const struct wait_graph *graph, const struct member *member,
                        struct shared_texts *shared,
                        void (*visit)(void *context, const struct member_state *member),
                        void *context)
{
    struct where where;
    where_find(member->process->ended ? NULL : graph, member->process, member, &where);
    struct member_state view = {
        .comm = member->comm->id,
        .rank = member->rank,
        .shown_rank = member_shown_rank(member),
        .nranks = member->comm->nranks,
        .process = member->process->index,
        .device = member->device,
        .issued = member->next,
        .started = member->started,
        .done = member->done,
        .p2p = member->calls_p2p,
        .destroyed = member->destroyed,
        .ended = member->process->ended,
        .how = member->process->end.end.how,
        .value = member->process->end.end.value,
        .where = where_words(shared, &where),
        .phase = process_string(member->process, where.site.phase),
        .stack = where.site.stack,
        .stack_is_address = where.site.stack_is_address,
        .since_ns = where.site.time_ns,
        .last_call = last_call_words(shared, member),
    };
    label_view(member->comm, &view);
    visit(context, &view);
}

static void view_unseen(const struct comm *comm, int rank,
                        void (*visit)(void *context, const struct member_state *member),
                        void *context)
{
    struct member_state view = {
        .comm = comm->id,
        .rank = rank,
        .shown_rank = rank,
        .nranks = comm->nranks,
        .process = -1,
        .device = RECORD_NO_DEVICE,
        .where = "not seen",
        .phase = "",
        .last_call = "",
    };
    label_view(comm, &view);
    visit(context, &view);
}

void analyzer_visit_members(struct analyzer *analyzer,
                            void (*visit)(void *context, const struct member_state *member),
                            void *context)
{
    struct wait_graph graph;
    struct shared_texts shared = {.words = NULL};
    bool built =
        wait_graph_build(analyzer, analyzer->finished ? MOMENT_FINAL : MOMENT_TICK, &graph) == 0;
    for (const struct comm *comm = analyzer->first_comm; comm; comm = comm->next) {
        int rank = 0, unseen = 0;
        for (uint32_t i = 0; i < comm->members; i++) {
            for (; rank < comm->member[i]->rank && comm->nranks > 0 && rank < comm->nranks; rank++)
                if (unseen++ < UNSEEN_MAX)
                    view_unseen(comm, rank, visit, context);
            view_member(built ? &graph : NULL, comm->member[i], &shared, visit, context);
            rank = comm->member[i]->rank + 1;
        }
        for (; rank < comm->nranks && unseen++ < UNSEEN_MAX; rank++)
            view_unseen(comm, rank, visit, context);
    }
    if (built)
        wait_graph_free(&graph);
    free(shared.words);
}

uint64_t analyzer_phase(const struct analyzer *analyzer, int process, uint32_t tid)
{
    const struct process *known =
        process >= 0 && process < analyzer->processes ? analyzer->process[process] : NULL;
    const struct thread *thread = known ? known->last_thread : NULL;
    if (known && (!thread || thread->tid != tid))
        TABLE_FIND(known->threads, &tid, thread);
    return thread ? thread_phase(thread) : 0;
}

bool analyzer_member_numbers(struct analyzer *analyzer, uint64_t comm, int rank,
                             struct member_numbers *numbers)
{
    const struct member *member = member_find(analyzer, comm, rank);
    if (!member)
        return false;
    *numbers = (struct member_numbers){.nranks = member->comm->nranks,
                                       .issued = member->next,
                                       .started = member->started,
                                       .done = member->done,
                                       .messages = member->calls_p2p,
                                       .is_gone = member->comm->is_gone};
    return true;
}

static void note_background(struct background_waits *waits, uint64_t began_ns)
{
    if (!waits->since_ns || began_ns < waits->since_ns)
        waits->since_ns = began_ns;
}

static int note_message_in_background(void *context, const struct pending *pending)
{
    if (pending->channel)
        note_background(context, pending->site.time_ns);
    return 0;
}

bool analyzer_is_one_rank(const struct analyzer *analyzer, int process)
{
    return process >= 0 && process < analyzer->processes && analyzer->process[process] &&
           !analyzer->process[process]->several_ranks;
}

void analyzer_background_waits(const struct analyzer *analyzer, int process,
                               struct background_waits *waits)
{
    *waits = (struct background_waits){0};
    struct process *known =
        process >= 0 && process < analyzer->processes ? analyzer->process[process] : NULL;
    if (!known || known->ended)
        return;
    progress_visit_first(known, 1, note_message_in_background, waits);
    for (const struct member *member = known->members; member; member = member->process_next) {
        if (member->aborted)
            continue;
        if (member->initialising)
            note_background(waits, member->arrival.time_ns);
        if (member->background.goes_on)
            note_background(waits, member->background.site.time_ns);
        waits->initialises |= member->initialising;
    }
}
