/* `--hub auto`: which process is a job's first, by its launcher's variables or torchrun's options.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cmd/hub/hub_place.h"
#include "cmd/hub/hub_torchrun.h"

enum { WORDS_MAX = 24 };

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
                 "torchrun");
    expect_place("torchrun --nnodes 2 --node-rank 1 --master-addr n7 train.py", false, "n7",
                 "torchrun");
    expect_place("/opt/bin/torchrun --nnodes=2:4 --node_rank=1 --rdzv_endpoint=n7:29400 a", false,
                 "n7", "torchrun");
    expect_place("python3 -m torch.distributed.run --nnodes=2 --node_rank=1 --rdzv-id=a/b -m a",
                 false, "", "torchrun-a-b");
    expect_place("env A=1 torchrun -r 3 --no-python --nnodes=2 --node-rank=3 ./a", false, "",
                 "torchrun");
    expect_place("torchrun --nnodes=2 --node-rank=1 --rdzv-endpoint=[fd00::1]:29400 a", false,
                 "fd00::1", "torchrun");
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
    char line[256], name[128] = "";
    gethostname(name, sizeof name - 1);
    snprintf(line, sizeof line, "torchrun --nnodes 2 --rdzv-backend c10d --rdzv-endpoint %s:1 a",
             name);
    expect_place(line, true, name, "torchrun");
    expect_place("torchrun --nnodes 2 --rdzv-endpoint localhost:1 a", true, "localhost",
                 "torchrun");
    expect_place("torchrun --nnodes 2 --rdzv-endpoint 127.0.0.1 a", true, "127.0.0.1", "torchrun");
    expect_place("torchrun --nnodes 2 --rdzv-endpoint 203.0.113.7:1 a", false, "203.0.113.7",
                 "torchrun");
    expect_place("torchrun --nnodes 1 --node-rank 0 --rdzv-endpoint 203.0.113.7:1 a", true,
                 "203.0.113.7", "torchrun");
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
    setenv("SLURM_PROCID", "0", 1);
    setenv("SLURM_STEP_NODELIST", "n[003-128],login", 1);
    setenv("SLURM_JOB_ID", "12", 1);
    setenv("SLURM_STEP_ID", "3", 1);
    expect_place("torchrun train.py", true, "n003", "slurm-12.3");
}

/* The machine that runs the tests may itself be a job's. */
static int clear(void **state)
{
    (void)state;
    static const char *const names[] = {"SLURM_PROCID",   "SLURM_STEP_NODELIST",
                                        "SLURM_JOB_ID",   "SLURM_STEP_ID",
                                        "PMI_RANK",       "OMPI_COMM_WORLD_RANK",
                                        "GROUP_RANK",     "LOCAL_RANK",
                                        "NODE_RANK",      "RANK",
                                        "MASTER_ADDR",    "MASTER_PORT",
                                        "PET_NNODES",     "PET_NODE_RANK",
                                        "PET_RDZV_ID",    "PET_RDZV_ENDPOINT",
                                        "PET_MASTER_ADDR"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unsetenv(names[i]);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(torchruns_options, clear),
        cmocka_unit_test_setup(the_programs_options, clear),
        cmocka_unit_test_setup(the_endpoints_host, clear),
        cmocka_unit_test_setup_teardown(variables, clear, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
