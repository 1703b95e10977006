/* What memory limits leave to a process, on machines that are made up of files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "interpose/ring/memory_left.h"
#include "tests/unit/trace_files.h"

static void put(void **state, const char *name, const char *text)
{
    char command[1024];
    const char *path = scratch_path(state, name);
    snprintf(command, sizeof command, "mkdir -p \"$(dirname %s)\" && printf '%s' > %s", path, text,
             path);
    assert_int_equal(system(command), 0);
}

static uint64_t left(void **state)
{
    char meminfo[256], groups[256], mount[256];
    snprintf(meminfo, sizeof meminfo, "%s", scratch_path(state, "meminfo"));
    snprintf(groups, sizeof groups, "%s", scratch_path(state, "groups"));
    snprintf(mount, sizeof mount, "%s", scratch_path(state, "mount"));
    return memory_left(&(struct memory_files){meminfo, groups, mount});
}

static void without_limits_it_is_what_the_machine_has(void **state)
{
    assert_true(left(state) == UINT64_MAX);
    put(state, "meminfo", "MemTotal: 900 kB\\nMemFree: 100 kB\\nMemAvailable:     500 kB\\n");
    assert_int_equal(left(state), 500 << 10);
    put(state, "groups", "0::/\\n");
    put(state, "mount/job/memory.max", "1\\n"); /* of others */
    assert_int_equal(left(state), 500 << 10);
}

static void the_limit_of_a_parent_counts(void **state)
{
    put(state, "meminfo", "MemAvailable: 500000 kB\\n");
    put(state, "groups", "0::/a/b/c\\n");
    put(state, "mount/a/b/c/memory.max", "max\\n");
    put(state, "mount/a/b/memory.max", "9000\\n");
    put(state, "mount/a/b/memory.current", "5000\\n");
    put(state, "mount/a/b/memory.stat", "anon 1\\ninactive_file 3000\\nactive_file 7\\n");
    assert_int_equal(left(state), 7000);
    put(state, "mount/a/memory.max", "20000\\n");
    put(state, "mount/a/memory.high", "10000\\n");
    put(state, "mount/a/memory.current", "6000\\n");
    assert_int_equal(left(state), 4000);
    put(state, "mount/a/memory.current", "60000\\n");
    assert_int_equal(left(state), 0);
}

static void version_1_has_a_folder_of_its_own(void **state)
{
    put(state, "groups", "3:cpu:/x\\n4:memory:/job/1\\n0::/\\n");
    put(state, "mount/memory/job/1/memory.limit_in_bytes", "9000\\n");
    put(state, "mount/memory/job/1/memory.usage_in_bytes", "6000\\n");
    put(state, "mount/memory/job/1/memory.stat", "inactive_file 9\\ntotal_inactive_file 1000\\n");
    assert_int_equal(left(state), 4000);
}

/* The path is that of the host; the container has its own group mounted. */
static void in_a_container_the_mount_is_the_group(void **state)
{
    put(state, "groups", "4:memory:/docker/0123\\n");
    put(state, "mount/memory/memory.limit_in_bytes", "9000\\n");
    put(state, "mount/memory/memory.usage_in_bytes", "6000\\n");
    assert_int_equal(left(state), 3000);
}

int main(void)
{
#define WITH_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(without_limits_it_is_what_the_machine_has),
        WITH_SCRATCH(the_limit_of_a_parent_counts),
        WITH_SCRATCH(version_1_has_a_folder_of_its_own),
        WITH_SCRATCH(in_a_container_the_mount_is_the_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
