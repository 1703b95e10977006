/* The reader's thread: what it shows follows the databases, whatever happens to them. Built with
 * TSan, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <poll.h>
#include <sqlite3.h>
#include <time.h>

#include "tests/tui/state_files.h"
#include "tui/reader.h"

struct bench {
    struct reader *reader;
    int wake[2];
    struct picture picture;
};

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void start(struct bench *bench, const char *const *folder)
{
    struct source source;
    struct error err = {""};
    *bench = (struct bench){0};
    assert_int_equal(pipe2(bench->wake, O_CLOEXEC | O_NONBLOCK), 0);
    if (source_open_all(&source, folder, 1, &err) < 0)
        fail_msg("%s", err.text);
    bench->reader = reader_start(&source, bench->wake[1], &err);
    assert_non_null(bench->reader);
}

static void stop(struct bench *bench)
{
    reader_stop(bench->reader);
    picture_free(&bench->picture);
    close(bench->wake[0]);
    close(bench->wake[1]);
}

/* The next picture, if one comes within `seconds`. */
static bool next(struct bench *bench, double seconds)
{
    struct pollfd fd = {.fd = bench->wake[0], .events = POLLIN};
    char byte;
    if (poll(&fd, 1, (int)(seconds * 1000)) <= 0)
        return false;
    assert_int_equal(read(bench->wake[0], &byte, 1), 1);
    return reader_take(bench->reader, &bench->picture);
}

/* Takes pictures until one is as wanted. Returns after how many seconds; fails after ten. */
static double until(struct bench *bench, bool (*wanted)(const struct picture *picture))
{
    double begin = now_s();
    while (now_s() - begin < 10)
        if (next(bench, 0.2) && wanted(&bench->picture))
            return now_s() - begin;
    fail_msg("not shown; error '%s', warning '%s', %d rows", bench->picture.error.text,
             bench->picture.warning.text, bench->picture.rows.count);
    return 0;
}

static bool is_shown(const struct picture *picture)
{
    return picture->rows.count == 1 && !*picture->warning.text;
}
static bool has_two(const struct picture *picture)
{
    return picture->rows.count == 2 && !*picture->warning.text;
}
static bool has_three(const struct picture *picture)
{
    return picture->rows.count == 3 && !*picture->warning.text;
}
static bool is_removed(const struct picture *picture)
{
    return picture->rows.count && strstr(picture->warning.text, "was removed");
}
static bool is_partly_shown(const struct picture *picture)
{
    return picture->rows.count && strstr(picture->warning.text, "not shown: ");
}
static bool is_locked(const struct picture *picture)
{
    return strstr(picture->error.text, "is locked by another program");
}

static struct store *one_rank(const char *path, int rank)
{
    struct store *store = state_begin(path, rank ? "b" : "a", rank, 1);
    state_member(store, 0, rank, 2, 1, 1, 1);
    state_call(store, 0, rank, 0, 8, 1000);
    return store;
}

static const struct query ranks = {
    .view = VIEW_RANKS, .width = 80, .height = 24, .number = NUMBER_LAST, .process = -1};

static void events_are_shown_within_a_second(void **state)
{
    const char *folder = *state;
    struct bench bench;
    struct store *store = one_rank(scratch_path(state, "a.db"), 0);
    assert_int_equal(store_commit(store, NULL), 0);
    start(&bench, &folder);
    reader_ask(bench.reader, &ranks);
    until(&bench, is_shown);
    struct process_info info = process_named("a", 77, state_epoch_ns);
    assert_int_equal(store_begin(store, NULL), 0);
    store_process(store, &info, NULL);
    assert_int_equal(store_commit(store, NULL), 0);
    double seconds = until(&bench, has_two);
    print_message("shown after %.2f s\n", seconds);
    assert_true(seconds < 1);
    stop(&bench);
    store_close(store, NULL);
}

static void hosts_that_come_later_are_shown(void **state)
{
    const char *folder = *state;
    struct bench bench;
    state_end(one_rank(scratch_path(state, "b.db"), 1));
    start(&bench, &folder);
    reader_ask(bench.reader, &ranks);
    until(&bench, is_shown);
    unsigned opened = bench.picture.opened;
    FILE *file = fopen(scratch_path(state, "a.db"), "w"); /* begun, and no database yet */
    fputs("half a page", file);
    fclose(file);
    until(&bench, is_partly_shown);
    assert_int_equal(remove(scratch_path(state, "a.db")), 0);
    state_end(one_rank(scratch_path(state, "a.db"), 0));
    until(&bench, has_two);
    assert_int_not_equal(bench.picture.opened, opened);
    assert_string_equal(bench.picture.rows.row[0].cell[0].text, "0");
    stop(&bench);
}

