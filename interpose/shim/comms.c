/* comms.c: the tables of communicators and of PreMulSum operators that live in this process. */
#include "interpose/shim/comms.h"

#include <string.h>
#include <sys/mman.h>

#include "interpose/shim/forget.h"
#include "interpose/shim/shim.h"

#define COMM_GONE    ((void *)1) /* was used; searches continue behind it */
#define COMM_CLAIMED ((void *)2) /* being filled in */

enum { PREMUL_GONE = 1, PREMUL_CLAIMED = 2 }; /* keys: as COMM_GONE, COMM_CLAIMED */

/* How many signals one member sent to another, or waited for. */
struct signal_count {
    _Atomic uint64_t key; /* 0 free */
    _Atomic uint64_t signals;
};

static struct {
    struct local_member member[COMMS_MAX];
    struct signal_count signal[SIGNAL_KINDS_MAX];
    struct premul premul[REDOPS_MAX];
    _Atomic uint32_t init_alls; /* ncclCommInitAll calls so far */
    _Atomic uint32_t premuls;   /* created so far; 0: no need to search */
} comms;

void comms_forked(void)
{
    forget_state(&comms, sizeof comms);
}

static uint32_t hash_handle(const void *handle)
{
    return (uint32_t)(((uintptr_t)handle >> 4) * 0x9e3779b97f4a7c15u >> 40);
}

struct local_member *comms_find(const void *handle)
{
    if ((uintptr_t)handle <= (uintptr_t)COMM_CLAIMED)
        return NULL;
    for (uint32_t i = 0, at = hash_handle(handle); i < COMMS_MAX; i++, at++) {
        struct local_member *member = &comms.member[at % COMMS_MAX];
        void *found = atomic_load_explicit(&member->handle, memory_order_acquire);
        if (found == handle)
            return member;
        if (!found)
            return NULL;
    }
    return NULL;
}

struct local_member *comms_largest(int device)
{
    struct local_member *largest = NULL;
    for (int i = 0; i < COMMS_MAX; i++) {
        struct local_member *member = &comms.member[i];
        void *handle = atomic_load_explicit(&member->handle, memory_order_acquire);
        if ((uintptr_t)handle <= (uintptr_t)COMM_CLAIMED || member->device != device)
            continue;
        if (!largest || member->nranks > largest->nranks ||
            (member->nranks == largest->nranks && member->comm < largest->comm))
            largest = member;
    }
    return largest;
}

bool comms_is_live(const struct local_member *member)
{
    return (uintptr_t)atomic_load_explicit(&member->handle, memory_order_acquire) >
           (uintptr_t)COMM_CLAIMED;
}

static struct local_member *claim(void *handle)
{
    for (uint32_t i = 0, at = hash_handle(handle); i < COMMS_MAX; i++, at++) {
        struct local_member *member = &comms.member[at % COMMS_MAX];
        void *found = atomic_load_explicit(&member->handle, memory_order_relaxed);
        if ((!found || found == COMM_GONE) &&
            atomic_compare_exchange_strong(&member->handle, &found, COMM_CLAIMED))
            return member;
    }
    return NULL;
}

/* The numbers begin at 0 again. An array of an earlier communicator is used again if it is long
 * enough; else it stays behind, because a faulty program may still be using it. */
static void reset_p2p(struct local_member *member)
{
    _Atomic uint64_t *numbers = atomic_load(&member->p2p);
    if (!numbers)
        return;
    if (member->nranks >= 0 && member->p2p_peers >= (uint32_t)member->nranks)
        memset((void *)numbers, 0, (2 * (size_t)member->p2p_peers + 1) * sizeof *numbers);
    else
        atomic_store(&member->p2p, NULL);
}

struct local_member *comms_add(void *handle, const struct pending_init *init)
{
    struct local_member *member = comms_find(handle);
    if (!member)
        member = claim(handle);
    if (!member) {
        problem_print(
            PROBLEM_COMMS_FULL,
            "more than %d communicators at one time: the calls on the newest are recorded without "
            "their communicator",
            COMMS_MAX);
        return NULL;
    }
    member->comm = init->comm;
    member->parent = init->parent;
    member->gpu = init->gpu;
    member->name = init->name;
    member->rank = init->rank;
    member->nranks = init->nranks;
    member->device = init->device;
    member->flags = init->flags;
    member->ordinal = init->ordinal;
    member->color = init->color;
    member->key = init->key;
    atomic_store(&member->announced, 0);
    atomic_store(&member->splits, 0);
    atomic_store(&member->shrinks, 0);
    atomic_store(&member->grows, 0);
    memset((void *)member->shrunk, 0, sizeof member->shrunk);
    atomic_store(&member->async, 0);
    atomic_store(&member->number, 0);
    atomic_store(&member->state, 0);
    for (int i = 0; i < MEMBER_STREAMS; i++)
        atomic_store(&member->stream[i].ready, 0);
    reset_p2p(member);
    atomic_store_explicit(&member->handle, handle, memory_order_release);
    return member;
}

/* The entry that holds the handle as one that was removed. */
static struct local_member *find_removed(const void *handle)
{
    for (uint32_t i = 0, at = hash_handle(handle); handle && i < COMMS_MAX; i++, at++) {
        struct local_member *member = &comms.member[at % COMMS_MAX];
        void *found = atomic_load_explicit(&member->handle, memory_order_acquire);
        if (found == COMM_GONE &&
            atomic_load_explicit(&member->last, memory_order_relaxed) == handle)
            return member;
        if (!found)
            break;
    }
    return NULL;
}

void comms_ended(const void *handle)
{
    struct local_member *member = find_removed(handle);
    if (member)
        atomic_store_explicit(&member->ended, 1, memory_order_release);
}

