/* graphs.c: remembers which collectives were captured into which graph. */
#include "interpose/graphs/graphs.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#include "interpose/shim/forget.h"
#include "interpose/shim/handles.h"

enum { KEYS_MAX = 4096, LIST_FIRST = 62 };

/* A capture's id, a graph or an instance, and its list. */
struct graph_key {
    enum graph_key_kind kind;
    uint64_t value;
    struct graph_operations *list;
};

static struct {
    _Atomic uint32_t locked;
    _Atomic uint32_t keys; /* in use; 0: nothing to find */
    uint32_t end;          /* all that are in use lie below */
    struct graph_key key[KEYS_MAX];
    struct handles seen; /* instances whose creation was recorded */
} graphs;

void graphs_forked(void)
{
    forget_state(&graphs, sizeof graphs);
}

static void lock_graphs(void)
{
    while (atomic_exchange_explicit(&graphs.locked, 1, memory_order_acquire))
        sched_yield();
}

static void unlock_graphs(void)
{
    atomic_store_explicit(&graphs.locked, 0, memory_order_release);
}

static size_t operations_bytes(uint32_t room)
{
    return sizeof(struct graph_operations) + room * sizeof(struct graph_operation);
}

static struct graph_operations *create_operations(uint32_t room)
{
    struct graph_operations *list = mmap(NULL, operations_bytes(room), PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (list == MAP_FAILED)
        return NULL;
    list->references = 1;
    list->room = room;
    return list;
}

static void release_operations(struct graph_operations *list)
{
    if (list && !--list->references)
        munmap(list, operations_bytes(list->room));
}

/* With the lock: the key, or NULL. */
static struct graph_key *find_key(enum graph_key_kind kind, uint64_t value)
{
    for (uint32_t i = 0; i < graphs.end; i++)
        if (graphs.key[i].kind == kind && graphs.key[i].value == value)
            return &graphs.key[i];
    return NULL;
}

static void remove_key(enum graph_key_kind kind, uint64_t value)
{
    struct graph_key *key = find_key(kind, value);
    if (!key)
        return;
    release_operations(key->list);
    key->kind = KEY_FREE;
    atomic_fetch_sub(&graphs.keys, 1);
    while (graphs.end && graphs.key[graphs.end - 1].kind == KEY_FREE)
        graphs.end--;
}

/* Takes over a reference to the list; one that finds no place is not replayed. */
static void add_key(enum graph_key_kind kind, uint64_t value, struct graph_operations *list)
{
    remove_key(kind, value);
    if (!list)
        return;
    uint32_t i = 0;
    while (i < graphs.end && graphs.key[i].kind != KEY_FREE)
        i++;
    if (i == KEYS_MAX) {
        release_operations(list);
        return;
    }
    graphs.key[i] = (struct graph_key){kind, value, list};
    if (i == graphs.end)
        graphs.end++;
    atomic_fetch_add(&graphs.keys, 1);
}

static struct graph_operations *share_operations(enum graph_key_kind kind, uint64_t value)
{
    struct graph_key *key = find_key(kind, value);
    if (key)
        key->list->references++;
    return key ? key->list : NULL;
}

/* `to` does from now on what `from` does. */
void graphs_share(enum graph_key_kind to_kind, uint64_t to, enum graph_key_kind from_kind,
                  uint64_t from)
{
    if (!atomic_load_explicit(&graphs.keys, memory_order_relaxed))
        return;
    lock_graphs();
    add_key(to_kind, to, share_operations(from_kind, from));
    unlock_graphs();
}

void graphs_drop(enum graph_key_kind kind, uint64_t value)
{
    if (!atomic_load_explicit(&graphs.keys, memory_order_relaxed))
        return;
    lock_graphs();
    remove_key(kind, value);
    unlock_graphs();
}

/* A list of its own with the same operations. */
static struct graph_operations *copy_operations(const struct graph_operations *from, uint32_t room)
{
    struct graph_operations *list = create_operations(room);
    if (!list)
        return NULL;
    memcpy(list->operation, from->operation, from->count * sizeof *from->operation);
    list->count = from->count;
    return list;
}

/* A list with room for one more, in the place of a full one. */
static struct graph_operations *operations_with_room(struct graph_key *key)
{
    struct graph_operations *full = key->list;
    if (full->count < full->room)
        return full;
    struct graph_operations *list = copy_operations(full, full->room * 2);
    if (!list)
        return NULL;
    key->list = list;
    release_operations(full);
    return list;
}

/* A graph's list may be shared by instances, which do not change with it: the capture has a copy.
 */
void graphs_continue(uint64_t capture, uint64_t graph)
{
    if (!atomic_load_explicit(&graphs.keys, memory_order_relaxed))
        return;
    lock_graphs();
    const struct graph_key *key = find_key(KEY_GRAPH, graph);
    if (key)
        add_key(KEY_CAPTURE, capture, copy_operations(key->list, key->list->room));
    unlock_graphs();
}

void graphs_add(uint64_t capture, struct local_member *member, const struct record *record)
{
    lock_graphs();
    struct graph_key *key = find_key(KEY_CAPTURE, capture);
    if (!key) {
        add_key(KEY_CAPTURE, capture, create_operations(LIST_FIRST));
        key = find_key(KEY_CAPTURE, capture);
    }
    struct graph_operations *list = key ? operations_with_room(key) : NULL;
    if (list)
        list->operation[list->count++] = (struct graph_operation){member, *record};
    unlock_graphs();
}

struct graph_operations *graphs_take(uint64_t exec)
{
    if (!atomic_load_explicit(&graphs.keys, memory_order_relaxed))
        return NULL;
    lock_graphs();
    struct graph_operations *list = share_operations(KEY_EXEC, exec);
    unlock_graphs();
    return list;
}

void graphs_give_back(struct graph_operations *list)
{
    lock_graphs();
    release_operations(list);
    unlock_graphs();
}

void graphs_see(uint64_t exec)
{
    handles_add(&graphs.seen, exec);
}

void graphs_unsee(uint64_t exec)
{
    handles_remove(&graphs.seen, exec);
}

bool graphs_is_seen(uint64_t exec)
{
    return handles_has(&graphs.seen, exec);
}
