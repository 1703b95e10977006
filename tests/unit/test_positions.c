/* Where a process stands by the stacks of its threads (lib/import/position.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "lib/import/position.h"

enum { NATIVE = 1 };

static struct frame native_frame(const char *function, const char *module, const char *file,
                                 int line)
{
    struct frame frame = {.address = NATIVE, .line = line};
    snprintf(frame.function, sizeof frame.function, "%s", function);
    snprintf(frame.module, sizeof frame.module, "%s", module);
    snprintf(frame.file, sizeof frame.file, "%s", file);
    return frame;
}

static struct frame python_frame(const char *function, const char *file, int line)
{
    struct frame frame = native_frame(function, "", file, line);
    frame.address = 0;
    return frame;
}

static void expect(struct position_thread *thread, int threads, enum place_kind place,
                   const char *text)
{
    const struct position_report report = {.thread = thread, .threads = threads};
    struct position_found found;
    position_find(&report, &found);
    assert_int_equal(found.place, place);
    assert_string_equal(found.text, text);
}

static void test_native(void **state)
{
    (void)state;
    struct frame wait[] = {native_frame("__futex_wait", "/lib/libc.so.6", "", 0),
                           native_frame("cudaStreamSynchronize", "/lib/libcudart.so.12", "", 0),
                           native_frame("train", "/bin/train", "train.c", 12)};
    struct frame init[] = {native_frame("poll", "/lib/libc.so.6", "", 0),
                           native_frame("ncclCommInitRank", "/lib/libnccl.so.2", "", 0),
                           native_frame("main", "/bin/train", "train.c", 5)};
    struct frame file[] = {native_frame("read", "/lib/libc.so.6", "", 0),
                           native_frame("load", "/bin/train", "load.c", 7)};
    struct frame own[] = {native_frame("compute", "/bin/train", "train.c", 30)};
    struct position_thread one = {.is_main = true, .name = "train"};
    one.frame = wait, one.frames = 3;
    expect(&one, 1, PLACE_WAIT, "cudaStreamSynchronize");
    one.frame = init;
    expect(&one, 1, PLACE_SETUP, "ncclCommInitRank");
    one.frame = file, one.frames = 2;
    expect(&one, 1, PLACE_ELSEWHERE, "read");
    one.frame = own, one.frames = 1;
    expect(&one, 1, PLACE_ELSEWHERE, "");
    one.state = 'T';
    expect(&one, 1, PLACE_STOPPED, "");
}

/* The collective whose result is waited for says more than the wait; a first collective creates the
 * communicator. */
static void test_python(void **state)
{
    (void)state;
    struct frame reduce[] = {
        python_frame("all_reduce", "/lib/site-packages/torch/distributed/distributed_c10d.py", 1),
        python_frame("step", "/home/me/train.py", 9),
        native_frame("cudaStreamSynchronize", "libcudart.so.12", "", 0)};
    struct frame loader[] = {
        python_frame("wait", "/usr/lib/python3.11/multiprocessing/connection.py", 1),
        python_frame("_next_data", "/lib/site-packages/torch/utils/data/dataloader.py", 1),
        python_frame("train", "/home/me/train.py", 9)};
    struct position_thread one = {.is_main = true, .name = "python", .frame = reduce, .frames = 3};
    expect(&one, 1, PLACE_OPERATION, "all_reduce");
    reduce[2] = native_frame("ncclCommInitRankConfig", "libnccl.so.2", "", 0);
    expect(&one, 1, PLACE_SETUP, "ncclCommInitRankConfig");
    one.frame = loader;
    expect(&one, 1, PLACE_ELSEWHERE, "a data loader");
}

/* A thread that waits for the GPU while the main thread waits for it; the holder of a lock. */
static void test_threads(void **state)
{
    (void)state;
    struct frame join[] = {native_frame("pthread_join", "/lib/libc.so.6", "", 0),
                           native_frame("main", "/bin/train", "train.c", 3)};
    struct frame wait[] = {native_frame("cudaStreamSynchronize", "/lib/libcudart.so.12", "", 0),
                           native_frame("train", "/bin/train", "train.c", 12)};
    struct frame lock[] = {native_frame("pthread_mutex_lock", "/lib/libc.so.6", "", 0),
                           native_frame("train", "/bin/train", "train.c", 14)};
    struct frame read[] = {native_frame("read", "/lib/libc.so.6", "", 0),
                           native_frame("load", "/bin/train", "load.c", 7)};
    struct position_thread two[] = {
        {.id = 1, .is_main = true, .name = "train", .frame = join, .frames = 2},
        {.id = 2, .name = "worker", .frame = wait, .frames = 2}};
    expect(two, 2, PLACE_WAIT, "cudaStreamSynchronize");
    two[0].frame = lock, two[0].holder = 2;
    two[1].frame = read;
    expect(two, 2, PLACE_ELSEWHERE,
           "pthread_mutex_lock, for a lock that thread worker holds, in read");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_native),
        cmocka_unit_test(test_python),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
