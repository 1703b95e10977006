/* One fault of each class of section 2 after each of 1,000 random legal beginnings: it is found, as
 * that and nothing else, and its correct twin gives nothing. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "verdict.h"

#define COMM(i) (UINT64_C(0x1111000000000000) * ((uint64_t)(i) + 1))

enum { RANKS = 4, COMMS = 4, PROGRAMS = 1000, STEPS = 8, MAIN = 100, RUNNER = 900 };
enum { ALL = 0, OTHER_ALL = 3 }; /* communicators of all ranks */

static bool belongs(int comm, int rank)
{
    return comm == ALL || comm == OTHER_ALL || (comm == 1 ? rank < 2 : rank > 0);
}

static uint64_t draw_stream(uint64_t *state)
{
    return 0x10 *
           (draw(state) % 3); /* the default stream, one that it orders, one that it does not */
}

static struct job *begin(void)
{
    struct job *job = job_new(RANKS);
    job_init(job, COMM(ALL), 0, 3);
    job_init(job, COMM(1), 0, 1);
    job_init(job, COMM(2), 1, 3);
    job_init(job, COMM(OTHER_ALL), 0, 3);
    for (int rank = 0; rank < RANKS; rank++) {
        stream_create(job, rank, 0x10, false);
        stream_create(job, rank, 0x20, true);
    }
    return job;
}

static void ring(struct job *job, int rank, uint64_t stream, bool grouped)
{
    if (grouped)
        group_start(job, rank);
    issue(job, rank,
          (struct call){.api = API_ncclSend,
                        .comm = COMM(ALL),
                        .count = 8,
                        .root = (rank + 1) % RANKS,
                        .stream = stream});
    issue(job, rank,
          (struct call){.api = API_ncclRecv,
                        .comm = COMM(ALL),
                        .count = 8,
                        .root = (rank + RANKS - 1) % RANKS,
                        .stream = stream});
    if (grouped)
        group_end(job, rank);
}

static void legal_step(struct job *job, uint64_t *state)
{
    int what = (int)(draw(state) % 6), comm = (int)(draw(state) % COMMS);
    uint64_t stream = draw_stream(state), other = draw_stream(state),
             count = 1 + draw(state) % 1000;
    bool no_progress = draw(state) % 4 == 0;
    for (int rank = 0; rank < RANKS; rank++)
        switch (what) {
        case 0:
            ring(job, rank, stream, true);
            break;
        case 1:
            event_record(job, rank, 0xe0, stream);
            event_wait(job, rank, 0xe0, other);
            break;
        case 2:
            wait_done(job, rank, API_cudaDeviceSynchronize, 0);
            break;
        case 3:
            if (belongs(comm, rank)) {
                group_start(job, rank);
                ALL_REDUCE(job, rank, COMM(comm), count, .stream = stream);
                ALL_REDUCE(job, rank, COMM(comm), count, .stream = other);
                group_end(job, rank);
            }
            break;
        default:
            if (belongs(comm, rank))
                ALL_REDUCE(job, rank, COMM(comm), count, .stream = stream,
                           .no_progress = no_progress);
        }
}

/* Where the fault is. */
struct spot {
    int rank;               /* of the one that does it */
    uint64_t stream, other; /* not the default stream, and not the same */
    bool faulty;
};

static void all_wait(struct job *job, int but, bool returns)
{
    for (int rank = 0; rank < RANKS; rank++)
        if (rank != but)
            wait_enter(job, rank, API_cudaDeviceSynchronize, 0);
    for (int rank = 0; rank < RANKS && returns; rank++)
        if (rank != but)
            call_leave(job, rank);
}

static void missing_rank(struct job *job, const struct spot *place)
{
    for (int rank = 0; rank < RANKS; rank++) {
        if (rank != place->rank || !place->faulty)
            ALL_REDUCE(job, rank, COMM(OTHER_ALL), 1, .stream = place->stream);
        ALL_REDUCE(job, rank, COMM(ALL), 100, .stream = place->stream);
    }
    all_wait(job, -1, !place->faulty);
}

static void both(struct job *job, int rank, const struct spot *place, bool on_one_stream)
{
    bool turned = rank == place->rank && place->faulty;
    uint64_t other = on_one_stream ? place->stream : place->other;
    if (turned)
        ALL_REDUCE(job, rank, COMM(OTHER_ALL), 1, .stream = other);
    ALL_REDUCE(job, rank, COMM(ALL), 100, .stream = place->stream);
    if (!turned)
        ALL_REDUCE(job, rank, COMM(OTHER_ALL), 1, .stream = other);
}

static void crossed(struct job *job, const struct spot *place)
{
    for (int rank = 0; rank < RANKS; rank++)
        both(job, rank, place, true);
    all_wait(job, -1, !place->faulty);
}

static void unordered(struct job *job, const struct spot *place)
{
    for (int rank = 0; rank < RANKS; rank++) {
        wait_done(job, rank, API_cudaDeviceSynchronize, 0);
        both(job, rank, place, false);
    }
    all_wait(job, -1, true);
}

static void sends_first(struct job *job, const struct spot *place)
{
    for (int rank = 0; rank < RANKS; rank++)
        ring(job, rank, place->stream, !place->faulty);
    all_wait(job, -1, !place->faulty);
}

static void crashes(struct job *job, const struct spot *place)
{
    if (place->faulty)
        end(job, place->rank, END_SIGNAL, SIGSEGV, false);
    for (int rank = 0; rank < RANKS; rank++)
        if (rank != place->rank || !place->faulty)
            ALL_REDUCE(job, rank, COMM(ALL), 100, .stream = place->stream);
    all_wait(job, place->faulty ? place->rank : -1, !place->faulty);
}

