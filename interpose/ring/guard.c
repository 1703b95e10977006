/* guard.c: compares the collectives of this host's ranks, in memory that its processes share. */
#include "interpose/ring/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "interpose/ring/files.h"
#include "interpose/shim/environment.h"
#include "interpose/shim/shim.h"
#include "lib/trace/ring.h"

enum {
    CALL_TEXT = 128,
    GUARD_ENTRIES = 16384, /* 1 MB: how far ranks may be apart, all communicators together */
    GUARD_SAID = 512,
    GUARD_TRIES =
        1000 /* looks at an entry that another rank is writing: it may have been killed there */
};

enum { WORD_COMM, WORD_NUMBER, WORD_COUNT, WORD_CALL, WORD_RANKS, WORD_CHECK, WORDS };

/* `state` is odd while the words are written. */
struct guard_entry {
    _Alignas(64) _Atomic uint64_t state;
    _Atomic uint64_t word[WORDS];
};

static struct {
    struct guard_entry *entry; /* NULL: calls are not compared */
    char said[GUARD_SAID];     /* about the last call that was refused, of any thread */
} guard;

/* The program may write into the mapping: words that do not belong together refuse nothing. */
static uint64_t words_check(const uint64_t word[WORDS])
{
    return string_id((const char *)word, WORD_CHECK * sizeof *word);
}

static void call_pack(const struct guarded_call *call, uint64_t word[WORDS])
{
    const struct signature *signature = &call->signature;
    word[WORD_COMM] = call->comm;
    word[WORD_NUMBER] = call->number;
    word[WORD_COUNT] = signature->count;
    word[WORD_CALL] = (uint64_t)signature->api << 32 | (uint64_t)signature->datatype << 16 |
                      (uint64_t)signature->redop << 8 | signature->unknown;
    word[WORD_RANKS] = (uint64_t)(uint32_t)signature->root << 32 | (uint32_t)call->rank;
    word[WORD_CHECK] = words_check(word);
}

static void call_unpack(const uint64_t word[WORDS], struct guarded_call *call)
{
    *call = (struct guarded_call){
        .comm = word[WORD_COMM],
        .number = word[WORD_NUMBER],
        .signature = {.count = word[WORD_COUNT],
                      .root = (int32_t)(word[WORD_RANKS] >> 32),
                      .api = (uint16_t)(word[WORD_CALL] >> 32),
                      .datatype = (uint8_t)(word[WORD_CALL] >> 16),
                      .redop = (uint8_t)(word[WORD_CALL] >> 8),
                      .unknown = (uint8_t)word[WORD_CALL]},
        .rank = (int32_t)word[WORD_RANKS],
    };
}

/* Returns false if the entry was written meanwhile. */
static bool entry_read(struct guard_entry *entry, uint64_t state, uint64_t word[WORDS])
{
    for (int i = 0; i < WORDS; i++)
        word[i] = atomic_load_explicit(&entry->word[i], memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&entry->state, memory_order_relaxed) == state;
}

/* Returns false if another rank has begun to write it. */
static bool entry_write(struct guard_entry *entry, uint64_t state, const uint64_t word[WORDS])
{
    if (!atomic_compare_exchange_strong_explicit(&entry->state, &state, state + 1,
                                                 memory_order_acquire, memory_order_relaxed))
        return false;
    atomic_thread_fence(memory_order_release);
    for (int i = 0; i < WORDS; i++)
        atomic_store_explicit(&entry->word[i], word[i], memory_order_relaxed);
    atomic_store_explicit(&entry->state, state + 2, memory_order_release);
    return true;
}

static void explain(const struct guarded_call *call, const struct guarded_call *first)
{
    char refused[CALL_TEXT], entered[CALL_TEXT];
    snprintf(
        guard.said, sizeof guard.said,
        "ddpcheck run --guard refused rank %d's %s: rank %d called %s, also as operation #%llu of "
        "the communicator; nothing was launched",
        call->rank, signature_text(&call->signature, refused, sizeof refused), first->rank,
        signature_text(&first->signature, entered, sizeof entered),
        (unsigned long long)call->number);
    problem_print(PROBLEM_REFUSED, "%s", guard.said + strlen("ddpcheck "));
}

bool guard_refuses(const struct guarded_call *call)
{
    struct guard_entry *entry =
        &guard.entry[(call->comm * 0x9e3779b97f4a7c15u + call->number) % GUARD_ENTRIES];
    uint64_t mine[WORDS], theirs[WORDS];
    call_pack(call, mine);
    for (int tries = 0; tries < GUARD_TRIES; tries++) {
        uint64_t state = atomic_load_explicit(&entry->state, memory_order_acquire);
        if (state % 2 || !entry_read(entry, state, theirs))
            continue;
        bool is_same_comm = theirs[WORD_COMM] == call->comm &&
                            theirs[WORD_CHECK] == words_check(theirs);
        if (is_same_comm && theirs[WORD_NUMBER] > call->number)
            return false; /* the others are far ahead */
        if (is_same_comm && theirs[WORD_NUMBER] == call->number) {
            struct guarded_call first;
            call_unpack(theirs, &first);
            if (!signature_differs(&first.signature, &call->signature))
                return false;
            explain(call, &first);
            return true;
        }
        if (entry_write(entry, state, mine))
            return false;
    }
    return false;
}

const char *guard_said(const struct shim_thread *thread)
{
    return thread->was_refused ? guard.said : NULL;
}

bool guard_is_on(void)
{
    return guard.entry;
}

static void *map_table(const char *path)
{
    const uint64_t bytes = GUARD_ENTRIES * sizeof(struct guard_entry);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return NULL;
    int error = files_reserve(fd, 0, bytes);
    void *at = error ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (!error && at == MAP_FAILED)
        error = errno;
    close(fd);
    errno = error;
    return at == MAP_FAILED ? NULL : at;
}

bool guard_start(void)
{
    const char *setting = environment_get("DDPCHECK_GUARD");
    char path[PATH_MAX];
    if (guard.entry || !setting || strcmp(setting, "1"))
        return true;
    int length = snprintf(path, sizeof path, "%s/" RING_GUARD, files_rings());
    if (length < 0 || (size_t)length >= sizeof path)
        return true;
    guard.entry = map_table(path);
    if (!guard.entry)
        problem_print(PROBLEM_GUARD, "--guard can't use %s: %s; no call is refused", path,
                      strerror(errno));
    return true;
}
