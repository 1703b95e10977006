/* How long threads wait for a processor, as the kernel counts it: two programs that never rest have
 * to share one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/run_delay.h"
#include "lib/base/clock.h"

enum { PROGRAMS = 2, MANY = 600, THREADS = RUN_DELAY_THREADS + 44, ENDING = 100 };

static bool none(void *context, pid_t pid)
{
    (void)context;
    (void)pid;
    return false;
}

static bool all(void *context, pid_t pid)
{
    (void)pid;
    ++*(int *)context;
    return true;
}

static pid_t start_program(int processor)
{
    pid_t pid = fork();
    if (pid)
        return pid;
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(processor, &only);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* if the test fails */
    sched_setaffinity(0, sizeof only, &only);
    for (volatile unsigned long turns = 0;; turns++)
        ;
}

static int first_processor(void)
{
    cpu_set_t allowed;
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    int processor = 0;
    while (!CPU_ISSET(processor, &allowed))
        processor++;
    return processor;
}

/* Reads until a thread is seen to have waited. */
static struct record read_waiting(struct run_delay *delay, pid_t pid)
{
    struct record record;
    for (int i = 0; i < MANY; i++) {
        if (run_delay_read(delay, pid, none, NULL, monotonic_now_ns(), &record))
            return record;
        poll(NULL, 0, 100);
    }
    fail_msg("none waited");
    return record;
}

static void programs_share_a_processor(void **state)
{
    (void)state;
    pid_t program[PROGRAMS];
    struct run_delay one = {0}, parent = {0};
    struct record record;
    char children[64];
    snprintf(children, sizeof children, "/proc/self/task/%d/children", (int)getpid());
    if (access("/proc/self/schedstat", R_OK) != 0 || access(children, R_OK) != 0)
        skip(); /* a kernel that does not say it */
    int processor = first_processor();
    for (int i = 0; i < PROGRAMS; i++)
        program[i] = start_program(processor);

    assert_false(run_delay_read(&one, program[0], none, NULL, monotonic_now_ns(), &record));
    record = read_waiting(&one, program[0]);
    assert_int_equal(record.api, API_notice_run_delay);
    assert_int_equal(record.run_delay.thread, program[0]);
    assert_true(record.run_delay.longest_ns <= record.run_delay.interval_ns);
    assert_true(record.run_delay.longest_ns <= record.run_delay.all_ns);
    assert_int_equal(record.run_delay.children_ns, 0);

    /* It started them. */
    do
        record = read_waiting(&parent, getpid());
    while (!record.run_delay.children_ns); /* this test may wait, too */
    uint32_t with_children = record.run_delay.threads;
    int asked = 0;
    run_delay_read(&parent, getpid(), all, &asked, monotonic_now_ns(), &record);
    assert_true(record.run_delay.threads + PROGRAMS <= with_children); /* TSan adds a thread each */
    assert_int_equal(record.run_delay.children_ns, 0);
    assert_int_equal(asked, PROGRAMS);

    /* What they waited before they were read does not count. */
    run_delay_read(&parent, getpid(), none, NULL, monotonic_now_ns(), &record);
    assert_int_equal(record.run_delay.threads, with_children);
    assert_int_equal(record.run_delay.children_ns, 0);

    for (int i = 0; i < PROGRAMS; i++) {
        kill(program[i], SIGKILL);
        waitpid(program[i], NULL, 0);
    }
    run_delay_free(&one);
    run_delay_free(&parent);
}

/* It is gone, or can't be seen from here. */
static void what_cannot_be_read_is_left_out(void **state)
{
    (void)state;
    pid_t gone = fork();
    if (gone == 0)
        _exit(0);
    assert_int_equal(waitpid(gone, NULL, 0), gone);
    struct run_delay delay = {0};
    struct record record;
    for (int i = 0; i < 2; i++)
        assert_false(run_delay_read(&delay, gone, none, NULL, monotonic_now_ns(), &record));
    assert_int_equal(record.run_delay.threads, 0);
    run_delay_free(&delay);
}

static void *wait_for_end(void *pipe_end)
{
    char none_comes;
    while (read(*(int *)pipe_end, &none_comes, 1) > 0)
        ;
    return NULL;
}

static bool was_read(const struct run_delay *delay, uint32_t thread)
{
    for (uint32_t i = 0; i < delay->threads; i++)
        if (delay->thread[i].thread == (pid_t)thread)
            return true;
    return false;
}

/* When some have ended, others are read for the first time. What these waited until then was not in
 * this interval. */
static void more_threads_than_are_read(void **state)
{
    (void)state;
    int ending[2], staying[2];
    pthread_t thread[THREADS];
    pthread_attr_t small;
    assert_int_equal(pipe(ending) | pipe(staying), 0);
    assert_int_equal(pthread_attr_init(&small), 0);
    assert_int_equal(pthread_attr_setstacksize(&small, 128 << 10), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(
            pthread_create(&thread[i], &small, wait_for_end, i < ENDING ? &ending[0] : &staying[0]),
            0);

    struct run_delay before = {0}, now = {0};
    struct record record;
    uint64_t begin_ns = monotonic_now_ns();
    run_delay_read(&before, getpid(), none, NULL, begin_ns, &record);
    run_delay_read(&now, getpid(), none, NULL, begin_ns, &record);
    close(ending[1]);
    for (int i = 0; i < ENDING; i++)
        pthread_join(thread[i], NULL);
    run_delay_read(&now, getpid(), none, NULL, monotonic_now_ns(), &record);
    if (before.threads) { /* else the kernel does not say it */
        assert_int_equal(before.threads, RUN_DELAY_THREADS);
        assert_true(now.threads >= THREADS - ENDING && now.threads < RUN_DELAY_THREADS);
        assert_true(!record.run_delay.thread || was_read(&before, record.run_delay.thread));
    }

    close(staying[1]);
    for (int i = ENDING; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    pthread_attr_destroy(&small);
    close(ending[0]);
    close(staying[0]);
    run_delay_free(&before);
    run_delay_free(&now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_share_a_processor),
        cmocka_unit_test(what_cannot_be_read_is_left_out),
        cmocka_unit_test(more_threads_than_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