static void leaves(struct job *job, const struct spot *place)
{
    if (place->faulty)
        end(job, place->rank, END_EXIT, 0, false);
    for (int rank = 0; rank < RANKS; rank++)
        if (rank != place->rank || !place->faulty)
            ALL_REDUCE(job, rank, COMM(ALL), 100, .stream = place->stream);
    all_wait(job, place->faulty ? place->rank : -1, !place->faulty);
}

static void holds_a_group(struct job *job, const struct spot *place)
{
    for (int rank = 0; rank < RANKS; rank++) {
        group_start(job, rank);
        ALL_REDUCE(job, rank, COMM(ALL), 100, .stream = place->stream);
        if (rank != place->rank || !place->faulty)
            group_end(job, rank);
    }
    if (place->faulty)
        end(job, place->rank, END_EXIT, 0, false);
    all_wait(job, place->faulty ? place->rank : -1, !place->faulty);
}

static void callback(struct job *job, const struct spot *place)
{
    struct record record = {.api = API_cudaLaunchHostFunc, .stream = place->stream};
    record.launch.known = LAUNCH_REPORTS_RUN;
    record.leave.enter = job_record(job, place->rank, record);
    record = (struct record){.api = API_notice_host_function,
                             .stream = place->stream,
                             .leave.enter = record.leave.enter};
    for (int rank = 0; rank < RANKS; rank++)
        ALL_REDUCE(job, rank, COMM(ALL), 100, .stream = place->stream);
    for (int i = 0; i < 2 - place->faulty; i++) {
        job_thread(job, place->rank, RUNNER);
        job_record(job, place->rank, record);
        record.api = API_notice_host_function_end;
    }
    if (place->faulty)
        comm_call_enter(job, place->rank, API_ncclCommDestroy, COMM(ALL));
    job_thread(job, place->rank, MAIN + (uint32_t)place->rank);
    all_wait(job, place->faulty ? place->rank : -1, !place->faulty);
}

static void set_up(struct job *job, const struct spot *place)
{
    uint64_t comm = UINT64_C(0x9999000000000000);
    all_wait(job, -1, true); /* so that it did not end in the middle of an operation */
    if (place->faulty)
        end(job, place->rank, END_EXIT, 1, false);
    for (int rank = 0; rank < RANKS; rank++)
        if (rank != place->rank || !place->faulty)
            init_enter(job, rank, comm, RANKS, rank, 1000 + (uint64_t)rank);
    for (int rank = 0; rank < RANKS && !place->faulty; rank++)
        init_leave(job, rank, comm, RANKS, rank, 0);
}

static void late(struct job *job, const struct spot *place)
{
    for (int rank = 0; rank < RANKS; rank++)
        if (rank != place->rank)
            ALL_REDUCE(job, rank, COMM(ALL), 100, .stream = place->stream);
    all_wait(job, place->rank, false);
    for (int i = 0; i < (place->faulty ? 6 : 3); i++) {
        ticks(job, 2500);
        memset_async(job, place->rank, place->other, 0x1000, 64);
    }
    if (place->faulty)
        return;
    ALL_REDUCE(job, place->rank, COMM(ALL), 100, .stream = place->stream);
    for (int rank = 0; rank < RANKS; rank++)
        if (rank != place->rank)
            call_leave(job, rank);
}

static const struct fault {
    const char *code; /* NULL: only a note */
    enum certainty certainty;
    void (*plant)(struct job *job, const struct spot *place);
} faults[] = {
    {"DC201", CERTAIN, missing_rank},  {"DC202", CERTAIN, crossed},
    {"DC203", CERTAIN, sends_first},   {"DC204", POSSIBLE, unordered},
    {"DC205", CERTAIN, crashes},       {"DC206", CERTAIN, leaves},
    {"DC207", CERTAIN, holds_a_group}, {"DC208", CERTAIN, callback},
    {"DC209", CERTAIN, set_up},        {NULL, CERTAIN, late},
};

static void check(const struct fault *fault, uint64_t seed, bool faulty)
{
    uint64_t state = seed * 2654435761u + 88172645463325252u;
    struct job *job = begin();
    for (int i = 0; i < STEPS; i++)
        legal_step(job, &state);
    bool first = draw(&state) % 2;
    const struct spot place = {
        .rank = (int)(draw(&state) % RANKS),
        .faulty = faulty,
        .stream = first ? 0x10 : 0x20,
        .other = first ? 0x20 : 0x10,
    };
    fault->plant(job, &place);
    ticks(job, 2000);
    struct verdict verdict;
    job_analyze(job, draw(&state) % 2 ? seed : 0, &verdict);
    bool wanted = faulty && fault->code;
    if (verdict.count != wanted || (wanted && (strcmp(verdict.found[0].code, fault->code) ||
                                               verdict.found[0].certainty != fault->certainty))) {
        for (int i = 0; i < verdict.count; i++)
            print_message("  %s: %s\n", verdict.found[i].code, verdict.found[i].what);
        fail_msg("program %d: %s %s, got %d findings", (int)seed,
                 faulty ? "planted" : "the twin of", fault->code ? fault->code : "DC210",
                 verdict.count);
    }
    job_free(job);
}

static void planted_hangs_are_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        for (uint64_t seed = 1; seed <= PROGRAMS; seed++)
            check(&faults[i], seed, true);
}

static void their_twins_give_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        for (uint64_t seed = 1; seed <= PROGRAMS; seed++)
            check(&faults[i], seed, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planted_hangs_are_found),
        cmocka_unit_test(their_twins_give_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