static void a_new_run_takes_the_place_of_the_old_one(void **state)
{
    const char *folder = *state;
    char path[PATH_MAX];
    struct bench bench;
    snprintf(path, sizeof path, "%s", scratch_path(state, "a.db"));
    state_end(one_rank(path, 0));
    start(&bench, &folder);
    reader_ask(bench.reader, &ranks);
    until(&bench, is_shown);
    assert_int_equal(remove(path), 0);
    until(&bench, is_removed);
    struct store *store = one_rank(path, 0);
    for (int i = 0; i < 2; i++) {
        struct process_info info = process_named("a", 90 + i, state_epoch_ns);
        store_process(store, &info, NULL);
    }
    state_end(store);
    until(&bench, has_three);
    stop(&bench);
}

static void a_lock_that_goes_is_forgotten(void **state)
{
    const char *folder = *state;
    sqlite3 *other;
    struct bench bench;
    state_end(one_rank(scratch_path(state, "a.db"), 0));
    assert_int_equal(sqlite3_open(scratch_path(state, "a.db"), &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL),
                     SQLITE_OK);
    start(&bench, &folder);
    reader_ask(bench.reader, &ranks);
    until(&bench, is_shown);
    assert_int_equal(sqlite3_exec(other, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
    reader_ask(bench.reader, &ranks);
    until(&bench, is_locked);
    assert_int_equal(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    until(&bench, is_shown); /* nothing was written, nothing asked: it looks again by itself */
    stop(&bench);
    sqlite3_close(other);
}

static void pause_holds_the_picture(void **state)
{
    const char *folder = *state;
    struct bench bench;
    struct store *store = one_rank(scratch_path(state, "a.db"), 0);
    assert_int_equal(store_commit(store, NULL), 0);
    start(&bench, &folder);
    reader_ask(bench.reader, &ranks);
    until(&bench, is_shown);
    reader_pause(bench.reader, true);
    while (next(&bench, 0.6)) /* what was under way */
        ;
    struct process_info info = process_named("a", 77, state_epoch_ns);
    assert_int_equal(store_begin(store, NULL), 0);
    store_process(store, &info, NULL);
    assert_int_equal(store_commit(store, NULL), 0);
    assert_false(next(&bench, 1.2));
    reader_pause(bench.reader, false);
    until(&bench, has_two);
    stop(&bench);
    store_close(store, NULL);
}

static bool is_sequence(const struct picture *picture)
{
    return picture->query.view == VIEW_SEQUENCE && picture->rows.lines;
}

/* However often the view is made anew, and whichever communicator is the worst by then. */
static void the_next_communicator_is_one_step_away(void **state)
{
    const char *folder = *state;
    struct bench bench;
    struct query query = ranks;
    struct store *store = one_rank(scratch_path(state, "a.db"), 0);
    struct member_state other = {.comm = 2, .nranks = 2, .where = "", .phase = "", .last_call = ""};
    store_member(store, &other, 0, NULL);
    assert_int_equal(store_commit(store, NULL), 0);
    start(&bench, &folder);
    query.view = VIEW_SEQUENCE;
    query.comm = state_comm;
    query.comm_step = 1;
    reader_ask(bench.reader, &query);
    until(&bench, is_sequence);
    assert_int_equal(bench.picture.query.comm, 2);
    for (uint64_t issued = 2; issued < 4; issued++) {
        assert_int_equal(store_begin(store, NULL), 0);
        other.issued = issued;
        store_member(store, &other, 0, NULL);
        assert_int_equal(store_commit(store, NULL), 0);
        until(&bench, is_sequence);
        assert_int_equal(bench.picture.query.comm, 2);
    }
    stop(&bench);
    store_close(store, NULL);
}

/* Questions faster than answers, and the end in the middle of them. */
static void it_ends_whatever_it_is_doing(void **state)
{
    enum { CALLS = 60000, QUESTIONS = 40 };
    const char *folder = *state;
    struct bench bench;
    struct store *store = one_rank(scratch_path(state, "a.db"), 0);
    for (uint64_t i = 1; i < CALLS; i++)
        state_call(store, 0, 0, i, 8, 1000 + i * 1000);
    state_end(store);
    start(&bench, &folder);
    for (int i = 0; i < QUESTIONS; i++) {
        struct query query = ranks;
        query.view = (enum view_id)(i % VIEWS_NUMBERED);
        reader_ask(bench.reader, &query);
        next(&bench, 0.01);
    }
    double begin = now_s();
    stop(&bench);
    assert_true(now_s() - begin < 2);
}

#define ON_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_SCRATCH(events_are_shown_within_a_second),
        ON_SCRATCH(hosts_that_come_later_are_shown),
        ON_SCRATCH(a_new_run_takes_the_place_of_the_old_one),
        ON_SCRATCH(a_lock_that_goes_is_forgotten),
        ON_SCRATCH(pause_holds_the_picture),
        ON_SCRATCH(the_next_communicator_is_one_step_away),
        ON_SCRATCH(it_ends_whatever_it_is_doing),
    };
    setlocale(LC_ALL, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
