/* Which gradients share a bucket, and how the reducer rebuilds them (with a communicator of one
 * rank). What it does about parameters without gradients: test_unused.c. */
#include "tests/trainer/fixture.h"

#include <string.h>

#include "trainer/autograd.h"
#include "trainer/operations.h"
#include "trainer/reducer.h"

static void assert_layout(const size_t *bytes, int count, struct bucket_limits limits,
                          const int *first, int buckets)
{
    struct bucket_layout layout;
    struct bucket_item items[MODULE_MAX_PARAMETERS] = {0};
    int order[MODULE_MAX_PARAMETERS];
    for (int p = 0; p < count; p++)
        items[p].bytes = bytes[p];
    bucket_reverse_order(order, count);
    bucket_assign(&layout, order, items, count, &limits);
    assert_int_equal(layout.bucket_count, buckets);
    for (int b = 0; b <= buckets; b++)
        assert_int_equal(layout.first[b], first[b]);
    assert_memory_equal(layout.order, order, sizeof *order * (size_t)count);
}

static void a_bucket_is_closed_when_it_reaches_its_limit(void **state)
{
    (void)state;
    const size_t bytes[] = {40, 40, 40, 10, 10, 10};
    /* From the back: 10 + 10 reach the first limit of 20; 10 + 40 + 40 reach 90; 40 is left. */
    assert_layout(bytes, 6, (struct bucket_limits){20, 90}, (int[]){0, 2, 5, 6}, 3);
    /* A parameter larger than the limit has a bucket of its own. */
    assert_layout(bytes, 6, (struct bucket_limits){1, 40}, (int[]){0, 1, 4, 5, 6}, 4);
    /* Limits that nothing reaches: one bucket. */
    assert_layout(bytes, 6, (struct bucket_limits){1000, 1000}, (int[]){0, 6}, 1);
    /* No limit at all: one bucket for each parameter. */
    assert_layout(bytes, 6, (struct bucket_limits){0, 0}, (int[]){0, 1, 2, 3, 4, 5, 6}, 6);
}

static void each_kind_has_buckets_of_its_own(void **state)
{
    (void)state;
    const struct bucket_item items[] = {
        {10, BUCKET_FLOAT, 0}, {10, BUCKET_HALF, 0},  {10, BUCKET_FLOAT, 1}, {10, BUCKET_FLOAT, 0},
        {10, BUCKET_HALF, 0},  {10, BUCKET_FLOAT, 0}, {10, BUCKET_FLOAT, 0},
    };
    const int order[] = {0, 1, 2, 3, 4, 5, 6};
    struct bucket_layout layout;
    /* The first bucket of each kind takes 10, the others 20. Closed in turn: {0}, {1}, {2 on device
     * 1}, {3, 5}; what is left comes last, by kind: {6}, {4}. */
    const int in_turn[] = {0, 1, 2, 3, 5, 6, 4}, in_turn_first[] = {0, 1, 2, 3, 5, 6, 7};
    bucket_assign(&layout, order, items, 7, &(struct bucket_limits){10, 20});
    assert_int_equal(layout.bucket_count, 6);
    assert_memory_equal(layout.order, in_turn, sizeof in_turn);
    assert_memory_equal(layout.first, in_turn_first, sizeof in_turn_first);
    /* None is full before the end: one for each kind, in the order in which they were opened. */
    const int by_kind[] = {0, 3, 5, 6, 1, 4, 2}, by_kind_first[] = {0, 4, 6, 7};
    bucket_assign(&layout, order, items, 7, &(struct bucket_limits){50, 50});
    assert_int_equal(layout.bucket_count, 3);
    assert_memory_equal(layout.order, by_kind, sizeof by_kind);
    assert_memory_equal(layout.first, by_kind_first, sizeof by_kind_first);
}

static void only_permutations_are_orders(void **state)
{
    (void)state;
    assert_true(bucket_is_permutation((int[]){2, 0, 1}, 3));
    assert_false(bucket_is_permutation((int[]){2, 0, 2}, 3));
    assert_false(bucket_is_permutation((int[]){3, 0, 1}, 3));
    assert_false(bucket_is_permutation((int[]){-1, 0, 1}, 3));
}

/* Two parameters that are used in the opposite order of their registration. */
struct pair {
    struct module module;
    struct communicator communicator;
    struct reducer reducer;
    struct tensor *first, *second;
};

