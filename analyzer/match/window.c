/* window.c: keeps the operations that not every member has passed yet. */
#include "analyzer/match/window.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/invariant.h"

enum { WINDOW_START = 16 };

struct block {
    uint64_t first, hash;
    uint32_t count;
};

struct window {
    struct slot *slot;   /* ring by number */
    uint32_t capacity;   /* power of two */
    uint64_t base, end;  /* numbers base .. end - 1 have slots */
    struct block *block; /* ring, oldest at block_head */
    uint32_t block_head, blocks;
};

struct variant *slot_variant(struct slot *slot, uint32_t i)
{
    return i ? &slot->more[i - 1] : &slot->first;
}

int slot_variant_of(struct slot *slot, int rank)
{
    for (uint32_t i = 0; i < slot->variants; i++)
        if (rankset_has(&slot_variant(slot, i)->ranks, rank))
            return (int)i;
    return -1;
}

void slot_clear(struct slot *slot)
{
    for (uint32_t i = 0; i < slot->variants; i++)
        rankset_free(&slot_variant(slot, i)->ranks);
    free(slot->more);
    *slot = (struct slot){0};
}

int slot_copy(struct slot *to, struct slot *from)
{
    struct slot copy = *from;
    copy.more = from->variants > 1 ? calloc(from->variants - 1, sizeof *copy.more) : NULL;
    if (from->variants > 1 && !copy.more)
        return -1;
    int failed = 0;
    for (uint32_t i = 0; i < from->variants; i++) {
        struct variant *variant = slot_variant(&copy, i);
        *variant = *slot_variant(from, i);
        variant->ranks = (struct rankset){0};
        failed |= rankset_copy(&variant->ranks, &slot_variant(from, i)->ranks);
    }
    slot_clear(to);
    *to = copy;
    if (failed)
        slot_clear(to);
    return failed;
}

void window_free(struct window *window)
{
    if (!window)
        return;
    for (uint64_t number = window->base; number < window->end; number++)
        slot_clear(&window->slot[number & (window->capacity - 1)]);
    free(window->slot);
    free(window->block);
    free(window);
}

void window_shrink(struct comm *comm)
{
    struct window *window = comm->slot.window;
    if (!window || window->base != window->end)
        return;
    free(window->slot);
    window->slot = NULL;
    window->capacity = 0;
}

uint64_t window_base(const struct comm *comm)
{
    return comm->slot.window ? comm->slot.window->base : 0;
}

struct slot *window_slot(const struct comm *comm, uint64_t number)
{
    struct window *window = comm->slot.window;
    if (!window || number < window->base || number >= window->end)
        return NULL;
    invariant(window->end - window->base <= window->capacity,
              "a window has a slot for each of its numbers");
    return &window->slot[number & (window->capacity - 1)];
}

static int window_grow(struct window *window)
{
    uint32_t capacity = window->capacity ? 2 * window->capacity : WINDOW_START;
    struct slot *slot = calloc(capacity, sizeof *slot);
    if (!slot)
        return -1;
    for (uint64_t number = window->base; number < window->end; number++)
        slot[number & (capacity - 1)] = window->slot[number & (window->capacity - 1)];
    free(window->slot);
    window->slot = slot;
    window->capacity = capacity;
    return 0;
}

static void pop_front(struct window *window)
{
    invariant(window->base < window->end, "a window that is empty has no front");
    slot_clear(&window->slot[window->base & (window->capacity - 1)]);
    window->base++;
}

/* Members that the window waits for: all that there are, as far as is known. */
static uint32_t expected_members(const struct comm *comm)
{
    uint32_t ranks = comm->nranks > 0 ? (uint32_t)comm->nranks : comm->ranks_max;
    return ranks > comm->members ? ranks : comm->members;
}

static void drop_passed(struct comm *comm)
{
    struct window *window = comm->slot.window;
    uint32_t expected = expected_members(comm);
    while (window->base < window->end &&
           window->slot[window->base & (window->capacity - 1)].passed >= expected)
        pop_front(window);
}

