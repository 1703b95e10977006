/* Which files of its cgroups a process has, of both versions, and what their CPU limits held back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/cgroup.h"

static const struct cgroup_file cpu_stat = {"cpu", "cpu.stat", "cpu.stat"},
                                memory = {"memory", "memory.oom_control", "memory.events"};

static char folder[] = "/tmp/ddpcheck-cgroup-XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s%s", folder, name);
    return path;
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(in_folder(name), "we");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void files_of_both_versions(void **state)
{
    (void)state;
    static const struct {
        const char *list;
        const struct cgroup_file *file;
        const char *path;
    } cases[] = {
        {"0::/pod/job\n", &cpu_stat, "/c/pod/job/cpu.stat"},
        {"0::/\n", &cpu_stat, "/c/cpu.stat"},
        {"0::/pod:1/job\n", &memory, "/c/pod:1/job/memory.events"},
        {"3:cpu,cpuacct:/job\n2:memory:/other\n", &cpu_stat, "/c/cpu/job/cpu.stat"},
        {"3:cpuacct,cpu:/\n", &cpu_stat, "/c/cpu/cpu.stat"},
        {"2:memory:/other\n", &memory, "/c/memory/other/memory.oom_control"},
        {"5:cpuset:/a\n4:cpuacct:/b\n9:name=systemd:/d\n", &cpu_stat, ""},
        {"0::/unified\n3:cpu:/job\n", &cpu_stat, "/c/cpu/job/cpu.stat"}, /* both: hybrid */
        {"3:cpu:/job\n0::/unified\n", &cpu_stat, "/c/cpu/job/cpu.stat"},
        {"3:cpu:/job\n0::/unified\n", &memory, "/c/unified/memory.events"},
        {"0::/../other\n", &cpu_stat, ""}, /* in no cgroup that is seen from here */
        {"noise\n\n", &cpu_stat, ""},
        {"", &cpu_stat, ""},
    };
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_file("/list", cases[i].list);
        cgroup_find_listed(in_folder("/list"), "/c", cases[i].file, path, sizeof path);
        assert_string_equal(path, cases[i].path);
    }
    cgroup_find_listed(in_folder("/list"), "/c", &cpu_stat, path, 4);
    assert_string_equal(path, "");
    cgroup_find_listed(in_folder("/none"), "/c", &cpu_stat, path, sizeof path);
    assert_string_equal(path, "");
}

static void limits_of_all_levels(void **state)
{
    (void)state;
    assert_int_equal(cgroup_throttled_ns(""), -1);
    assert_int_equal(cgroup_throttled_ns(in_folder("/pod/job/cpu.stat")), -1);
    write_file("/pod/job/cpu.stat", "usage_usec 9\nnr_throttled 3\n");
    assert_int_equal(cgroup_throttled_ns(in_folder("/pod/job/cpu.stat")), -1);
    write_file("/pod/cpu.stat", "usage_usec 9\nnr_throttled 3\nthrottled_usec 70\n");
    assert_int_equal(cgroup_throttled_ns(in_folder("/pod/job/cpu.stat")), 70000);
    write_file("/pod/job/cpu.stat", "nr_throttled 3\nthrottled_usec 5\n");
    assert_int_equal(cgroup_throttled_ns(in_folder("/pod/job/cpu.stat")), 75000);
    write_file("/pod/job/cpu.stat", "nr_periods 4\nnr_throttled 0\nthrottled_time 0\n");
    write_file("/pod/cpu.stat", "nr_periods 4\nnr_throttled 3\nthrottled_time 123\n");
    assert_int_equal(cgroup_throttled_ns(in_folder("/pod/job/cpu.stat")), 123);
    assert_int_equal(cgroup_throttled_ns(in_folder("/pod/cpu.stat")), 123);
}

static int make_folder(void **state)
{
    (void)state;
    return !mkdtemp(folder) || mkdir(in_folder("/pod"), 0700) || mkdir(in_folder("/pod/job"), 0700);
}

static int remove_folder(void **state)
{
    (void)state;
    static const char *const files[] = {"/list", "/pod/cpu.stat", "/pod/job/cpu.stat"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        unlink(in_folder(files[i]));
    return rmdir(in_folder("/pod/job")) | rmdir(in_folder("/pod")) | rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_of_both_versions),
        cmocka_unit_test(limits_of_all_levels),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
