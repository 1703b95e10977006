/* Modelled speeds, links and pauses: each case is a process of its own, since they are read once.
 * Only lower bounds of times are compared; what was modelled is counted, and exact. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

void **__cudaRegisterFatBinary(void *fat_binary);
void __cudaRegisterFatBinaryEnd(void **module);
void __cudaRegisterFunction(void **module, const char *host, char *device, const char *name,
                            int thread_limit, uint3 *thread, uint3 *block, dim3 *block_size,
                            dim3 *grid_size, int *warp_size);

static char kernel; /* a stub: only its address matters; it has no twin, so it computes nothing */
static char totals[] = "/tmp/ddpcheck-model-XXXXXX";

struct modelled {
    int pid;
    unsigned long long kernels, transfers;
    double slower_s, transfer_s, device_pause_s, host_pause_s;
};

static void register_kernel(void)
{
    void **module = __cudaRegisterFatBinary(NULL);

    __cudaRegisterFunction(module, &kernel, NULL, "_Z7unknownPi", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFatBinaryEnd(module);
}

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* In seconds, until the device has done them. */
static double launch_kernels(int device, int count)
{
    int *argument = NULL;
    void *args[] = {&argument};
    double began_s = now_s();

    OK(cudaSetDevice(device));
    for (int i = 0; i < count; i++)
        OK(cudaLaunchKernel(&kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, args, 0, 0));
    OK(cudaDeviceSynchronize());
    return now_s() - began_s;
}

/* Runs `work` in a process with these settings, which must exit with 0, and reads its totals: false
 * if it wrote none. */
static bool run_modelled(const char *const settings[][2], void (*work)(void),
                         struct modelled *modelled)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        for (int i = 0; settings[i][0]; i++)
            setenv(settings[i][0], settings[i][1], 1);
        setenv("DDPCHECK_EMU_MODELLED", totals, 1);
        register_kernel();
        work();
        exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    FILE *file = fopen(totals, "r");
    int found = file ? fscanf(file,
                              "{\"pid\": %d, \"rank\": \"\", \"kernels\": %llu, \"slower_s\": %lf, "
                              "\"transfers\": %llu, \"transfer_s\": %lf, \"device_pause_s\": %lf, "
                              "\"host_pause_s\": %lf}",
                              &modelled->pid, &modelled->kernels, &modelled->slower_s,
                              &modelled->transfers, &modelled->transfer_s,
                              &modelled->device_pause_s, &modelled->host_pause_s)
                     : 0;
    if (file)
        fclose(file);
    unlink(totals);
    return found == 7;
}

static void must_take(double took_s, double least_s)
{
    if (took_s >= least_s)
        return;
    fprintf(stderr, "took %.6f s, modelled are %.6f s\n", took_s, least_s);
    exit(1);
}

static void kernels_on_two_devices(void)
{
    must_take(launch_kernels(0, 4), 4 * 0.005);
    must_take(launch_kernels(1, 4), 4 * 0.020);
}

static void slow_devices_take_longer(void **state)
{
    static const char *const settings[][2] = {
        {"DDPCHECK_EMU_KERNEL_TIME", "all=0.005"}, {"DDPCHECK_EMU_DEVICE_SPEED", "1=0.25"}, {0}};
    struct modelled modelled;

    (void)state;
    assert_true(run_modelled(settings, kernels_on_two_devices, &modelled));
    assert_int_equal(modelled.kernels, 8);
    assert_true(modelled.slower_s > 0 && modelled.slower_s <= 4 * 0.025);
    assert_true(modelled.device_pause_s == 0 && modelled.host_pause_s == 0);
}

static void kernels_before_and_after(void)
{
    launch_kernels(0, 2);
    sleep(1);
    must_take(launch_kernels(0, 2), 2 * 0.050);
}

static void a_device_may_become_slow(void **state)
{
    static const char *const settings[][2] = {
        {"DDPCHECK_EMU_KERNEL_TIME", "0=0.005"}, {"DDPCHECK_EMU_DEVICE_SPEED", "0=1,0=0.1@1"}, {0}};
    struct modelled modelled;

    (void)state;
    assert_true(run_modelled(settings, kernels_before_and_after, &modelled));
    assert_int_equal(modelled.kernels, 4);
}

