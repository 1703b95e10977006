/* `--hub auto`: which process is a job's first, by its launcher's variables or torchrun's options.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cmd/hub/hub_hydra.h"
#include "cmd/hub/hub_place.h"
#include "cmd/hub/hub_torchrun.h"

enum { WORDS_MAX = 24 };
static const char *program;

static struct hub_place place_of(const char *line)
{
    static char words[512];
    char *argv[WORDS_MAX + 1], *rest = words;
    int count = 0;
    struct hub_place place;
    snprintf(words, sizeof words, "%s", line);
    for (char *word; count < WORDS_MAX && (word = strsep(&rest, " "));)
        argv[count++] = word;
    argv[count] = NULL;
    hub_place_find(&place, argv);
    return place;
}

static void expect_place(const char *line, bool is_first, const char *host, const char *job)
{
    struct hub_place place = place_of(line);
    if (place.is_first != is_first || strcmp(place.host, host) != 0 || strcmp(place.job, job) != 0)
        fail_msg("%s: first %d, host \"%s\", job \"%s\"", line, place.is_first, place.host,
                 place.job);
}

static void torchruns_options(void **state)
{
    (void)state;
    expect_place("torchrun --nnodes 2 --node-rank 0 --master-addr n7 train.py", true, "n7",
                 "torchrun-n7");
    expect_place("torchrun --nnodes 2 --node-rank 1 --master-addr n7 --master_port=1 a", false,
                 "n7", "torchrun-n7.1");
    expect_place("/opt/bin/torchrun --nnodes=2:4 --node_rank=1 --rdzv_endpoint=n7:29400 a", false,
                 "n7", "torchrun-n7.29400");
    expect_place("python3 -m torch.distributed.run --nnodes=2 --node_rank=1 --rdzv-id=a/b -m a",
                 false, "", "torchrun-a-b");
    expect_place("env A=1 torchrun -r 3 --no-python --nnodes=2 --node-rank=3 ./a", false, "",
                 "torchrun");
    expect_place("torchrun --nnodes=2 --node-rank=1 --rdzv-endpoint=[fd00::1]:29400 a", false,
                 "fd00::1", "torchrun-fd00--1.29400");
}

/* What the program takes is its own, and not torchrun's. */
static void the_programs_options(void **state)
{
    (void)state;
    expect_place("torchrun --nnodes 2 --node-rank 0 train.py --node-rank 1", true, "", "torchrun");
    expect_place("torchrun --nnodes 2 --node-rank 0 -m train --node-rank 1", true, "", "torchrun");
    expect_place("torchrun --nnodes 2 --node-rank 0 -- train.py --node-rank 1", true, "",
                 "torchrun");
    expect_place("python train.py --node-rank 1", true, "", "none");
    expect_place("torchrun train.py", true, "", "torchrun");
    expect_place("torchrun --nnodes 2 --node-rank", true, "", "torchrun");
}

/* With a rendezvous by c10d all hosts have one command line: it is where the endpoint is. */
static void the_endpoints_host(void **state)
{
    (void)state;
    char line[256], name[128] = "", job[160], without_port[160];
    gethostname(name, sizeof name - 1);
    snprintf(line, sizeof line, "torchrun --nnodes 2 --rdzv-backend c10d --rdzv-endpoint %s:1 a",
             name);
    snprintf(without_port, sizeof without_port, "torchrun-%s", name);
    snprintf(job, sizeof job, "%s.1", without_port);
    expect_place(line, true, name, job);
    expect_place("torchrun --nnodes 2 --rdzv-endpoint localhost:1 a", true, "localhost", job);
    expect_place("torchrun --nnodes 2 --rdzv-endpoint 127.0.0.1 a", true, "127.0.0.1",
                 without_port);
    expect_place("torchrun --nnodes 2 --rdzv-endpoint 203.0.113.7:1 a", false, "203.0.113.7",
                 "torchrun-203.0.113.7.1");
    expect_place("torchrun --nnodes 1 --node-rank 0 --rdzv-endpoint 203.0.113.7:1 a", true,
                 "203.0.113.7", "torchrun-203.0.113.7.1");
}

