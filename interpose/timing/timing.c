/* timing.c: the thread that takes CUPTI's records, and what the program's threads name for it. */
#include "interpose/timing/timing.h"

#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "interpose/real/gpu.h"
#include "interpose/real/libc.h"
#include "interpose/ring/attach.h"
#include "interpose/ring/emit.h"
#include "interpose/ring/segments.h"
#include "interpose/shim/environment.h"
#include "interpose/shim/forget.h"
#include "interpose/timing/cupti.h"
#include "interpose/timing/gathered.h"
#include "interpose/timing/groups.h"

enum {
    TIMING_STACK = 1 << 20,
    BUFFER_BYTES = 1 << 20, /* CUPTI's guide: 1 to 10 MB */
    BUFFERS = 32,
    NAMES_EVERY = 10, /* rounds */
    CLOCK_READINGS = 5,
    NEVER_ASK_CUDA = 255
};
static const long round_ns = 100000000;
static const uint64_t group_mark = 1ull << 63;

enum timing_state { TIMING_NONE, TIMING_PREPARING, TIMING_ON, TIMING_REFUSED };

/* Large, so it is mapped when it is needed. */
struct timing_room {
    struct gathered_records gathered;
    uint8_t *free_buffer[BUFFERS]; /* with its lock */
    uint32_t free_buffers, buffers;
    struct timed_groups groups; /* of several communicators */
    struct placed_work placed[GATHERED_WORK];
    struct record record[GATHERED_WORK];
};

static struct timing {
    _Atomic uint32_t state;         /* enum timing_state */
    _Atomic uint32_t ending, ended; /* the process exits; the thread has taken all */
    _Atomic uint64_t groups;
    struct cupti cupti;
    struct timing_room *room;
    uint64_t until_ns; /* the thread's: work that ended before is complete */
    uint32_t rounds;
    bool drop_recorded;
} timing;

bool timing_start(void)
{
    const char *setting = environment_get("DDPCHECK_TIMING");
    shim.timing = setting && !strcmp(setting, "1");
    return true;
}

void timing_forked(void)
{
    if (timing.room)
        munmap(timing.room, sizeof *timing.room);
    forget_state(&timing, sizeof timing);
}

static void CUPTIAPI buffer_requested(uint8_t **buffer, size_t *bytes, size_t *most)
{
    struct timing_room *room = timing.room;
    *buffer = NULL;
    *bytes = BUFFER_BYTES;
    *most = 0;
    pthread_mutex_lock(&room->gathered.lock);
    if (room->free_buffers) {
        *buffer = room->free_buffer[--room->free_buffers];
    } else if (room->buffers < BUFFERS) {
        void *memory =
            mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        *buffer = memory == MAP_FAILED ? NULL : memory;
        room->buffers += *buffer != NULL;
    }
    if (!*buffer) {
        room->gathered.dropped++; /* CUPTI drops what it can't write */
        *bytes = 0;
    }
    pthread_mutex_unlock(&room->gathered.lock);
}

static void CUPTIAPI buffer_completed(CUcontext context, uint32_t stream, uint8_t *buffer,
                                      size_t bytes, size_t valid)
{
    struct timing_room *room = timing.room;
    CUpti_Activity *record = NULL;
    const uint8_t *at = NULL, *end = buffer + valid;
    (void)context, (void)stream, (void)bytes;
    pthread_mutex_lock(&room->gathered.lock);
    while (valid &&
           timing.cupti.cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        if (at)
            gathered_add(&room->gathered, at, (size_t)((const uint8_t *)record - at));
        at = (const uint8_t *)record;
    }
    if (at)
        gathered_add(&room->gathered, at, (size_t)(end - at));
    room->free_buffer[room->free_buffers++] = buffer;
    pthread_mutex_unlock(&room->gathered.lock);
}

/* One launch is named by itself, those of a group by where they are in the ring. */
static bool find_launch(uint64_t external, int device, struct placed_work *work)
{
    if (!(external & group_mark)) {
        work->slot = (uint32_t)(external >> 40);
        work->launch = external & ((1ull << 40) - 1);
        return work->launch != 0;
    }
    uint64_t number = external & ~group_mark;
    struct timed_launches group;
    if (!timed_groups_find(&timing.room->groups, number, &group))
        return false;
    for (uint32_t i = 0; i < group.count; i++) {
        if (group.launch[i].device != device)
            continue;
        if (work->launch)
            return false; /* several communicators of one device: which it is nobody says */
        work->slot = group.launch[i].slot;
        work->launch = group.launch[i].number;
    }
    return work->launch != 0;
}

