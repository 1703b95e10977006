/* Secrets in what is recorded of a program: arguments, and texts of errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/secrets.h"

/* '|' ends an argument. */
struct masked {
    const char *from, *to;
};

static void check_masked(const struct masked *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t bytes = strlen(rows[i].from);
        char *text = malloc(bytes + 1);
        assert_non_null(text);
        memcpy(text, rows[i].from, bytes);
        for (size_t k = 0; k < bytes; k++)
            if (text[k] == '|')
                text[k] = 0;
        bool is_command = memchr(text, 0, bytes) != NULL;
        if (is_command)
            secrets_mask_command(text, bytes);
        else
            text[secrets_mask(text, bytes)] = 0;
        assert_string_equal(text, rows[i].to);
        size_t again = secrets_mask(text, strlen(text));
        assert_int_equal(again, strlen(rows[i].to));
        assert_memory_equal(text, rows[i].to, again);
        free(text);
    }
}

#define CHECK_MASKED(rows) check_masked(rows, sizeof(rows) / sizeof *(rows))

static void values_of_arguments_are_masked(void **state)
{
    (void)state;
    static const struct masked rows[] = {
        {"train.py|--api-key=sk-1|--lr|0.1|", "train.py --api-key=*** --lr 0.1"},
        {"train.py|--hub-token|hf_abcDEF|--epochs|3|", "train.py --hub-token *** --epochs 3"},
        {"env|WANDB_API_KEY=0123abcd|python|train.py|", "env WANDB_API_KEY=*** python train.py"},
        {"train|--password|two words & more|x|", "train --password *** x"},
        {"train|--password=two words & more|x|", "train --password=*** x"},
        {"t|--db|postgres://me:pw@db:5432/x|", "t --db postgres://***@db:5432/x"},
        {"t|--key|abcdefgh|", "t --key ***"},
        {"t|s3://b/?X-Amz-Security-Token=ab%3d&part=1|",
         "t s3://b/?X-Amz-Security-Token=***&part=1"},
        {"t|{\"secret\": \"a b\", \"lr\": 1}|", "t {\"secret\": \"***\", \"lr\": 1}"},
        {"t|--password||--x|", "t --password  --x"},
        {"t|--clientSecret|abc|", "t --clientSecret ***"},
        {"t|--auth|abc def|x|", "t --auth *** x"},
        {"t|--auth=abc|--http-auth|u:p|", "t --auth=*** --http-auth ***"},
    };
    CHECK_MASKED(rows);
}

static void texts_of_errors_are_masked(void **state)
{
    (void)state;
    static const struct masked rows[] = {
        {"HTTPError: 401 for url: https://u:p@host/x?token=hf_abc&y=2",
         "HTTPError: 401 for url: https://***@host/x?token=***&y=2"},
        {"ValueError: bad config {'api_key': 'sk-abc', 'lr': 0.1}",
         "ValueError: bad config {'api_key': '***', 'lr': 0.1}"},
        {"RuntimeError: login failed (password: hunter2).",
         "RuntimeError: login failed (password: ***)."},
        {"Authorization: Bearer abc.def.ghi", "Authorization: ***"},
        {"sent Bearer abcdefghijk", "sent Bearer ***"},
        {"CalledProcessError: Command '['mysql', '--password', 'hunter2']' failed",
         "CalledProcessError: Command '['mysql', '--password', '***']' failed"},
        {"secret = \"s3\"", "secret = \"**\""},
        {"AWS_SECRET_ACCESS_KEY=abc/def+ghi is wrong", "AWS_SECRET_ACCESS_KEY=*** is wrong"},
        {"no server at nats://0123456789abcdef@host:4222", "no server at nats://***@host:4222"},
    };
    CHECK_MASKED(rows);
}

/* None of them is real. */
#define LETTERS_18 "abcDEF0123456789XY"
#define LETTERS_36 LETTERS_18 LETTERS_18

static void tokens_are_masked_without_a_name(void **state)
{
    (void)state;
    static const struct masked rows[] = {
        {"login.py|hf_" LETTERS_36 "|x|", "login.py *** x"},
        {"key sk-proj-" LETTERS_18 "_a is refused", "key *** is refused"},
        {"sk-ant-api03-" LETTERS_18 "-a: 401", "***: 401"},
        {"clone ghp_" LETTERS_36 " failed", "clone *** failed"},
        {"github_pat_" LETTERS_18 "abcd_" LETTERS_36, "***"},
        {"(glpat-" LETTERS_18 ")", "(***)"},
        {"The key 'AKIAIOSFODNN7EXAMPLE' is unknown", "The key '***' is unknown"},
        {"ASIAIOSFODNN7EXAMPLE", "***"},
        {"AIza" LETTERS_18 "-" LETTERS_18, "***"},
        {"nvapi-" LETTERS_36, "***"},
        {"xoxb-123456789012-1234567890123-abc", "***"},
        {"Invalid token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2ln.", "Invalid token ***."},
        {"t|--x=gho_" LETTERS_36 "|", "t --x=***"},
    };
    CHECK_MASKED(rows);
}

static void what_is_no_secret_stays(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "KeyError: 'model.layer.0.weight'",
        "RuntimeError: Missing key(s) in state_dict: \"fc.weight\"",
        "DistStoreError: wait timeout after 300000ms, keys: /default_pg/0",
        "Timed out, for key: store_based_barrier_key:1 (world_size=4)",
        "retrieving ncclUniqueId from [0] via c10d key-value store by key '0', but got error",
        "IndexError: token: 50257 is out of range",
        "InvalidToken: the stream has ended",
        "torchrun --nproc-per-node=4 train.py --token-file /etc/t --max_new_tokens=4096",
        "python train.py --tokenizer gpt2 --num-key-value-heads 8 --use_auth_token=True",
        "https://host/path@v1 and user@host:/path",
        "the bearer of this forward pass: backward",
        "assertion token == NULL",
        "hf_model_loader sk-learn sk-means-of-2024 ghp_x AKIA eyJson xoxb-1",
        "auth: no server answers; Bad auth for key",
        "std::map<Key, Value>::at",
        "",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct masked row = {texts[i], texts[i]};
        check_masked(&row, 1);
    }
}

/* Nothing behind the text is read: it is allocated to the byte, for the sanitizers. */
static void every_cut_is_safe(void **state)
{
    (void)state;
    static const char text[] = "--password 'x' https://a:b@c/?token=abc&k Authorization: Bearer "
                               "abcdefghij '--secret', \"v\" key = value api_key: \"abc";
    for (size_t bytes = 0; bytes < sizeof text; bytes++) {
        char *copy = malloc(bytes ? bytes : 1);
        assert_non_null(copy);
        memcpy(copy, text, bytes);
        assert_true(secrets_mask(copy, bytes) <= bytes);
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_arguments_are_masked),
        cmocka_unit_test(texts_of_errors_are_masked),
        cmocka_unit_test(tokens_are_masked_without_a_name),
        cmocka_unit_test(what_is_no_secret_stays),
        cmocka_unit_test(every_cut_is_safe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