static void many_kernels(void)
{
    must_take(launch_kernels(0, 25), 2 * 0.04); /* the host may pause at the same time */
    launch_kernels(1, 25);
}

static void devices_and_hosts_pause(void **state)
{
    static const char *const settings[][2] = {
        {"DDPCHECK_EMU_PAUSE", "0=0.04/10"}, {"DDPCHECK_EMU_HOST_PAUSE", "0=0.01/5"}, {0}};
    struct modelled modelled;

    (void)state;
    assert_true(run_modelled(settings, many_kernels, &modelled));
    assert_int_equal(modelled.kernels, 50);
    assert_true(fabs(modelled.device_pause_s - 2 * 0.04) < 1e-9);
    assert_true(fabs(modelled.host_pause_s - 5 * 0.01) < 1e-9);
}

static void kernels_for_a_while(void)
{
    launch_kernels(2, 1); /* the time begins, and may be over by then */
    for (int i = 0; i < 3; i++) {
        usleep(20000);
        launch_kernels(2, 1);
    }
}

static void pauses_come_by_time_as_well(void **state)
{
    static const char *const settings[][2] = {{"DDPCHECK_EMU_PAUSE", "all=0.001/0.02s"}, {0}};
    struct modelled modelled;

    (void)state;
    assert_true(run_modelled(settings, kernels_for_a_while, &modelled));
    assert_true(modelled.device_pause_s > 0.0029 && modelled.device_pause_s < 0.0041);
}

enum { BYTES = 200000 };

static void copy_between(void)
{
    static const int pairs[][2] = {{0, 1}, {2, 1}};
    static const double least_s[] = {0.02, 0.04};

    for (int i = 0; i < 2; i++) {
        char *to, *from;
        OK(cudaSetDevice(pairs[i][1]));
        OK(cudaMalloc((void **)&to, BYTES));
        OK(cudaSetDevice(pairs[i][0]));
        OK(cudaMalloc((void **)&from, BYTES));
        double began_s = now_s();
        OK(cudaMemcpyPeer(to, pairs[i][1], from, pairs[i][0], BYTES));
        OK(cudaDeviceSynchronize());
        must_take(now_s() - began_s, least_s[i]);
        OK(cudaMemcpyPeer(from, pairs[i][0], from + BYTES / 2, pairs[i][0], 1)); /* no link */
    }
}

static void links_have_rates(void **state)
{
    static const char *const settings[][2] = {{"DDPCHECK_EMU_LINK_RATE", "all=1G,2=5M,0-1=10M"},
                                              {0}};
    struct modelled modelled;

    (void)state;
    assert_true(run_modelled(settings, copy_between, &modelled));
    assert_int_equal(modelled.transfers, 2);
    assert_true(fabs(modelled.transfer_s - 0.06) < 1e-6);
}

static void some_kernels(void)
{
    launch_kernels(0, 3);
}

static void nonsense_is_left_out(void **state)
{
    static const char *const none[][2] = {{"DDPCHECK_EMU_DEVICE_SPEED", "1,=3,x=2,0=0,0=-1,1=2x"},
                                          {"DDPCHECK_EMU_LINK_RATE", "0-=5,0-1,1=3Q"},
                                          {"DDPCHECK_EMU_PAUSE", "0=1,0=1/,0=1/0,0=1/5x"},
                                          {0}};
    static const char *const one[][2] = {{"DDPCHECK_EMU_DEVICE_SPEED", "1,,=3,0=0.5,nonsense"},
                                         {0}};
    struct modelled modelled;

    (void)state;
    assert_false(run_modelled(none, some_kernels, &modelled));
    assert_true(run_modelled(one, some_kernels, &modelled));
    assert_int_equal(modelled.kernels, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slow_devices_take_longer), cmocka_unit_test(a_device_may_become_slow),
        cmocka_unit_test(devices_and_hosts_pause),  cmocka_unit_test(pauses_come_by_time_as_well),
        cmocka_unit_test(links_have_rates),         cmocka_unit_test(nonsense_is_left_out),
    };
    int file = mkstemp(totals);

    if (file < 0)
        return 1;
    close(file);
    unlink(totals);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