static void open_pair(struct pair *pair, struct device *device)
{
    ncclUniqueId id;
    struct reducer_settings settings = {.limits = {1, 1}, .average = REDUCER_AVERAGE_NCCL};
    assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
    communicator_connect(&pair->communicator, "test", device, 0, 1, &id, NULL);
    module_open(&pair->module, "pair", device, 1);
    pair->first = module_parameter(&pair->module, "a", "weight", shape_2d(2, 3), 0.0f, 1.0f);
    pair->second = module_parameter(&pair->module, "b", "weight", shape_2d(3, 3), 0.0f, 1.0f);
    reducer_open(&pair->reducer, &pair->module, &pair->communicator, &settings);
}

static void close_pair(struct pair *pair)
{
    reducer_close(&pair->reducer);
    module_close(&pair->module);
    communicator_close(&pair->communicator);
}

/* second is used first, so that its gradient comes last. */
static struct tensor *pair_loss(struct pair *pair, struct device *device)
{
    struct tensor *x = tensor_new_on_tape(device, shape_2d(1, 3));
    tensor_fill(x, 0.5f);
    return op_bce_with_logits(op_linear(op_linear(x, pair->second, NULL), pair->first, NULL), 0.0f);
}

static void buckets_are_rebuilt_in_the_order_of_arrival(void **state)
{
    struct device *device = *state;
    struct pair pair;
    struct error err = {0};
    open_pair(&pair, device);
    assert_int_equal(pair.reducer.layout.order[0], 1); /* reverse order of registration */

    assert_int_equal(reducer_arm(&pair.reducer, &err), 0);
    assert_int_equal(autograd_backward(pair_loss(&pair, device), &err), 0);
    assert_int_equal(reducer_finish(&pair.reducer, &err), 0);
    assert_int_equal(pair.reducer.arrived[0], 0);
    float before[6], after[6];
    tensor_download(pair.first->gradient, before);

    assert_int_equal(reducer_arm(&pair.reducer, &err), 0);
    assert_true(pair.reducer.rebuilt);
    assert_int_equal(pair.reducer.layout.order[0], 0);
    tensor_download(pair.first->gradient, after); /* values moved along */
    assert_memory_equal(before, after, sizeof before);
    assert_ptr_equal(pair.first->gradient->storage, pair.reducer.buckets[0].gradients->storage);
    device_end_batch(device);
    close_pair(&pair);
}

static void a_bucket_waits_for_those_before_it(void **state)
{
    struct device *device = *state;
    struct pair pair;
    struct error err = {0};
    open_pair(&pair, device);
    assert_int_equal(reducer_arm(&pair.reducer, &err), 0);
    pair.first->hook.call(pair.first->hook.owner, 0); /* bucket 1: full, but not the next one */
    assert_int_equal(pair.reducer.next, 0);
    assert_int_equal(reducer_finish(&pair.reducer, &err),
                     0); /* a second backward pass could bring the rest */
    assert_int_equal(reducer_arm(&pair.reducer, &err), -1);
    assert_non_null(
        strstr(err.text,
               "not finished: 0 of 2 buckets were reduced. No gradient came for pair.b.weight."));
    pair.second->hook.call(pair.second->hook.owner, 1);
    assert_int_equal(pair.reducer.next, 2);
    assert_int_equal(reducer_finish(&pair.reducer, &err), 0);
    close_pair(&pair);
}

static void nothing_is_reduced_while_accumulating(void **state)
{
    struct device *device = *state;
    struct pair pair;
    struct error err = {0};
    open_pair(&pair, device);
    reducer_disarm(&pair.reducer);
    assert_int_equal(autograd_backward(pair_loss(&pair, device), &err), 0);
    assert_int_equal(reducer_finish(&pair.reducer, &err), 0);
    assert_int_equal(pair.reducer.arrived_count, 0);
    device_end_batch(device);
    close_pair(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bucket_is_closed_when_it_reaches_its_limit),
        cmocka_unit_test(each_kind_has_buckets_of_its_own),
        cmocka_unit_test(only_permutations_are_orders),
        cmocka_unit_test_setup_teardown(buckets_are_rebuilt_in_the_order_of_arrival, open_device,
                                        close_device),
        cmocka_unit_test_setup_teardown(a_bucket_waits_for_those_before_it, open_device,
                                        close_device),
        cmocka_unit_test_setup_teardown(nothing_is_reduced_while_accumulating, open_device,
                                        close_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
