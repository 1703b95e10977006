/* The reducer and gradients that do not come, come twice, or come only on other ranks. One rank is
 * enough: the marks are reduced over a communicator of one, and what another rank would add is put
 * into the answer by hand. */
#include "tests/trainer/fixture.h"

#include <string.h>

#include "trainer/autograd.h"
#include "trainer/operations.h"
#include "trainer/optimizer.h"
#include "trainer/reducer.h"

/* Two layers; a pass uses both or only the first. */
struct model {
    struct device *device;
    struct module module;
    struct communicator communicator;
    struct reducer reducer;
    struct tensor *first, *second;
};

enum { FIRST, SECOND };

static void open_model(struct model *model, struct device *device,
                       const struct reducer_settings *more)
{
    ncclUniqueId id;
    struct reducer_settings settings = *more;
    settings.limits = (struct bucket_limits){1, 1};
    *model = (struct model){.device = device};
    assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
    communicator_connect(&model->communicator, "test", device, 0, 1, &id, NULL);
    module_open(&model->module, "model", device, 1);
    model->first = module_parameter(&model->module, "first", "weight", shape_2d(3, 3), 0.0f, 1.0f);
    model->second =
        module_parameter(&model->module, "second", "weight", shape_2d(3, 3), 0.0f, 1.0f);
    reducer_open(&model->reducer, &model->module, &model->communicator, &settings);
}

static void close_model(struct model *model)
{
    device_end_batch(model->device);
    reducer_close(&model->reducer);
    module_close(&model->module);
    communicator_close(&model->communicator);
}

static struct tensor *forward(struct model *model, bool whole)
{
    struct tensor *x = tensor_new_on_tape(model->device, shape_2d(1, 3));
    tensor_fill(x, 0.5f);
    x = op_linear(x, model->first, NULL);
    return whole ? op_linear(x, model->second, NULL) : x;
}

/* An armed forward pass; the reducer is reported what came out. */
static struct tensor *forward_to_reduce(struct model *model, bool whole)
{
    struct error err = {0};
    assert_int_equal(reducer_arm(&model->reducer, &err), 0);
    struct tensor *output = forward(model, whole);
    reducer_expect(&model->reducer, &output, 1);
    return output;
}

static void backward(struct tensor *output)
{
    struct error err = {0};
    assert_int_equal(autograd_backward(op_bce_with_logits(output, 0.0f), &err), 0);
}

static int finish(struct model *model, struct error *err)
{
    *err = (struct error){0};
    return reducer_finish(&model->reducer, err);
}

static float first_value(const struct tensor *tensor)
{
    float values[9];
    tensor_download(tensor, values);
    return values[0];
}

static void a_forgotten_parameter_is_named_by_the_next_iteration(void **state)
{
    struct model model;
    struct error err;
    open_model(&model, *state, &(struct reducer_settings){.find_unused = false});
    backward(forward_to_reduce(&model, false));
    assert_int_equal(finish(&model, &err), 0);
    assert_int_equal(reducer_arm(&model.reducer, &err), -1);
    assert_non_null(strstr(
        err.text,
        "the model starts a new iteration, but the reduction of the one before is not finished"));
    assert_non_null(strstr(err.text, "No gradient came for model.second.weight."));
    close_model(&model);
}

static void an_unused_parameter_is_ready_when_backward_begins(void **state)
{
    struct model model;
    struct error err;
    open_model(&model, *state, &(struct reducer_settings){.find_unused = true});
    struct tensor *output = forward_to_reduce(&model, false);
    assert_false(model.reducer.unused[FIRST]);
    assert_true(model.reducer.unused[SECOND]);
    assert_int_equal(model.reducer.next, 0);
    backward(output);
    assert_int_equal(model.reducer.next, 2);
    assert_int_equal(model.reducer.arrived[0], SECOND);
    assert_int_equal(finish(&model, &err), 0);
    assert_int_equal(reducer_arm(&model.reducer, &err), 0);
    assert_false(
        model.reducer
            .rebuilt); /* the order of arrival says nothing when parameters may be left out */
    close_model(&model);
}

