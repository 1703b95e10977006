/* Which processes of a job are named as ranks that have made no call yet. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "collector/collector.h"
#include "collector/dormant.h"
#include "collector/producer.h"
#include "tests/unit/ring_file.h"

#define SECOND UINT64_C(1000000000)

enum { PID_ELSEWHERE = 3 }; /* what the recorded process is in a container of its own */

/* Has a file mapped, says so, and stands. */
static int stand(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, 4096) < 0 ||
        mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED || write(1, "m", 1) != 1)
        return 1;
    pause();
    return 0;
}

static pid_t start(void **state, const char *library)
{
    char directory[PATH_MAX + 16], path[PATH_MAX], word;
    int ends[2];
    snprintf(directory, sizeof directory, "DDPCHECK_DIR=%s", (const char *)*state);
    snprintf(path, sizeof path, "%s", scratch_path(state, library));
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char *const argv[] = {"test_dormant", "stand", path, NULL}, *const env[] = {directory,
                                                                                    NULL};
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* if the test fails */
        dup2(ends[1], 1);
        close(ends[0]);
        close(ends[1]);
        execve("/proc/self/exe", argv, env);
        _exit(1);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &word, 1), 1);
    close(ends[0]);
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* What is reported of one process, whose pid goes to *pid; 0 none. Of more than one the test fails.
 */
static int find(struct collector *collector, uint64_t *pid, bool *is_gone)
{
    static uint64_t now_ns = 10 * SECOND;
    int reports = 0;
    batch_clear(collector->batch);
    collector_find_idle(collector, now_ns += 100 * SECOND);
    for (int i = 0; i < collector->batch->count; i++) {
        const struct record *record = &collector->batch->record[i];
        if (record->api != API_notice_dormant)
            continue;
        reports++;
        *pid = record->range.domain;
        *is_gone = !record->range.text;
    }
    return reports;
}

/* No launcher says which process is which rank. */
static void who_has_the_library_may_be_a_rank(void **state)
{
    struct error err;
    uint64_t bytes, pid = 0;
    bool is_gone;
    struct process_info info = process_named("one", PID_ELSEWHERE, 5000);
    info.rank = info.world_size = -1;
    struct ring_file *file =
        ring_file_make(scratch_path(state, "one.ring"), &info, &small_ring, &bytes);
    struct producer *producer = calloc(1, sizeof *producer);
    struct collector *collector = calloc(1, sizeof *collector);
    assert_true(producer && collector);
    collector->options.directory = *state;
    collector->batch = batch_new();
    collector->producers = &producer;
    collector->producer_count = 1;
    collector->hang.last_call_ns = SECOND;
    if (ring_reader_open(&producer->reader, scratch_path(state, "one.ring"), &err) < 0)
        fail_msg("%s", err.text);

    pid_t recorded = start(state, "libnccl.so.2"), tool = start(state, "libother.so.1");
    producer->liveness.pid = recorded;
    assert_int_equal(find(collector, &pid, &is_gone), 0);
    pid_t rank = start(state, "libcudart.so.13");
    assert_int_equal(find(collector, &pid, &is_gone), 1);
    assert_int_equal(pid, rank);
    assert_false(is_gone);
    end(rank);
    assert_int_equal(find(collector, &pid, &is_gone), 1);
    assert_int_equal(pid, rank);
    assert_true(is_gone);
    assert_int_equal(find(collector, &pid, &is_gone), 0);
    producer->liveness.pid = 0; /* any of them may be the recorded one */
    assert_int_equal(find(collector, &pid, &is_gone), 0);

    end(recorded);
    end(tool);
    ring_reader_close(producer->reader);
    munmap(file, bytes);
    dormant_search_free(collector->dormant);
    batch_free(collector->batch);
    free(producer);
    free(collector);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_has_the_library_may_be_a_rank, scratch_make,
                                        scratch_remove),
    };
    if (argc == 3 && strcmp(argv[1], "stand") == 0)
        return stand(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
