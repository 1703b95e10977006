/* A model cut in two computes what the whole does: the same weights, loss and gradients (--mode
 * pipeline). */
#include "tests/trainer/fixture.h"

#include "trainer/autograd.h"
#include "trainer/module.h"
#include "trainer/models/cnn.h"
#include "trainer/operations.h"

enum { N = 3, IMAGE = 8, FLOATS = 4096 };

static const struct cnn_shape whole_shape = {
    .image = IMAGE, .channels = 1, .width = 4, .classes = 4, .block = true};

struct part {
    struct cnn cnn;
    struct gradients gradients;
};

static void open_part(struct part *part, struct device *device, enum cnn_part which)
{
    struct cnn_shape shape = whole_shape;
    shape.part = which;
    cnn_open(&part->cnn, device, &shape, 7);
    gradients_open(&part->gradients, &part->cnn.module);
}

static void close_part(struct part *part)
{
    gradients_close(&part->gradients);
    module_close(&part->cnn.module);
}

static struct tensor *loss_of(struct cnn *cnn, struct tensor *x)
{
    return op_bce_with_logits(cnn_classify(cnn, x, true), 0.3f);
}

/* The parameters of `part` are the whole's from number `first` on, with the same values and
 * gradients. */
static void must_be_equal(const struct part *part, const struct part *whole, int first)
{
    float one[FLOATS], other[FLOATS];
    for (int i = 0; i < part->cnn.module.parameter_count; i++) {
        struct tensor *a = part->cnn.module.parameters[i],
                      *b = whole->cnn.module.parameters[first + i];
        assert_string_equal(a->name, b->name);
        assert_true(tensor_count(a) == tensor_count(b) && tensor_count(a) <= FLOATS);
        tensor_download(a, one);
        tensor_download(b, other);
        assert_memory_equal(one, other, tensor_count(a) * sizeof *one);
        tensor_download(a->gradient, one);
        tensor_download(b->gradient, other);
        for (size_t k = 0; k < tensor_count(a); k++)
            assert_float_equal(one[k], other[k], 1e-6f);
    }
}

static void halves_compute_what_the_whole_does(void **state)
{
    struct device *device = *state;
    struct part whole, front, back;
    struct error err = {0};
    float expected, loss;
    struct tensor *images = new_leaf(device, shape_4d(N, 1, IMAGE, IMAGE), 1);
    open_part(&whole, device, CNN_WHOLE);
    open_part(&front, device, CNN_FRONT);
    open_part(&back, device, CNN_BACK);

    struct tensor *of_whole = loss_of(&whole.cnn, images);
    assert_int_equal(autograd_backward(of_whole, &err), 0);
    tensor_download(of_whole, &expected);

    struct tensor *activations = cnn_classify(&front.cnn, images, true);
    struct tensor_shape cut = cnn_cut(&whole_shape, N);
    assert_memory_equal(activations->shape.size, cut.size, sizeof cut.size);
    struct tensor *x = new_leaf(device, cut, 1); /* as if it had come from another rank */
    float values[FLOATS];
    assert_true(tensor_count(x) <= FLOATS);
    tensor_download(activations, values);
    tensor_upload(x, values);
    struct tensor *of_halves = loss_of(&back.cnn, x);
    assert_int_equal(autograd_backward(of_halves, &err), 0);
    assert_int_equal(autograd_backward_from(activations, x->gradient, &err), 0);
    tensor_download(of_halves, &loss);

    assert_float_equal(loss, expected, 1e-6f);
    assert_int_equal(front.cnn.module.parameter_count + back.cnn.module.parameter_count,
                     whole.cnn.module.parameter_count);
    must_be_equal(&front, &whole, 0);
    must_be_equal(&back, &whole, front.cnn.module.parameter_count);
    free_leaf(x);
    free_leaf(images);
    device_end_batch(device);
    close_part(&back);
    close_part(&front);
    close_part(&whole);
}

static void gradients_are_side_by_side(void **state)
{
    struct part whole;
    float values[FLOATS];
    open_part(&whole, *state, CNN_WHOLE);
    const struct module *module = &whole.cnn.module;
    size_t floats = 0;
    for (int i = 0; i < module->parameter_count; i++)
        floats += tensor_count(module->parameters[i]);
    assert_int_equal(tensor_count(whole.gradients.all), floats);
    tensor_fill(whole.gradients.all, 3.0f);
    gradients_scale(&whole.gradients, 0.5f);
    for (int i = 0; i < module->parameter_count; i++) {
        struct tensor *gradient = module->parameters[i]->gradient;
        tensor_download(gradient, values);
        for (size_t k = 0; k < tensor_count(gradient); k++)
            assert_float_equal(values[k], 1.5f, 0.0f);
        tensor_fill(gradient, 0.0f); /* a neighbour that it reached into would show */
    }
    close_part(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(halves_compute_what_the_whole_does, open_device,
                                        close_device),
        cmocka_unit_test_setup_teardown(gradients_are_side_by_side, open_device, close_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
