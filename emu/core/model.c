/* model.c: makes work last as long as modelled, and counts for how long it waited. */
#include "emu/core/model.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "emu/core/device.h"
#include "emu/core/model_rules.h"

static const uint64_t slice_ns = 5000000; /* how soon a wait sees that it is stopped */
static const uint64_t spin_ns = 50000;    /* for less, sleeping takes many times as long */

/* When a device or its host paused last, and what it did since then. */
struct pauses {
    struct model_rules rules;
    struct {
        _Atomic uint64_t operations, last_ns;
    } device[EMU_MAX_DEVICES];
    _Atomic uint64_t total_ns;
};

static struct {
    pthread_once_t once;
    bool is_on;
    uint64_t began_ns;
    struct model_rules speed, link, kernel;
    struct pauses device_pause, host_pause;
    struct {
        _Atomic uint64_t ended_ns, overslept_ns;
    } last[EMU_MAX_DEVICES]; /* kernel of a device */
    _Atomic uint64_t operations, kernels, slowed_ns, transfers, transfer_ns;
    const char *totals; /* the file that they are appended to; NULL: none */
} model = {.once = PTHREAD_ONCE_INIT};

static uint64_t model_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t emu_model_processor_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void start_model(void)
{
    model_rules_read(&model.speed, "DDPCHECK_EMU_DEVICE_SPEED", MODEL_FACTOR);
    model_rules_read(&model.link, "DDPCHECK_EMU_LINK_RATE", MODEL_RATE);
    model_rules_read(&model.kernel, "DDPCHECK_EMU_KERNEL_TIME", MODEL_SECONDS);
    model_rules_read(&model.device_pause.rules, "DDPCHECK_EMU_PAUSE", MODEL_PAUSE);
    model_rules_read(&model.host_pause.rules, "DDPCHECK_EMU_HOST_PAUSE", MODEL_PAUSE);
    model.is_on = model.speed.count || model.link.count || model.kernel.count ||
                  model.device_pause.rules.count || model.host_pause.rules.count;
    model.totals = getenv("DDPCHECK_EMU_MODELLED");
    model.began_ns = model_clock_ns();
}

bool emu_model_is_on(void)
{
    pthread_once(&model.once, start_model);
    return model.is_on;
}

uint64_t emu_model_now(void)
{
    return emu_model_is_on() ? model_clock_ns() : 0;
}

static struct model_time model_time(uint64_t now_ns)
{
    return (struct model_time){now_ns - model.began_ns, atomic_load(&model.operations)};
}

void emu_model_wait(uint64_t ns, bool (*stopped)(const void *context), const void *context)
{
    uint64_t until_ns = model_clock_ns() + ns;
    for (uint64_t now_ns; (now_ns = model_clock_ns()) < until_ns;) {
        uint64_t left_ns = until_ns - now_ns;
        struct timespec rest = {.tv_nsec = (long)(left_ns < slice_ns ? left_ns : slice_ns)};
        if (stopped && stopped(context))
            return;
        if (ns >= spin_ns)
            clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, NULL);
    }
}

static bool device_failed(const void *context)
{
    const struct emu_device *device = context;
    return atomic_load(&((struct emu_device *)device)->error);
}

static double speed_of(const struct emu_device *device, uint64_t now_ns)
{
    const struct model_rule *rule =
        model_rules_of_device(&model.speed, device->physical, model_time(now_ns));
    return rule ? rule->value : 1;
}

/* Of what took `spent_ns` of this machine's time, and takes at least `least_ns` at full speed. */
static uint64_t modelled_ns_of(const struct emu_device *device, uint64_t begin_ns,
                               uint64_t spent_ns, uint64_t least_ns)
{
    return (uint64_t)((double)(spent_ns > least_ns ? spent_ns : least_ns) /
                      speed_of(device, begin_ns));
}

/* Returns how long it has to wait for that. */
static uint64_t modelled_wait_ns(const struct emu_device *device, uint64_t begin_ns,
                                 uint64_t least_ns)
{
    uint64_t spent_ns = model_clock_ns() - begin_ns,
             modelled_ns = modelled_ns_of(device, begin_ns, spent_ns, least_ns);
    if (modelled_ns <= spent_ns)
        return 0; /* nothing can be faster than this machine */
    atomic_fetch_add(&model.slowed_ns, modelled_ns - spent_ns);
    return modelled_ns - spent_ns;
}

void emu_model_work(const struct emu_device *device, uint64_t begin_ns)
{
    if (begin_ns && model.speed.count)
        emu_model_wait(modelled_wait_ns(device, begin_ns, 0), device_failed, device);
}

/* One operation more. Returns whether a pause is due, and then counts from here on. */
static bool is_due(struct pauses *pauses, int device, const struct model_rule *rule,
                   uint64_t now_ns)
{
    if (!rule->is_time)
        return (atomic_fetch_add(&pauses->device[device].operations, 1) + 1) % rule->every == 0;
    uint64_t last_ns = atomic_load(&pauses->device[device].last_ns);
    return now_ns - (last_ns ? last_ns : model.began_ns) >= rule->every &&
           atomic_compare_exchange_strong(&pauses->device[device].last_ns, &last_ns, now_ns);
}