static uint64_t condensed_step(uint64_t hash, const struct signature *signature)
{
    return (hash ^ signature_hash(signature)) * UINT64_C(1099511628211);
}

/* Turns the oldest slots, to the end of their block, into one hash. A slot whose members already
 * differed is reported by then; its first variant stands for it. */
static int condense(struct window *window)
{
    if (!window->block && !(window->block = calloc(BLOCKS_MAX, sizeof *window->block)))
        return -1;
    struct block block = {.first = window->base};
    bool complete = true; /* a number whose records were lost makes the block's hash useless */
    do {
        const struct slot *slot = &window->slot[window->base & (window->capacity - 1)];
        complete = complete && slot->variants;
        block.hash = condensed_step(block.hash, &slot->first.signature);
        block.count++;
        pop_front(window);
    } while (window->base % BLOCK_OPERATIONS && window->base < window->end);
    if (!complete)
        block.count = 0; /* never the end of a comparison */
    if (window->blocks == BLOCKS_MAX) {
        window->block_head = (window->block_head + 1) % BLOCKS_MAX;
        window->blocks--;
    }
    invariant(!window->blocks ||
                  window->block[(window->block_head + window->blocks - 1) % BLOCKS_MAX].first <
                      block.first,
              "blocks of a window follow each other");
    window->block[(window->block_head + window->blocks++) % BLOCKS_MAX] = block;
    return 0;
}

/* Only members that were never seen are behind. */
static bool only_unseen_behind(const struct comm *comm, uint32_t passed)
{
    return passed >= comm->members;
}

/* Makes room for numbers up to `number`. */
static int window_reach(struct comm *comm, uint64_t number)
{
    struct window *window = comm->slot.window;
    if (window->base == window->end || number - window->base >= 4 * (uint64_t)WINDOW_MAX) {
        /* Empty, or a jump that no lag explains (lost records, a trace that begins late): begin
         * anew. */
        if (window->base == window->end ? number > window->end : number > window->base) {
            while (window->base < window->end)
                pop_front(window);
            window->base = window->end = number;
        }
    }
    while (window->end <= number) {
        uint64_t span = window->end - window->base;
        const struct slot *front = span ? window_slot(comm, window->base) : NULL;
        if (front && span >= WINDOW_UNSEEN && only_unseen_behind(comm, front->passed))
            pop_front(window);
        else if (span >= WINDOW_MAX && condense(window))
            return -1;
        if (window->end - window->base == window->capacity && window_grow(window))
            return -1;
        window->slot[window->end++ & (window->capacity - 1)] = (struct slot){0};
    }
    return 0;
}

/* The member is past `from` .. `to` - 1 although its records of these were lost. */
static void pass_gap(struct comm *comm, uint64_t from, uint64_t to)
{
    struct window *window = comm->slot.window;
    if (from < window->base)
        from = window->base;
    for (uint64_t number = from; number < to && number < window->end; number++)
        window_slot(comm, number)->passed++;
}

/* Compares a late member with what its peers did long ago. */
static bool condensed_differs(struct window *window, struct member *member, uint64_t number,
                              const struct signature *signature, uint64_t *block_first)
{
    uint32_t low = 0, high = window->blocks;
    while (low < high) { /* the last block that begins at or below number */
        uint32_t middle = (low + high) / 2;
        if (window->block[(window->block_head + middle) % BLOCKS_MAX].first <= number)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low)
        return false;
    const struct block *block = &window->block[(window->block_head + low - 1) % BLOCKS_MAX];
    if (number == block->first)
        member->condensed.hash = 0;
    else if (number != member->condensed.next)
        return false; /* it came in the middle of the block: this one can't be compared */
    member->condensed.hash = condensed_step(member->condensed.hash, signature);
    member->condensed.next = number + 1;
    *block_first = block->first;
    return number + 1 == block->first + block->count && member->condensed.hash != block->hash;
}

