/* scaler.c: scales the loss and skips steps whose gradients overflowed. */
#include "trainer/scaler.h"

#include "trainer/check.h"

static const float growth = 2.0f, backoff = 0.5f, largest_scale = 0x1p60f;

static void set_scale(struct scaler *scaler, float scale)
{
    scaler->scale = scale;
    for (int i = 0; i < scaler->device_count; i++)
        scaler->devices[i]->loss_scale = scale;
}

static void clear_flags(struct scaler *scaler)
{
    for (int i = scaler->device_count - 1; i >= 0;
         i--) { /* the first is current again in the end */
        struct device *device = scaler->devices[i];
        CHECK_CUDA(cudaSetDevice(device->index));
        CHECK_CUDA(cudaMemsetAsync(device->overflow, 0, sizeof *device->overflow, device->stream));
    }
    scaler->overflowed = false;
}

void scaler_add_device(struct scaler *scaler, struct device *device)
{
    if (scaler->device_count == SCALER_MAX_DEVICES)
        fatal("one process with more than %d devices", SCALER_MAX_DEVICES);
    scaler->devices[scaler->device_count++] = device;
    device->precision = scaler->precision;
    device->loss_scale = scaler->scale;
    CHECK_CUDA(cudaSetDevice(device->index));
    CHECK_CUDA(cudaMalloc((void **)&device->overflow, sizeof *device->overflow));
    clear_flags(scaler);
}

void scaler_drop_device(struct scaler *scaler, struct device *device)
{
    for (int i = 0; i < scaler->device_count; i++) {
        if (scaler->devices[i] != device)
            continue;
        scaler->devices[i] = scaler->devices[--scaler->device_count];
        CHECK_CUDA(cudaFree(device->overflow));
        device->overflow = NULL;
        device->precision = PRECISION_FP32;
        return;
    }
}

void scaler_open(struct scaler *scaler, struct device *device, struct communicator *communicator,
                 enum precision precision, const struct scaler_settings *settings)
{
    *scaler = (struct scaler){
        .settings = *settings, .precision = precision, .communicator = communicator};
    scaler->scale = settings->on ? settings->first_scale : 1.0f;
    scaler_add_device(scaler, device);
}

void scaler_close(struct scaler *scaler)
{
    while (scaler->device_count > 0)
        scaler_drop_device(scaler, scaler->devices[scaler->device_count - 1]);
}

/* Waits for the device. */
static bool flag_is_set(const struct device *device)
{
    int32_t flag;
    CHECK_CUDA(cudaMemcpyAsync(&flag, device->overflow, sizeof flag, cudaMemcpyDeviceToHost,
                               device->stream));
    CHECK_CUDA(cudaStreamSynchronize(device->stream));
    return flag != 0;
}

bool scaler_is_finite_here(struct scaler *scaler)
{
    for (int i = 0; scaler->settings.on && i < scaler->device_count; i++)
        if (flag_is_set(scaler->devices[i]))
            return false;
    return true;
}

/* The flag stays set until the iteration is over: a model that fed on an infinity must not step
 * either. Of several devices in one process (which is the only one) the host sees all. */
static void look_for_overflow(struct scaler *scaler)
{
    if (scaler->settings.agrees && scaler->device_count == 1)
        scaler->overflowed =
            communicator_agree_on_flag(scaler->communicator, scaler->devices[0]->overflow);
    else
        scaler->overflowed = !scaler_is_finite_here(scaler);
}

bool scaler_agrees_to_step(struct scaler *scaler)
{
    if (scaler->settings.on)
        look_for_overflow(scaler);
    return !scaler->overflowed;
}

void scaler_divide(const struct scaler *scaler, struct gradients *gradients)
{
    if (scaler->settings.on)
        gradients_scale(gradients, 1.0f / scaler->scale);
}

bool scaler_unscale(struct scaler *scaler, struct reducer *reducer)
{
    bool step = scaler_agrees_to_step(scaler);
    if (step && scaler->settings.on)
        reducer_scale_gradients(reducer, 1.0f / scaler->scale);
    return step;
}

void scaler_shadow(struct scaler *scaler)
{
    if (scaler->settings.on)
        look_for_overflow(scaler);
}

void scaler_update(struct scaler *scaler, int iteration)
{
    if (!scaler->settings.on)
        return;
    if (scaler->overflowed) {
        set_scale(scaler, scaler->scale * backoff);
        scaler->steps_without_overflow = 0;
        if (scaler->communicator->rank == 0 || !scaler->settings.agrees)
            notice("iteration %d: overflow in fp16, no step is made; the loss scale is %.0f now",
                   iteration + 1, (double)scaler->scale);
    } else if (++scaler->steps_without_overflow == scaler->settings.growth_interval) {
        if (scaler->scale < largest_scale)
            set_scale(scaler, scaler->scale * growth);
        scaler->steps_without_overflow = 0;
    }
    clear_flags(scaler);
}

void scaler_restore(struct scaler *scaler, float scale, int steps_without_overflow)
{
    if (!scaler->settings.on)
        return;
    set_scale(scaler, scale);
    scaler->steps_without_overflow = steps_without_overflow;
}
