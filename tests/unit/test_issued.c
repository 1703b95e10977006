/* What a process has launched on its devices, as its operations' records say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "analyzer/model/issued.h"

static void add(struct process *process, int device, uint64_t kernels, uint64_t threads)
{
    struct record left = {.phase = RECORD_LEAVE};
    left.leave.kernels = kernels;
    left.leave.threads = threads;
    assert_int_equal(issued_add(process, device, &left), 0);
}

static void expect_on(const struct process *process, int device, uint64_t kernels, uint64_t threads)
{
    struct issued issued = issued_on(process, device);
    assert_int_equal(issued.kernels, kernels);
    assert_int_equal(issued.threads, threads);
}

/* A launch beside the operation may be counted in it, and its threads in the next one. */
static void all_are_added(void **state)
{
    (void)state;
    struct process process = {0};
    add(&process, 3, 1, 0);
    add(&process, 3, 0, 256);
    add(&process, 1, 2, 64);
    add(&process, -1, 5, 5);
    expect_on(&process, 3, 1, 256);
    expect_on(&process, 1, 2, 64);
    expect_on(&process, 2, 0, 0);
    expect_on(&process, -1, 0, 0);
    free(process.issued.on_device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_are_added)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
