/* What numbers are called, and calls with their arguments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/trace/names.h"

static void every_api_has_a_name_and_a_class(void **state)
{
    (void)state;
#define API(number, name, class)                  \
    assert_string_equal(api_name(number), #name); \
    assert_int_equal(api_class_of(number), CLASS_##class);
#include "lib/trace/apis.def"
#undef API
    assert_string_equal(api_name(0), "unknown call");
    assert_string_equal(api_name(API_COUNT), "unknown call");
    assert_string_equal(api_name(~0u), "unknown call");
    assert_int_equal(api_class_of(~0u), CLASS_NONE);
}

static void numbers_out_of_range_are_unknown(void **state)
{
    (void)state;
    assert_string_equal(datatype_name(TYPE_BFLOAT16), "bfloat16");
    assert_int_equal(datatype_bytes(TYPE_BFLOAT16), 2);
    assert_int_equal(datatype_bytes(TYPE_COUNT), 0);
    assert_string_equal(datatype_name(TYPE_COUNT), "unknown datatype");
    assert_string_equal(datatype_name(TYPE_NONE), "no datatype");
    assert_string_equal(redop_name(REDOP_AVG), "avg");
    assert_string_equal(redop_name(200), "unknown operator");
}

static void calls_read_as_people_write_them(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        struct record record;
    } cases[] = {
        {"ncclAllReduce(count=4096, float32, sum)",
         {.api = API_ncclAllReduce,
          .phase = RECORD_ENTER,
          .op = {.count = 4096, .datatype = TYPE_FLOAT32, .redop = REDOP_SUM, .root = -1}}},
        {"ncclBroadcast(count=10, int32, root=0)",
         {.api = API_ncclBroadcast,
          .phase = RECORD_ENTER,
          .op = {.count = 10, .datatype = TYPE_INT32, .redop = REDOP_NONE, .root = 0}}},
        {"ncclReduce(count=18446744073709551615, bfloat16, max, root=3)",
         {.api = API_ncclReduce,
          .phase = RECORD_ENTER,
          .op = {.count = UINT64_MAX, .datatype = TYPE_BFLOAT16, .redop = REDOP_MAX, .root = 3}}},
        {"ncclSend(count=1, uint8, peer=7)",
         {.api = API_ncclSend,
          .phase = RECORD_ENTER,
          .op = {.count = 1, .datatype = TYPE_UINT8, .redop = REDOP_NONE, .root = 7}}},
        {"ncclCommSplit(color=-1, key=2)",
         {.api = API_ncclCommSplit, .phase = RECORD_ENTER, .comm = {.color = -1, .key = 2}}},
        {"ncclCommInitRank(nranks=8, rank=3)",
         {.api = API_ncclCommInitRank, .phase = RECORD_ENTER, .comm = {.nranks = 8, .rank = 3}}},
        {"cudaStreamSynchronize", {.api = API_cudaStreamSynchronize, .phase = RECORD_ENTER}},
        {"cudaMemcpy(bytes=64)",
         {.api = API_cudaMemcpy, .phase = RECORD_ENTER, .wait = {.bytes = 64}}},
        {"cudaMemcpy2DAsync(bytes=640)",
         {.api = API_cudaMemcpy2DAsync, .copy = {.bytes = 64, .height = 10}}},
        {"ncclAllReduce", {.api = API_ncclAllReduce, .phase = RECORD_LEAVE, .leave = {.enter = 4}}},
    };
    char text[128];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(record_text(&cases[i].record, text, sizeof text), cases[i].text);
    char small[8];
    assert_string_equal(record_text(&cases[0].record, small, sizeof small), "ncclAll");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_api_has_a_name_and_a_class),
        cmocka_unit_test(numbers_out_of_range_are_unknown),
        cmocka_unit_test(calls_read_as_people_write_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