static void a_parameter_that_no_rank_used_is_not_stepped(void **state)
{
    struct model model;
    struct optimizer optimizer;
    struct error err;
    open_model(&model, *state, &(struct reducer_settings){.find_unused = true});
    optimizer_open(
        &optimizer, &model.module,
        &(struct adam_settings){.rate = 0.1f, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f});
    backward(forward_to_reduce(&model, true));
    assert_int_equal(finish(&model, &err), 0);
    optimizer_step(&optimizer); /* now Adam's mean of the second layer is not zero */

    float first = first_value(model.first), second = first_value(model.second);
    reducer_zero_gradients(&model.reducer);
    backward(forward_to_reduce(&model, false));
    assert_int_equal(finish(&model, &err), 0);
    assert_false(model.first->no_gradient);
    assert_true(model.second->no_gradient);
    optimizer_step(&optimizer);
    assert_true(first_value(model.first) != first);
    assert_true(first_value(model.second) == second);
    optimizer_close(&optimizer);
    close_model(&model);
}

static void marks_count_passes_that_only_accumulate(void **state)
{
    struct model model;
    struct error err;
    open_model(&model, *state, &(struct reducer_settings){.find_unused = true});
    reducer_disarm(&model.reducer);
    backward(forward(&model, true));
    backward(forward_to_reduce(&model, false));
    assert_int_equal(finish(&model, &err), 0);
    assert_false(model.second->no_gradient); /* the pass before has used it */

    reducer_disarm(&model.reducer);
    backward(forward(&model, true));
    reducer_zero_gradients(&model.reducer); /* and with its gradient that is forgotten */
    backward(forward_to_reduce(&model, false));
    assert_int_equal(finish(&model, &err), 0);
    assert_true(model.second->no_gradient);
    close_model(&model);
}

static void another_ranks_use_counts(void **state)
{
    struct model model;
    struct used_map *used = &model.reducer.used;
    open_model(&model, *state, &(struct reducer_settings){.find_unused = true});
    used_map_mark(used, FIRST);
    used_map_reduce(used, &model.communicator);
    used_map_wait(used);
    assert_true(used->left_out);
    assert_true(used_map_anywhere(used, FIRST));
    assert_false(used_map_anywhere(used, SECOND));
    used->ranks[SECOND] = 3;
    assert_true(used_map_anywhere(used, SECOND));
    used_map_mark(used, FIRST);
    used_map_mark(used, SECOND);
    used_map_reduce(used, &model.communicator);
    assert_false(used->left_out);
    close_model(&model);
}

static void a_shadowing_rank_uses_nothing(void **state)
{
    struct model model;
    struct error err = {0};
    open_model(&model, *state, &(struct reducer_settings){.find_unused = true});
    assert_int_equal(reducer_shadow(&model.reducer, &err), 0);
    assert_true(model.first->no_gradient);
    assert_true(model.second->no_gradient);
    close_model(&model);
}

static void a_gradient_that_comes_twice_is_an_error(void **state)
{
    struct model model;
    struct error err;
    open_model(&model, *state, &(struct reducer_settings){.find_unused = false});
    struct tensor *one = forward_to_reduce(&model, true), *other = forward_to_reduce(&model, true);
    backward(one);
    backward(other);
    assert_int_equal(finish(&model, &err), -1);
    assert_non_null(strstr(err.text, "the gradient of model.second.weight is complete a second "
                                     "time in one iteration, but it was "
                                     "given to the reduction after the first."));
    close_model(&model);
}

static void one_backward_of_two_forward_passes_is_fine(void **state)
{
    struct model model;
    struct error err;
    open_model(&model, *state, &(struct reducer_settings){.find_unused = false});
    struct tensor *one = forward_to_reduce(&model, true), *other = forward_to_reduce(&model, true);
    assert_int_equal(
        autograd_backward(op_add(op_bce_with_logits(one, 0.0f), op_bce_with_logits(other, 1.0f)),
                          &err),
        0);
    assert_int_equal(model.reducer.next, 2);
    assert_int_equal(finish(&model, &err), 0);
    assert_int_equal(reducer_arm(&model.reducer, &err), 0);
    close_model(&model);
}