void comms_reused(const void *handle)
{
    struct local_member *member = find_removed(handle);
    if (member)
        atomic_store_explicit(&member->last, NULL, memory_order_relaxed);
}

const struct local_member *comms_find_ended(const void *handle)
{
    const struct local_member *member = find_removed(handle);
    return member && atomic_load_explicit(&member->ended, memory_order_acquire) ? member : NULL;
}

void comms_remove(struct local_member *member)
{
    void *handle = atomic_load_explicit(&member->handle, memory_order_relaxed);
    comms_reused(handle); /* an older one, if NCCL had given the handle out again */
    atomic_store_explicit(&member->ended, 0, memory_order_relaxed);
    atomic_store_explicit(&member->last, handle, memory_order_relaxed);
    atomic_store_explicit(&member->handle, COMM_GONE, memory_order_release);
}

bool comms_p2p_number(struct local_member *member, int peer, bool receive, uint64_t *number)
{
    _Atomic uint64_t *numbers = atomic_load_explicit(&member->p2p, memory_order_acquire);
    if (!numbers) {
        uint32_t peers = member->nranks > 0 ? (uint32_t)member->nranks : 0;
        size_t bytes = (2 * (size_t)peers + 1) * sizeof *numbers;
        void *memory =
            mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) {
            problem_print(PROBLEM_P2P_FULL,
                          "no memory to number sends and receives; they are not recorded");
            return false;
        }
        member->p2p_peers = peers;
        if (atomic_compare_exchange_strong(&member->p2p, &numbers, memory))
            numbers = memory;
        else
            munmap(memory, bytes);
    }
    uint32_t peers = member->p2p_peers;
    uint32_t at = 2 * peers;
    if (peer >= 0 && (uint32_t)peer < peers)
        at = (uint32_t)peer + receive * peers;
    *number = atomic_fetch_add_explicit(&numbers[at], 1, memory_order_relaxed);
    return true;
}

bool comms_signal_number(const struct local_member *member, int peer, int32_t signal, bool waits,
                         uint64_t signals, uint64_t *before)
{
    const uint64_t words[] = {member->comm, (uint64_t)member->rank << 32 | (uint32_t)peer,
                              (uint64_t)waits << 32 | (uint32_t)signal};
    uint64_t key = string_id((const char *)words, sizeof words) | 1;
    for (uint64_t i = 0; i < SIGNAL_KINDS_MAX; i++) {
        struct signal_count *count = &comms.signal[(key / 2 + i) % SIGNAL_KINDS_MAX];
        uint64_t found = 0;
        if (atomic_compare_exchange_strong(&count->key, &found, key) || found == key) {
            *before = atomic_fetch_add_explicit(&count->signals, signals, memory_order_relaxed);
            return true;
        }
    }
    problem_print(PROBLEM_P2P_FULL, "too many kinds of signals to count; some are not recorded");
    return false;
}

uint32_t comms_count_shrink(struct local_member *member, uint64_t excluded)
{
    uint64_t used = 0;
    int at = 0;
    while (at < SHRUNK_SETS - 1 &&
           !atomic_compare_exchange_strong(&member->shrunk[at].excluded, &used, excluded) &&
           used != excluded) {
        used = 0;
        at++;
    }
    return atomic_fetch_add(&member->shrunk[at].times, 1);
}

uint32_t comms_count_init_all(void)
{
    return atomic_fetch_add(&comms.init_alls, 1);
}

static uint64_t premul_key(const void *handle, int redop)
{
    uint64_t words[2] = {(uintptr_t)handle, (uint64_t)redop};
    uint64_t key = string_id((const char *)words, sizeof words);
    return key <= PREMUL_CLAIMED ? key + PREMUL_CLAIMED + 1 : key;
}

static struct premul *premul_find(uint64_t key)
{
    for (uint64_t i = 0; i < REDOPS_MAX; i++) {
        struct premul *premul = &comms.premul[(key + i) % REDOPS_MAX];
        uint64_t found = atomic_load_explicit(&premul->key, memory_order_acquire);
        if (found == key)
            return premul;
        if (!found)
            return NULL;
    }
    return NULL;
}

/* A free slot, which no other thread takes; NULL: there is none. */
static struct premul *premul_claim(uint64_t key)
{
    for (uint64_t i = 0; i < REDOPS_MAX; i++) {
        struct premul *premul = &comms.premul[(key + i) % REDOPS_MAX];
        uint64_t found = atomic_load_explicit(&premul->key, memory_order_relaxed);
        if (found <= PREMUL_GONE &&
            atomic_compare_exchange_strong(&premul->key, &found, PREMUL_CLAIMED))
            return premul;
    }
    return NULL;
}

void comms_premul_add(const void *handle, int redop, uint64_t scalar, bool on_device)
{
    uint64_t key = premul_key(handle, redop);
    struct premul *premul = premul_find(key); /* NCCL gave the handle out again */
    if (!premul)
        premul = premul_claim(key);
    if (!premul)
        return;
    premul->scalar = scalar;
    premul->on_device = on_device;
    atomic_store_explicit(&premul->key, key, memory_order_release);
    atomic_fetch_add(&comms.premuls, 1);
}

void comms_premul_remove(const void *handle, int redop)
{
    struct premul *premul = premul_find(premul_key(handle, redop));
    if (premul)
        atomic_store_explicit(&premul->key, PREMUL_GONE, memory_order_release);
}

const struct premul *comms_premul_find(const void *handle, int redop)
{
    if (!atomic_load_explicit(&comms.premuls, memory_order_relaxed))
        return NULL;
    return premul_find(premul_key(handle, redop));
}
