#include "trainer/scaler.h"

#include "trainer/check.h"

static const float growth = 2.0f, backoff = 0.5f, largest_scale = 0x1p60f;

static void set_scale(struct scaler *scaler, float scale)
{
    scaler->scale = scale;
    scaler->device->loss_scale = scale;
}

static void clear_flag(struct scaler *scaler)
{
    CHECK_CUDA(cudaMemsetAsync(scaler->device->overflow, 0, sizeof *scaler->device->overflow, scaler->device->stream));
    scaler->overflowed = false;
}

void scaler_open(struct scaler *scaler, struct device *device, struct communicator *communicator,
                 enum precision precision, const struct scaler_settings *settings)
{
    *scaler = (struct scaler){.settings = *settings, .device = device, .communicator = communicator};
    device->precision = precision;
    CHECK_CUDA(cudaMalloc((void **)&device->overflow, sizeof *device->overflow));
    clear_flag(scaler);
    set_scale(scaler, settings->on ? settings->first_scale : 1.0f);
}

void scaler_close(struct scaler *scaler)
{
    CHECK_CUDA(cudaFree(scaler->device->overflow));
    scaler->device->overflow = NULL;
    scaler->device->precision = PRECISION_FP32;
}

/* This rank's flag alone. */
static bool read_own_flag(const struct scaler *scaler)
{
    struct device *device = scaler->device;
    int32_t flag;
    CHECK_CUDA(cudaMemcpyAsync(&flag, device->overflow, sizeof flag, cudaMemcpyDeviceToHost, device->stream));
    device_wait_for_compute(device);
    return flag != 0;
}

/* The flag stays set until the iteration is over: a model that fed on an infinity must not step either. */
static void look_for_overflow(struct scaler *scaler)
{
    if (scaler->settings.agrees)
        scaler->overflowed = communicator_agree_on_flag(scaler->communicator, scaler->device->overflow);
    else
        scaler->overflowed = read_own_flag(scaler);
}

bool scaler_unscale(struct scaler *scaler, struct reducer *reducer)
{
    if (!scaler->settings.on)
        return true;
    look_for_overflow(scaler);
    if (!scaler->overflowed)
        reducer_scale_gradients(reducer, 1.0f / scaler->scale);
    return !scaler->overflowed;
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
            notice("iteration %d: overflow in fp16, no step is made; the loss scale is %.0f now", iteration + 1,
                   (double)scaler->scale);
    } else if (++scaler->steps_without_overflow == scaler->settings.growth_interval) {
        if (scaler->scale < largest_scale)
            set_scale(scaler, scaler->scale * growth);
        scaler->steps_without_overflow = 0;
    }
    clear_flag(scaler);
}

void scaler_restore(struct scaler *scaler, float scale, int steps_without_overflow)
{
    if (!scaler->settings.on)
        return;
    set_scale(scaler, scale);
    scaler->steps_without_overflow = steps_without_overflow;
}
