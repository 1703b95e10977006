/* fork and exit, with streams that hang. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

/* Runs `body` in a child and returns its exit status; the test's own time limit catches a deadlock.
 */
static int in_child(void (*body)(void))
{
    int status;
    pid_t child = fork();

    if (!child) {
        body();
        exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void use_after_fork(void)
{
    void *memory;
    int bad = 0;

    bad += cudaMalloc(&memory, 10) != cudaErrorInitializationError;
    bad += cudaDeviceSynchronize() != cudaErrorInitializationError;
    bad += cudaStreamSynchronize(0) != cudaErrorInitializationError;
    bad += cudaGetLastError() != cudaErrorInitializationError;
    _exit(10 + bad); /* exit() would run a sanitizer's handlers, which wait for the lost threads */
}

static void hang(void)
{
    static struct gate never = GATE_CLOSED;
    cudaStream_t stream;

    if (cudaStreamCreate(&stream) || cudaLaunchHostFunc(stream, gate_pass, &never) ||
        cudaStreamQuery(stream) != cudaErrorNotReady)
        exit(1);
    exit(7); /* does not wait for the stream */
}

static void fresh_process_may_use_cuda(void **state)
{
    (void)state;
    assert_int_equal(in_child(hang), 7);
}

static int pipe_ends[2];

/* Sees the third GPU as its first. */
static void send_identity(void)
{
    struct cudaDeviceProp properties;
    int count;

    setenv("CUDA_VISIBLE_DEVICES", "2,1", 1);
    if (cudaGetDeviceCount(&count) || count != 2 || cudaGetDeviceProperties(&properties, 0) ||
        write(pipe_ends[1], &properties, sizeof(properties)) != sizeof(properties))
        exit(1);
}

static void devices_are_the_same_in_every_process(void **state)
{
    struct cudaDeviceProp theirs, ours, other;

    (void)state;
    assert_int_equal(pipe(pipe_ends), 0);
    assert_int_equal(in_child(send_identity), 0);
    assert_int_equal(read(pipe_ends[0], &theirs, sizeof(theirs)), sizeof(theirs));
    OK(cudaGetDeviceProperties(&ours, 2));
    OK(cudaGetDeviceProperties(&other, 0));
    assert_memory_equal(&theirs.uuid, &ours.uuid, sizeof(ours.uuid));
    assert_int_equal(theirs.pciBusID, ours.pciBusID);
    assert_memory_not_equal(&theirs.uuid, &other.uuid, sizeof(ours.uuid));
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

static void child_of_a_user_gets_an_error(void **state)
{
    struct gate gate = GATE_CLOSED;

    (void)state;
    OK(cudaLaunchHostFunc(0, gate_pass, &gate));
    gate_await(&gate); /* forks while work is under way */
    assert_int_equal(in_child(use_after_fork), 10);
    gate_open(&gate);
    OK(cudaDeviceSynchronize());
}

static void reset_lets_go_of_a_hung_stream(void **state)
{
    static struct gate never = GATE_CLOSED;
    cudaStream_t stream;
    void *memory;

    (void)state;
    OK(cudaStreamCreate(&stream));
    OK(cudaLaunchHostFunc(stream, gate_pass, &never));
    OK(cudaDeviceReset());
    OK(cudaMalloc(&memory, 100));
    OK(cudaMemset(memory, 0, 100));
    OK(cudaDeviceSynchronize());
    EXPECT(cudaStreamQuery(stream), cudaErrorInvalidResourceHandle);
    gate_open(&never);
}

/* With DDPCHECK_EMU_DRIVER_VERSION=12080: every call but those that find it out fails. */
static int fails_as_insufficient(void)
{
    void *memory;
    int driver = 0, runtime = 0, devices = 0;
    bool told = !cudaDriverGetVersion(&driver) && !cudaRuntimeGetVersion(&runtime);

    return told && driver == 12080 && runtime >= 13000 &&
           cudaGetDeviceCount(&devices) == cudaErrorInsufficientDriver &&
           cudaMalloc(&memory, 1) == cudaErrorInsufficientDriver &&
           cudaGetLastError() == cudaErrorInsufficientDriver;
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "old-driver"))
        return !fails_as_insufficient();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fresh_process_may_use_cuda), /* first: nothing has used CUDA here yet */
        cmocka_unit_test(devices_are_the_same_in_every_process),
        cmocka_unit_test(child_of_a_user_gets_an_error),
        cmocka_unit_test(reset_lets_go_of_a_hung_stream),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
