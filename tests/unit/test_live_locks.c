/* Which thread holds a mutex, as /proc shows the one that waits for it. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/live/live_internal.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int waiter;

static void *wait_for_lock(void *arg)
{
    atomic_store(&waiter, gettid());
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    return arg;
}

/* "" if the kernel has no such file. */
static void read_system_call(char *text, size_t bytes)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", atomic_load(&waiter));
    FILE *file = fopen(path, "re");
    if (!file || !fgets(text, (int)bytes, file))
        *text = '\0';
    if (file)
        fclose(file);
}

static void holder_is_found(void **state)
{
    (void)state;
    const struct timespec pause = {.tv_nsec = 1000000};
    pthread_t thread;
    char text[256];
    uint32_t holder = 0;
    pthread_mutex_lock(&lock);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_lock, NULL), 0);
    for (int tries = 0; !holder && tries < 120000; tries++) {
        nanosleep(&pause, NULL);
        read_system_call(text, sizeof text);
        if (!*text)
            break;
        holder = live_mutex_holder(getpid(), text);
    }
    pthread_mutex_unlock(&lock);
    assert_int_equal(pthread_join(thread, NULL), 0);
    if (!*text)
        skip();
    assert_int_equal(holder, gettid());
}

static void other_waits_have_none(void **state)
{
    (void)state;
    struct {
        uint32_t word, count, owner;
    } mutex = {.word = 1, .owner = 5};
    char text[128];
    assert_int_equal(live_mutex_holder(getpid(), "running\n"), 0);
    assert_int_equal(live_mutex_holder(getpid(), "0 0x3 0x7ffd 0x400 0x0 0x0 0x0 0x1 0x2\n"), 0);
    snprintf(text, sizeof text, "202 0x%llx 0x80 0x2 0x0 0x0 0x0 0x1 0x2\n",
             (unsigned long long)(uintptr_t)&mutex);
    assert_int_equal(live_mutex_holder(getpid(), text), 0); /* nobody waits */
    mutex.word = 2;
    assert_int_equal(live_mutex_holder(getpid(), text), 5);
    assert_int_equal(live_mutex_holder(getpid(), "202 0x10 0x80 0x2 0x0 0x0 0x0 0x1 0x2\n"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holder_is_found),
        cmocka_unit_test(other_waits_have_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