static void what_only_the_first_of_two_forward_passes_uses_comes_too_late(void **state)
{
    struct model model;
    struct error err;
    open_model(&model, *state, &(struct reducer_settings){.find_unused = true});
    struct tensor *one = forward_to_reduce(&model, true), *other = forward_to_reduce(&model, false);
    assert_int_equal(
        autograd_backward(op_add(op_bce_with_logits(one, 0.0f), op_bce_with_logits(other, 1.0f)),
                          &err),
        0);
    assert_int_equal(finish(&model, &err), -1);
    assert_non_null(strstr(err.text, "model.second.weight"));
    assert_non_null(
        strstr(err.text, "as unused: the last forward pass did not use it, one before it did"));
    close_model(&model);
}

static void a_wrapper_of_two_forward_passes_names_both_outputs(void **state)
{
    struct model model;
    struct error err;
    open_model(&model, *state, &(struct reducer_settings){.find_unused = true});
    assert_int_equal(reducer_arm(&model.reducer, &err), 0);
    struct tensor *outputs[] = {forward(&model, true), forward(&model, false)};
    reducer_expect(&model.reducer, outputs, 2);
    assert_false(model.reducer.unused[SECOND]);
    assert_int_equal(autograd_backward(op_add(op_bce_with_logits(outputs[0], 0.0f),
                                              op_bce_with_logits(outputs[1], 1.0f)),
                                       &err),
                     0);
    assert_int_equal(finish(&model, &err), 0);
    close_model(&model);
}

static void a_static_graph_is_recorded_once(void **state)
{
    struct model model;
    struct error err;
    open_model(&model, *state,
               &(struct reducer_settings){.find_unused = true, .static_graph = true});
    backward(forward_to_reduce(&model, false));
    assert_int_equal(model.reducer.next, 0); /* the first iteration reduces after backward */
    assert_int_equal(finish(&model, &err), 0);
    assert_int_equal(model.reducer.next, 2);

    struct tensor *output = forward_to_reduce(&model, false);
    assert_true(model.reducer.unused[SECOND]);
    backward(output);
    assert_int_equal(model.reducer.next,
                     2); /* later ones during backward, and know what does not come */
    assert_int_equal(finish(&model, &err), 0);

    backward(forward_to_reduce(&model, true)); /* not static after all */
    assert_int_equal(finish(&model, &err), -1);
    assert_non_null(strstr(err.text, "model.second.weight"));
    close_model(&model);
}

static void a_static_graph_may_use_a_parameter_in_two_backward_passes(void **state)
{
    struct model model;
    struct error err;
    open_model(&model, *state, &(struct reducer_settings){.static_graph = true});
    for (int iteration = 0; iteration < 3; iteration++) {
        struct tensor *output = forward_to_reduce(&model, true), *more = forward(&model, true);
        backward(output);
        if (iteration > 0)
            assert_int_equal(model.reducer.next, 0);
        backward(more);
        assert_int_equal(finish(&model, &err), 0);
        assert_int_equal(model.reducer.next, 2);
    }
    close_model(&model);
}

static void a_static_graph_is_not_recorded_by_a_rank_without_data(void **state)
{
    struct model model;
    struct error err = {0};
    open_model(&model, *state, &(struct reducer_settings){.static_graph = true});
    assert_int_equal(reducer_shadow(&model.reducer, &err), -1);
    assert_non_null(strstr(err.text, "the first iteration has to record it"));
    close_model(&model);
}

#define WITH_DEVICE(test) cmocka_unit_test_setup_teardown(test, open_device, close_device)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DEVICE(a_forgotten_parameter_is_named_by_the_next_iteration),
        WITH_DEVICE(an_unused_parameter_is_ready_when_backward_begins),
        WITH_DEVICE(a_parameter_that_no_rank_used_is_not_stepped),
        WITH_DEVICE(marks_count_passes_that_only_accumulate),
        WITH_DEVICE(another_ranks_use_counts),
        WITH_DEVICE(a_shadowing_rank_uses_nothing),
        WITH_DEVICE(a_gradient_that_comes_twice_is_an_error),
        WITH_DEVICE(one_backward_of_two_forward_passes_is_fine),
        WITH_DEVICE(what_only_the_first_of_two_forward_passes_uses_comes_too_late),
        WITH_DEVICE(a_wrapper_of_two_forward_passes_names_both_outputs),
        WITH_DEVICE(a_static_graph_is_recorded_once),
        WITH_DEVICE(a_static_graph_may_use_a_parameter_in_two_backward_passes),
        WITH_DEVICE(a_static_graph_is_not_recorded_by_a_rank_without_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