/* Gives each variant its ranks, now that there is a second one. */
static int name_ranks(struct comm *comm, struct slot *slot, uint64_t number,
                      const struct member *newcomer)
{
    int failed = 0;
    for (uint32_t i = 0; i < comm->members; i++)
        if (comm->member[i] != newcomer && comm->member[i]->next > number)
            failed |= rankset_add(&slot->first.ranks, comm->member[i]->rank);
    return failed;
}

static int add_variant(struct slot *slot, const struct signature *signature,
                       const struct site *site)
{
    struct variant *more = realloc(slot->more, slot->variants * sizeof *more);
    if (!more)
        return -1;
    slot->more = more;
    more[slot->variants - 1] = (struct variant){.signature = *signature, .site = *site};
    slot->variants++;
    return 0;
}

static int slot_pass(struct comm *comm, struct slot *slot, struct member *member, uint64_t number,
                     const struct signature *signature, const struct site *site,
                     struct window_answer *answer)
{
    invariant(slot->variants || !slot->more, "a slot without a variant holds nothing");
    answer->slot = slot;
    slot->passed++;
    if (!slot->variants) {
        slot->first = (struct variant){.signature = *signature, .site = *site};
        slot->variants = 1;
        return 0;
    }
    uint32_t i = 0;
    while (i < slot->variants && signature_differs(&slot_variant(slot, i)->signature, signature))
        i++;
    if (i == slot->variants) {
        answer->fresh = slot->variants == 1;
        if ((answer->fresh && name_ranks(comm, slot, number, member)) ||
            add_variant(slot, signature, site))
            return -1;
    }
    struct variant *variant = slot_variant(slot, i);
    if (!variant->signature
             .group_size) { /* so that a third member's group is compared with a group */
        variant->signature.group_size = signature->group_size;
        variant->signature.group_index = signature->group_index;
        variant->signature.group_hash = signature->group_hash;
    }
    answer->result = slot->variants > 1 ? WINDOW_DIFFERS : WINDOW_MATCHES;
    return slot->variants > 1 ? rankset_add(&variant->ranks, member->rank) : 0;
}

int window_pass(struct comm *comm, struct member *member, uint64_t number,
                const struct signature *signature, const struct site *site,
                struct window_answer *answer)
{
    *answer = (struct window_answer){0};
    if (!comm->slot.window && !(comm->slot.window = calloc(1, sizeof *comm->slot.window)))
        return -1;
    struct window *window = comm->slot.window;
    if (number < member->next)
        return 0;      /* a number twice: a damaged trace, or two threads on one communicator */
    drop_passed(comm); /* what the last call answered with */
    if (number >= window->base) {
        if (window_reach(comm, number))
            return -1;
        pass_gap(comm, member->next, number);
        struct slot *slot = window_slot(comm, number);
        if (slot && slot_pass(comm, slot, member, number, signature, site, answer))
            return -1;
    } else if (condensed_differs(window, member, number, signature, &answer->block_first)) {
        answer->result = WINDOW_BLOCK_DIFFERS;
    }
    member->next = number + 1;
    invariant(!answer->slot || answer->slot->variants, "a slot that a member passed has its call");
    if (answer->result == WINDOW_MATCHES) {
        drop_passed(comm);
        answer->slot = NULL;
    }
    return 0;
}

int window_skip(struct comm *comm, struct member *member, uint64_t next)
{
    if (next <= member->next)
        return 0;
    if (!comm->slot.window && !(comm->slot.window = calloc(1, sizeof *comm->slot.window)))
        return -1;
    drop_passed(comm);
    if (next > comm->slot.window->base && window_reach(comm, next - 1))
        return -1;
    pass_gap(comm, member->next, next);
    member->next = next;
    drop_passed(comm);
    return 0;
}