static void pause_if_due(struct pauses *pauses, const struct emu_device *device)
{
    uint64_t now_ns = model_clock_ns();
    const struct model_rule *rule =
        model_rules_of_device(&pauses->rules, device->physical, model_time(now_ns));
    if (!rule || !is_due(pauses, device->index, rule, now_ns))
        return;
    uint64_t pause_ns = (uint64_t)(rule->value * 1e9);
    atomic_fetch_add(&pauses->total_ns, pause_ns);
    emu_model_wait(pause_ns, device_failed, device);
}

uint64_t emu_model_kernel_begins(const struct emu_device *device)
{
    if (!emu_model_is_on())
        return 0;
    if (model.device_pause.rules.count)
        pause_if_due(&model.device_pause, device);
    return model_clock_ns();
}

/* A busy machine wakes the stream too late. The kernels behind it, if they were launched before it
 * should have ended, wait so much less: together they take the modelled time. */
static void wait_for_kernel(const struct emu_device *device, uint64_t launched_ns, uint64_t wait_ns)
{
    _Atomic uint64_t *ended_ns = &model.last[device->index].ended_ns,
                     *overslept_ns = &model.last[device->index].overslept_ns;
    uint64_t late_ns = atomic_load(overslept_ns), before_ns = model_clock_ns();
    if (!launched_ns || launched_ns + late_ns > atomic_load(ended_ns))
        late_ns = 0;
    uint64_t saved_ns = late_ns < wait_ns ? late_ns : wait_ns;
    if (wait_ns > saved_ns)
        emu_model_wait(wait_ns - saved_ns, device_failed, device);
    uint64_t now_ns = model_clock_ns(), due_ns = before_ns + wait_ns - saved_ns;
    atomic_store(overslept_ns, late_ns - saved_ns + (now_ns > due_ns ? now_ns - due_ns : 0));
    atomic_store(ended_ns, now_ns);
}

void emu_model_operation_begins(const struct emu_device *device)
{
    if (!emu_model_is_on())
        return;
    atomic_fetch_add(&model.operations, 1);
    if (model.device_pause.rules.count)
        pause_if_due(&model.device_pause, device);
}

/* Without the time for which other programs kept the thread from running. */
uint64_t emu_model_kernel_ends(const struct emu_device *device, uint64_t begin_ns,
                               uint64_t processor_ns, uint64_t launched_ns)
{
    uint64_t ran_ns = emu_model_processor_ns() - processor_ns;
    if (!begin_ns)
        return ran_ns;
    const struct model_rule *rule =
        model_rules_of_device(&model.kernel, device->physical, model_time(begin_ns));
    atomic_fetch_add(&model.kernels, 1);
    uint64_t least_ns = rule ? (uint64_t)(rule->value * 1e9) : 0;
    uint64_t kept_ns = modelled_ns_of(device, begin_ns, model_clock_ns() - begin_ns, least_ns) -
                       modelled_ns_of(device, begin_ns, ran_ns, least_ns);
    wait_for_kernel(device, launched_ns, modelled_wait_ns(device, begin_ns, least_ns));
    uint64_t passed_ns = model_clock_ns() - begin_ns;
    return passed_ns > ran_ns + kept_ns ? passed_ns - kept_ns : ran_ns;
}

void emu_model_host_call(const struct emu_device *device)
{
    if (emu_model_is_on() && model.host_pause.rules.count)
        pause_if_due(&model.host_pause, device);
}

/* Of the two devices' own rates the lower one counts, unless their link has one. */
static double rate_between(int from, int to, struct model_time now)
{
    const struct model_rule *pair = model_rules_of_pair(&model.link, from, to, now);
    if (pair)
        return pair->value;
    const struct model_rule *one = model_rules_of_device(&model.link, from, now);
    const struct model_rule *other = model_rules_of_device(&model.link, to, now);
    double rate = one ? one->value : 0;
    return other && (!one || other->value < rate) ? other->value : rate;
}

uint64_t emu_model_transfer_ns(int from, int to, uint64_t bytes)
{
    if (from == to || !emu_model_is_on() || !model.link.count)
        return 0;
    double rate = rate_between(from, to, model_time(model_clock_ns()));
    return rate > 0 ? (uint64_t)((double)bytes / rate * 1e9) : 0;
}

void emu_model_count_transfer(uint64_t ns)
{
    atomic_fetch_add(&model.transfers, 1);
    atomic_fetch_add(&model.transfer_ns, ns);
}

static double model_seconds(const _Atomic uint64_t *ns)
{
    return (double)atomic_load((_Atomic uint64_t *)ns) / 1e9;
}

/* A line about what was modelled in this process, to compare measurements with. */
__attribute__((destructor)) static void append_totals(void)
{
    char line[512];
    if (!model.is_on || !model.totals)
        return;
    const char *rank = getenv("RANK");
    int length =
        snprintf(line, sizeof line,
                 "{\"pid\": %d, \"rank\": \"%.20s\", \"kernels\": %llu, \"slower_s\": %.6f, "
                 "\"transfers\": %llu, "
                 "\"transfer_s\": %.6f, \"device_pause_s\": %.6f, \"host_pause_s\": %.6f}\n",
                 (int)getpid(), rank ? rank : "", (unsigned long long)atomic_load(&model.kernels),
                 model_seconds(&model.slowed_ns), (unsigned long long)atomic_load(&model.transfers),
                 model_seconds(&model.transfer_ns), model_seconds(&model.device_pause.total_ns),
                 model_seconds(&model.host_pause.total_ns));
    int file = open(model.totals, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0)
        return;
    if (write(file, line, (size_t)length) != length)
        fprintf(stderr, "ddpcheck emu: can't write %s\n", model.totals);
    close(file);
}
