/* test_kinds.c: what each kind of operation moves, and what other tools call kinds and datatypes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/trace/kind_names.h"
#include "lib/trace/names.h"

/* Of 3 float32 elements on 4 ranks, at the root (rank 1) and elsewhere. */
static void extents_follow_nccl(void **state)
{
    static const struct {
        uint16_t api;
        uint64_t send_at_root, recv_at_root, send, recv;
    } cases[] = {
        {API_ncclAllReduce, 12, 12, 12, 12}, {API_ncclBroadcast, 12, 12, 0, 12},
        {API_ncclBcast, 12, 12, 0, 12},      {API_ncclReduce, 12, 12, 12, 0},
        {API_ncclAllGather, 12, 48, 12, 48}, {API_ncclReduceScatter, 48, 12, 48, 12},
        {API_ncclAlltoAll, 48, 48, 48, 48},  {API_ncclGather, 12, 48, 12, 0},
        {API_ncclScatter, 48, 12, 0, 12},    {API_ncclSend, 12, 0, 12, 0},
        {API_ncclRecv, 0, 12, 0, 12},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int at_root = 0; at_root < 2; at_root++) {
            const struct record record = {
                .api = cases[i].api,
                .op = {.count = 3, .datatype = TYPE_FLOAT32, .root = 1, .rank = at_root ? 1 : 2}};
            struct op_extent extent;
            assert_true(op_extent_of(&record, 4, &extent));
            assert_int_equal(extent.send_bytes, at_root ? cases[i].send_at_root : cases[i].send);
            assert_int_equal(extent.recv_bytes, at_root ? cases[i].recv_at_root : cases[i].recv);
        }
}

static void every_operation_has_a_kind(void **state)
{
    (void)state;
    for (unsigned api = 0; api < API_COUNT; api++) {
        enum api_class class = api_class_of(api);
        const struct kind *kind = kind_find(api);
        assert_int_equal(kind != NULL, class == CLASS_COLLECTIVE || class == CLASS_P2P);
        if (!kind)
            continue;
        assert_int_equal(kind->flags & KIND_TO_PEER ? CLASS_P2P : CLASS_COLLECTIVE, class);
        bool one_sided = kind->flags & KIND_ONE_SIDED; /* no other tool reports it with all of it */
        assert_int_equal(kind_of_nccl(api_name(api) + 4, strlen(api_name(api) + 4)),
                         one_sided ? API_NONE : api);
        assert_int_equal(kind_name_of(KIND_KINETO, api) != NULL, !one_sided);
    }
    assert_int_equal(kind_of_nccl("AllToAll", 8), API_ncclAlltoAll);
    assert_int_equal(kind_of_nccl("SendRecv", 8), API_NONE);
    assert_null(kind_find(~0u));
}

static void unknown_types_have_no_size(void **state)
{
    const struct record record = {.api = API_ncclAllReduce,
                                  .op = {.count = 1, .datatype = TYPE_COUNT}};
    struct op_extent extent;
    unsigned factor;
    (void)state;
    assert_int_equal(datatype_bytes(TYPE_COUNT), 0);
    assert_int_equal(datatype_bytes(TYPE_NONE), 0);
    assert_false(op_extent_of(&record, 4, &extent));
    assert_string_equal(datatype_torch_name(TYPE_COUNT), "");
    assert_int_equal(datatype_of_torch("Quaternion", 10, &factor), TYPE_NONE);
    for (unsigned type = 0; type < TYPE_COUNT; type++) {
        const char *name = datatype_torch_name(type);
        assert_in_range(datatype_bytes(type), 1, DATATYPE_BYTES_MAX);
        assert_int_equal(datatype_of_torch(name, strlen(name), &factor), type);
        assert_int_equal(factor, 1);
    }
    assert_int_equal(datatype_of_torch("ComplexDouble", 13, &factor), TYPE_FLOAT64);
    assert_int_equal(factor, 2);
}

static void counts_that_overflow_are_said_to(void **state)
{
    const struct record record = {.api = API_ncclAllGather,
                                  .op = {.count = UINT64_MAX / 2, .datatype = TYPE_FLOAT64}};
    struct op_extent extent;
    (void)state;
    assert_true(op_extent_of(&record, 4, &extent));
    assert_true(extent.send_bytes == UINT64_MAX && extent.recv_bytes == UINT64_MAX);
}

static void names_are_of_their_source(void **state)
{
    (void)state;
    assert_int_equal(kind_name_find(KIND_FLIGHT, "recv", 4)->elements, KIND_OF_OUT);
    assert_int_equal(kind_name_find(KIND_WATCHDOG, "BARRIER", 7)->api, API_ncclAllReduce);
    assert_null(kind_name_find(KIND_WATCHDOG, "allreduce", 9));
    assert_null(kind_name_find(KIND_FLIGHT, "recv", 3));
    assert_string_equal(kind_name_of(KIND_KINETO, API_ncclBcast), "broadcast");
    assert_null(kind_name_of(KIND_KINETO, API_cudaFree));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(extents_follow_nccl),
        cmocka_unit_test(every_operation_has_a_kind),
        cmocka_unit_test(unknown_types_have_no_size),
        cmocka_unit_test(counts_that_overflow_are_said_to),
        cmocka_unit_test(names_are_of_their_source),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