/* Options count more than variables; a launcher that starts each torchrun knows more than both. */
static void variables(void **state)
{
    (void)state;
    setenv("PET_NNODES", "2", 1);
    setenv("PET_NODE_RANK", "1", 1);
    setenv("PET_RDZV_ID", "job", 1);
    expect_place("torchrun train.py", false, "", "torchrun-job");
    expect_place("torchrun --node-rank 0 train.py", true, "", "torchrun-job");
    expect_place("python train.py", false, "", "torchrun-job");
    setenv("MASTER_ADDR", "n0", 1);
    setenv("MASTER_PORT", "29500", 1);
    setenv("GROUP_RANK", "1", 1);
    setenv("LOCAL_RANK", "0", 1);
    setenv("TORCHELASTIC_RUN_ID", "none", 1); /* torchrun without --rdzv-id says this */
    expect_place("python train.py", false, "n0", "torchrun-n0.29500");
    setenv("TORCHELASTIC_RUN_ID", "j/1", 1);
    expect_place("python train.py", false, "n0", "torchrun-j-1");
    setenv("PMI_RANK", "1", 1); /* of no Hydra's */
    expect_place("python train.py", false, "", "mpich");
    setenv("I_MPI_HYDRA_UUID", "9d260000-7c26-e807-8fb4-050000430af0", 1); /* Intel MPI */
    expect_place("python train.py", false, "", "mpich-9d260000-7c26-e807-8fb4-050000430af0");
    setenv("SLURM_PROCID", "0", 1);
    setenv("SLURM_STEP_NODELIST", "n[003-128],login", 1);
    setenv("SLURM_JOB_ID", "12", 1);
    setenv("SLURM_STEP_ID", "3", 1);
    expect_place("torchrun train.py", true, "n003", "slurm-12.3");
}

/* As a process below Hydra's proxy, whose arguments end with these. */
static void expect_address(const char *option, const char *value, const char *address)
{
    char command[512], found[64] = "";
    int ends[2], status = -1;
    snprintf(command, sizeof command, "%s address; exit $?", program);
    assert_return_code(pipe(ends), errno);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execl("/bin/sh", "/usr/bin/hydra_pmi_proxy", "-c", command, "--rmk", "user", option, value,
              (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    ssize_t bytes = read(ends[0], found, sizeof found - 1);
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_return_code(bytes, errno);
    assert_string_equal(found, address);
}

static void hydras_jobs(void **state)
{
    (void)state;
    expect_address("--control-port", "n0:37095", "n0:37095\n");
    expect_address("--control-port", NULL, "\n");
    expect_address("--pgid", "0", "\n");
}

/* The machine that runs the tests may itself be a job's. */
static int clear(void **state)
{
    (void)state;
    static const char *const names[] = {"SLURM_PROCID",
                                        "SLURM_STEP_NODELIST",
                                        "SLURM_JOB_ID",
                                        "SLURM_STEP_ID",
                                        "PMI_RANK",
                                        "OMPI_COMM_WORLD_RANK",
                                        "GROUP_RANK",
                                        "LOCAL_RANK",
                                        "NODE_RANK",
                                        "RANK",
                                        "MASTER_ADDR",
                                        "MASTER_PORT",
                                        "PET_NNODES",
                                        "PET_NODE_RANK",
                                        "PET_RDZV_ID",
                                        "PET_RDZV_ENDPOINT",
                                        "PET_MASTER_ADDR",
                                        "PET_MASTER_PORT",
                                        "TORCHELASTIC_RUN_ID",
                                        "I_MPI_HYDRA_UUID"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unsetenv(names[i]);
    return 0;
}

int main(int argc, char **argv)
{
    char address[PLACE_JOB_BYTES];
    program = argv[0];
    if (argc > 1) {
        hydra_find_address(address, sizeof address);
        puts(address);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(torchruns_options, clear),
        cmocka_unit_test_setup(the_programs_options, clear),
        cmocka_unit_test_setup(the_endpoints_host, clear),
        cmocka_unit_test(hydras_jobs),
        cmocka_unit_test_setup_teardown(variables, clear, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