void timing_add(struct shim_thread *thread, uint32_t slot, uint64_t launch, int device)
{
    struct timed_launches *launches = &thread->caches->timed;
    if (launches->count < TIMED_LAUNCHES)
        launches->launch[launches->count] = (struct timed_launch){launch, slot, device};
    launches->count++;
}

void timing_push(struct shim_thread *thread)
{
    struct timed_launches *launches = &thread->caches->timed;
    uint64_t external = launches->launch[0].number | (uint64_t)launches->launch[0].slot << 40;
    bool is_named = launches->count && launches->count <= TIMED_LAUNCHES &&
                    atomic_load_explicit(&timing.state, memory_order_acquire) == TIMING_ON;
    if (is_named && launches->count > 1) {
        uint64_t number = atomic_fetch_add(&timing.groups, 1);
        is_named = timed_groups_put(&timing.room->groups, number, launches);
        external = group_mark | number;
    }
    launches->count = 0;
    thread->timed = is_named ? external : 0;
}

void timing_pop(struct shim_thread *thread)
{
    thread->timed = 0;
}

static void name_launch(uint32_t correlation)
{
    if (thread_self.timed)
        gathered_name(&timing.room->gathered, correlation, thread_self.timed);
}

static uint64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* CUPTI's time now, and what has to be added to it for the clock of records. The offset is wrong by
 * half of what passes between the readings around CUPTI's: by milliseconds if the thread loses its
 * processor there, so the shortest of several is taken (Cristian, "Probabilistic clock
 * synchronization", 1989). */
static uint64_t read_clocks(uint64_t *offset_ns)
{
    uint64_t cupti_ns = 0, shortest_ns = UINT64_MAX;
    *offset_ns = 0;
    for (int i = 0; i < CLOCK_READINGS; i++) {
        uint64_t before_ns = monotonic_ns();
        timing.cupti.cuptiGetTimestamp(&cupti_ns);
        uint64_t passed_ns = monotonic_ns() - before_ns;
        if (passed_ns < shortest_ns)
            *offset_ns = before_ns + passed_ns / 2 - cupti_ns;
        shortest_ns = passed_ns < shortest_ns ? passed_ns : shortest_ns;
    }
    return cupti_ns;
}

static void emit_timed(struct shim_thread *thread, struct record *record)
{
    record->thread = thread->id;
    record->phase = RECORD_POINT;
    emit_stamp(record);
    emit(thread, record, RING_BULK);
}

static void emit_work(struct shim_thread *thread, size_t count, uint64_t offset_ns)
{
    struct timing_room *room = timing.room;
    size_t most = thread->writer ? segments_make_room(thread->writer, RING_BULK, 2 * count) / 2
                                 : count;
    for (size_t i = 0; i < count; i++) {
        room->placed[i].begin_ns += offset_ns;
        room->placed[i].end_ns += offset_ns;
    }
    size_t records = stretches_record(room->placed, count, room->record,
                                      most < GATHERED_WORK ? most : GATHERED_WORK);
    for (size_t i = 0; i < records; i++)
        emit_timed(thread, &room->record[i]);
}

static void emit_names(struct shim_thread *thread)
{
    for (size_t i = 0; i < GATHERED_NAMES; i++) {
        struct name_sum *sum = &timing.room->gathered.name[i], now;
        pthread_mutex_lock(&timing.room->gathered.lock);
        now = *sum;
        sum->count = sum->total_ns = sum->amount = 0;
        pthread_mutex_unlock(&timing.room->gathered.lock);
        if (!now.count)
            continue;
        struct record record = {.api = API_notice_kernels,
                                .device = now.device,
                                .kernels = {.name = emit_string(thread, now.text, strlen(now.text)),
                                            .count = now.count,
                                            .total_ns = now.total_ns,
                                            .amount = now.amount}};
        emit_timed(thread, &record);
    }
}

static void note_dropped(struct shim_thread *thread)
{
    static const char full[] = "exact times of some kernels and operations: there were more than "
                               "the buffers of --timing hold",
                      unknown[] = "exact times of some kernels and operations: this version of "
                                  "CUPTI has other records than those that are known";
    pthread_mutex_lock(&timing.room->gathered.lock);
    uint64_t dropped = timing.room->gathered.dropped, too_short = timing.room->gathered.too_short;
    pthread_mutex_unlock(&timing.room->gathered.lock);
    if (timing.drop_recorded || (!dropped && !too_short))
        return;
    timing.drop_recorded = true;
    const char *text = too_short ? unknown : full;
    struct record record = {.range = {.text = emit_string(thread, text, strlen(text))}};
    emit_notice(thread, &record, API_notice_blind);
}

/* Records come in no order, but within a round: so work is taken a round late. */
static void take_round(struct shim_thread *thread, bool is_last)
{
    struct gathered_records *gathered = &timing.room->gathered;
    uint64_t offset_ns, now_ns = read_clocks(&offset_ns);
    timing.cupti.cuptiActivityFlushAll(is_last ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
    pthread_mutex_lock(&gathered->lock);
    size_t count = gathered_take(gathered, is_last ? UINT64_MAX : timing.until_ns, find_launch,
                                 timing.room->placed);
    pthread_mutex_unlock(&gathered->lock);
    timing.until_ns = now_ns;
    emit_work(thread, count, offset_ns);
    if (++timing.rounds % NAMES_EVERY == 0 || is_last)
        emit_names(thread);
    note_dropped(thread);
}

static void *run_timing(void *unused)
{
    struct shim_thread *thread = &thread_self;
    struct record begin = {.api = API_notice_timed, .device = RECORD_NO_DEVICE};
    (void)unused;
    thread->inside = THREAD_ALWAYS_INSIDE;
    thread->device_queries = NEVER_QUERY_CUDA;
    prctl(PR_SET_NAME, "ddpcheck-timing");
    if (!thread->attached && !attach_thread(thread))
        return NULL;
    emit_timed(thread, &begin);
    for (bool is_last = false; !is_last;) {
        struct timespec round = {.tv_nsec = round_ns};
        syscall(SYS_futex, &timing.ending, FUTEX_WAIT, 0, &round, NULL, 0);
        is_last = atomic_load(&timing.ending);
        take_round(thread, is_last);
    }
    atomic_store(&timing.ended, 1);
    syscall(SYS_futex, &timing.ended, FUTEX_WAKE, 1, NULL, NULL, 0);
    return NULL;
}

/* Runs before CUPTI and CUDA are torn down: their handlers were there before. */
static void end_timing(int status, void *unused)
{
    struct timespec patience = {.tv_sec = 1};
    (void)status, (void)unused;
    if (atomic_load(&timing.state) != TIMING_ON)
        return;
    atomic_store(&timing.ending, 1);
    syscall(SYS_futex, &timing.ending, FUTEX_WAKE, 1, NULL, NULL, 0);
    if (!atomic_load(&timing.ended))
        syscall(SYS_futex, &timing.ended, FUTEX_WAIT, 0, &patience, NULL, 0);
}

static bool start_timing_thread(void)
{
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, before;
    if (pthread_attr_init(&attributes))
        return false;
    sigfillset(&all);
    pthread_attr_setstacksize(&attributes, TIMING_STACK);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    bool is_started = false;
    if (!pthread_sigmask(SIG_BLOCK, &all, &before)) {
        is_started = !pthread_create(&thread, &attributes, run_timing, NULL);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    pthread_attr_destroy(&attributes);
    return is_started;
}

static bool open_timing(char why[CUPTI_WHY_BYTES])
{
    void *memory = mmap(NULL, sizeof *timing.room, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    strcpy(why, "there is no memory for it");
    if (memory == MAP_FAILED)
        return false;
    timing.room = memory;
    pthread_mutex_init(&timing.room->gathered.lock, NULL);
    if (!cupti_open(&timing.cupti, name_launch, why) ||
        !cupti_record(&timing.cupti, buffer_requested, buffer_completed, why))
        return false;
    strcpy(why, "no thread can be started for it");
    return !on_exit(end_timing, NULL) && start_timing_thread();
}

void timing_prepare(void)
{
    uint32_t state = TIMING_NONE;
    char why[CUPTI_WHY_BYTES];
    /* CUPTI allocates in the contexts that there are: not while a graph is captured. */
    if (!shim.timing || atomic_load(&shim.captures) > 0 ||
        !atomic_compare_exchange_strong(&timing.state, &state, TIMING_PREPARING))
        return;
    int captures = gpu_relax_captures();
    bool is_on = open_timing(why);
    gpu_restore_captures(captures);
    atomic_store_explicit(&timing.state, is_on ? TIMING_ON : TIMING_REFUSED, memory_order_release);
    if (!is_on)
        problem_print(PROBLEM_TIMING,
                      "no exact times: %s. The job runs on; operations are timed to a millisecond",
                      why);
}
