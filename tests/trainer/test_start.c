/* How a rank finds out who it is and finds the others: options, environment and store. */
#include "tests/trainer/fixture.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "trainer/environment.h"
#include "trainer/faults.h"
#include "trainer/options.h"
#include "trainer/store.h"

static int parse(struct train_options *options, struct error *err, int argc, const char **argv)
{
    return options_parse(options, argc, (char **)argv, err);
}

#define PARSE(options, err, ...)                                                       \
    parse(options, err,                                                                \
          (int)(sizeof((const char *[]){"ddptrain", ##__VA_ARGS__}) / sizeof(char *)), \
          (const char *[]){"ddptrain", ##__VA_ARGS__})

static void options_have_defaults_and_values(void **state)
{
    (void)state;
    struct train_options options;
    struct error err = {0};
    assert_int_equal(PARSE(&options, &err), 0);
    assert_string_equal(options.model, "gan");
    assert_int_equal(options.iterations, 100);
    assert_int_equal(options.fault.rank, -1);
    assert_int_equal(
        PARSE(&options, &err, "--model=cnn", "--epochs", "2", "--bucket-mb", "0.5", "--join"), 0);
    assert_string_equal(options.model, "cnn");
    assert_int_equal(options.iterations, 0);
    assert_int_equal(options.epochs, 2);
    assert_true(options.gradients.bucket_mb == 0.5);
    assert_true(options.join);
}

static void wrong_options_are_refused(void **state)
{
    (void)state;
    struct train_options options;
    struct error err;
    const struct {
        const char *argument, *value, *why;
    } wrong[] = {
        {"--bogus", NULL, "unknown option '--bogus'"},
        {"stray", NULL, "unexpected argument 'stray'"},
        {"--batch", NULL, "--batch needs a value"},
        {"--batch", "0", "--batch 0: expected a whole number of at least 1"},
        {"--batch", "3x", "expected a whole number"},
        {"--batch", "99999999999", "expected a whole number"},
        {"--bucket-mb", "nan", "expected a number"},
        {"--join=yes", NULL, "takes no value"},
        {"--image", "33", "expected 8, 16, 32"},
        {"--model", "rnn", "expected gan or cnn"},
        {"--fault", "none", "no such fault"},
        {"--average", "sum", "expected avg, premulsum or divide"},
        {"--checkpoint-every", "3", "needs --checkpoint"},
        {"--math", "fp64", "expected fp32, tf32 or bf16"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const char *argv[] = {"ddptrain", wrong[i].argument, wrong[i].value};
        err.text[0] = '\0';
        assert_int_equal(parse(&options, &err, wrong[i].value ? 3 : 2, argv), -1);
        if (!strstr(err.text, wrong[i].why))
            fail_msg("expected '%s' in '%s'", wrong[i].why, err.text);
    }
}

static void clear_environment(void)
{
    static const char *const names[] = {
        "RANK",
        "WORLD_SIZE",
        "LOCAL_RANK",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "PMI_RANK",
        "PMI_SIZE",
        "MPI_LOCALRANKID",
        "SLURM_PROCID",
        "SLURM_NTASKS",
        "SLURM_LOCALID",
        "MASTER_ADDR",
        "MASTER_PORT",
        "TORCHELASTIC_RUN_ID",
        "TORCHELASTIC_USE_AGENT_STORE",
        "PMIX_NAMESPACE",
        ENVIRONMENT_STORE_SOCKET,
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unsetenv(names[i]);
}

static void the_launcher_says_the_rank(void **state)
{
    (void)state;
    struct environment environment;
    struct error err = {0};
    clear_environment();
    assert_int_equal(environment_read(&environment, false, &err), 0);
    assert_null(environment.launcher);
    assert_int_equal(environment.size, 1);

    setenv("SLURM_PROCID", "1", 1);
    setenv("SLURM_NTASKS", "2", 1);
    assert_int_equal(environment_read(&environment, false, &err), 0);
    assert_string_equal(environment.launcher, "Slurm");
    assert_int_equal(environment.local_rank, -1);
    assert_int_equal(environment_read(&environment, true, &err),
                     0); /* --ranks beats an interactive Slurm shell */
    assert_null(environment.launcher);

    setenv("RANK", "3", 1);
    setenv("WORLD_SIZE", "4", 1);
    setenv("LOCAL_RANK", "0", 1);
    setenv("MASTER_PORT", "1234", 1);
    assert_int_equal(environment_read(&environment, false, &err), 0);
    assert_string_equal(environment.launcher, "torchrun");
    assert_int_equal(environment.rank, 3);
    assert_int_equal(environment.local_rank, 0);
    assert_int_equal(environment.port, 1234);
    setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1); /* torchrun listens on 1234 itself */
    assert_int_equal(environment_read(&environment, false, &err), 0);
    assert_int_equal(environment.port, 21235);

    setenv("RANK", "4", 1);
    assert_int_equal(environment_read(&environment, false, &err), -1);
    assert_non_null(strstr(err.text, "RANK=4 does not fit to WORLD_SIZE=4"));
    setenv("RANK", "x", 1);
    assert_int_equal(environment_read(&environment, false, &err), -1);
    clear_environment();
}

struct getter {
    int port, status;
    char value[4];
    struct error err;
};

static void *get_value(void *argument)
{
    struct getter *getter = argument;
    int store = store_connect("127.0.0.1", getter->port, 5, &getter->err);
    getter->status =
        store < 0 ? -1 : store_get(store, "key", getter->value, sizeof getter->value, &getter->err);
    close(store);
    return NULL;
}

static void a_get_waits_for_its_set(void **state)
{
    (void)state;
    enum { GETTERS = 8 };
    struct getter getters[GETTERS];
    pthread_t threads[GETTERS];
    struct error err = {0};
    int port = 0, listening = store_listen(&port, &err);
    assert_true(listening >= 0 && port > 0);
    for (int i = 0; i < GETTERS; i++) {
        getters[i] = (struct getter){.port = port, .status = -2};
        assert_int_equal(pthread_create(&threads[i], NULL, get_value, &getters[i]), 0);
    }
    assert_int_equal(store_serve(listening, &err), 0);
    int store = store_connect("127.0.0.1", port, 5, &err);
    usleep(20 * 1000);
    assert_int_equal(store_set(store, "key", "abc", 4, &err), 0);
    for (int i = 0; i < GETTERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(getters[i].status, 0);
        assert_string_equal(getters[i].value, "abc");
    }
    char two[2];
    assert_int_equal(store_get(store, "key", two, sizeof two, &err), -1);
    assert_non_null(strstr(err.text, "has 4 bytes, expected 2"));
    close(store);
    port = 0;
    close(store_listen(&port, &err));
    assert_int_equal(store_connect("127.0.0.1", port, 0.1, &err), -1);
    assert_non_null(strstr(err.text, "can't reach rank 0's store"));
}

static void a_fault_strikes_where_and_when_it_says(void **state)
{
    (void)state;
    struct fault fault = {fault_find("partial-barrier"), 3, 5}, none = {0};
    assert_true(fault_strikes(&fault, FAULT_PARTIAL_BARRIER, 3, 5));
    assert_false(fault_strikes(&fault, FAULT_PARTIAL_BARRIER, 2, 5));
    assert_false(fault_strikes(&fault, FAULT_PARTIAL_BARRIER, 3, 4));
    assert_false(fault_strikes(&fault, FAULT_OOM_SKIP, 3, 5));
    assert_false(fault_is(&none, FAULT_PARTIAL_BARRIER));
    assert_null(fault_find("partial"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_have_defaults_and_values),
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(the_launcher_says_the_rank),
        cmocka_unit_test(a_get_waits_for_its_set),
        cmocka_unit_test(a_fault_strikes_where_and_when_it_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
