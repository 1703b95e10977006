/* handles.c: a hash table of the handles that are alive. */
#include "emu/core/handles.h"

#include <driver_types.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

/* Open addressing with linear probing; GONE keeps probe chains whole. */
enum { FIRST_SLOTS = 256, GONE = -1 };

struct handle_slot {
    const void *address;
    void *object;
    int kind;
};

static struct {
    pthread_rwlock_t lock;
    struct handle_slot *slots;
    size_t count, used; /* used counts the GONE ones too */
} table = {.lock = PTHREAD_RWLOCK_INITIALIZER};

static size_t first_slot_of(const void *address, size_t count)
{
    return (((uintptr_t)address >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (count - 1);
}

/* The slot that holds `address`, or NULL. */
static struct handle_slot *find_handle_slot(const void *address)
{
    if (!table.count)
        return NULL;
    for (size_t i = first_slot_of(address, table.count); table.slots[i].kind != HANDLE_NONE;
         i = (i + 1) & (table.count - 1))
        if (table.slots[i].address == address && table.slots[i].kind != GONE)
            return &table.slots[i];
    return NULL;
}

static void put_slot(struct handle_slot *slots, size_t count, struct handle_slot entry)
{
    size_t i = first_slot_of(entry.address, count);

    while (slots[i].kind != HANDLE_NONE)
        i = (i + 1) & (count - 1);
    slots[i] = entry;
}

/* Makes room for one more and sweeps out what is gone. */
static int grow_slots(void)
{
    size_t live = 0, count = FIRST_SLOTS;
    struct handle_slot *slots;

    if (table.count && (table.used + 1) * 2 < table.count)
        return 0;
    for (size_t i = 0; i < table.count; i++)
        live += table.slots[i].kind > HANDLE_NONE;
    while (count < (live + 1) * 4)
        count *= 2;
    slots = calloc(count, sizeof(*slots));
    if (!slots)
        return cudaErrorMemoryAllocation;
    for (size_t i = 0; i < table.count; i++)
        if (table.slots[i].kind > HANDLE_NONE)
            put_slot(slots, count, table.slots[i]);
    free(table.slots);
    table.slots = slots;
    table.count = count;
    table.used = live;
    return 0;
}

int emu_handles_add_with(const void *address, enum handle_kind kind, void *object)
{
    int error;

    pthread_rwlock_wrlock(&table.lock);
    error = grow_slots();
    if (!error) {
        put_slot(table.slots, table.count, (struct handle_slot){address, object, kind});
        table.used++;
    }
    pthread_rwlock_unlock(&table.lock);
    return error;
}

int emu_handles_add(void *object, enum handle_kind kind)
{
    return emu_handles_add_with(object, kind, object);
}

int emu_handles_remove(const void *object, enum handle_kind kind)
{
    struct handle_slot *slot;

    pthread_rwlock_wrlock(&table.lock);
    slot = find_handle_slot(object);
    if (slot && slot->kind == (int)kind)
        slot->kind = GONE;
    else
        slot = NULL;
    pthread_rwlock_unlock(&table.lock);
    return slot != NULL;
}

enum handle_kind emu_handles_kind(const void *object)
{
    const struct handle_slot *slot;
    int kind;

    pthread_rwlock_rdlock(&table.lock);
    slot = find_handle_slot(object);
    kind = slot ? slot->kind : HANDLE_NONE;
    pthread_rwlock_unlock(&table.lock);
    return kind;
}

void *emu_handles_get(const void *address, enum handle_kind kind)
{
    const struct handle_slot *slot;
    void *object;

    pthread_rwlock_rdlock(&table.lock);
    slot = find_handle_slot(address);
    object = slot && slot->kind == (int)kind ? slot->object : NULL;
    pthread_rwlock_unlock(&table.lock);
    return object;
}
