/* gathered.c: keeps work until all that ended before it has come. */
#include "interpose/timing/gathered.h"

#include <stdatomic.h>
#include <string.h>

enum { LAUNCH_KERNELS = 64 }; /* how far back the kernel before of a launch may be */

void gathered_name(struct gathered_records *gathered, uint32_t correlation, uint64_t external)
{
    size_t at = correlation % GATHERED_CAUSES;
    atomic_store_explicit(&gathered->cause[at].correlation, 0, memory_order_release);
    atomic_store_explicit(&gathered->cause[at].external, external, memory_order_release);
    atomic_store_explicit(&gathered->cause[at].correlation, correlation, memory_order_release);
}

/* The sum of its name, or of all others on its device; NULL if not even that has room. */
static struct name_sum *sum_of_name(struct gathered_records *gathered, const char *name,
                                    int16_t device)
{
    enum { PROBES = 64 };
    static const char others[] = "other kernels";
    for (int i = 0; i < 2; i++, name = others) {
        size_t bytes = strnlen(name, NAME_BYTES - 1);
        uint64_t id = string_id(name, bytes);
        for (size_t probe = 0; probe < PROBES; probe++) {
            struct name_sum *sum =
                &gathered->name[(id + (uint64_t)device + probe) % GATHERED_NAMES];
            if (sum->id == id && sum->device == device)
                return sum;
            if (sum->id)
                continue;
            *sum = (struct name_sum){.id = id, .device = device};
            memcpy(sum->text, name, bytes);
            return sum;
        }
    }
    return NULL;
}

static void add_to_sum(struct gathered_records *gathered, const struct timed_work *work)
{
    struct name_sum *sum = sum_of_name(gathered, work->name, work->device);
    if (!sum)
        return;
    sum->count++;
    sum->total_ns += work->end_ns - work->begin_ns;
    sum->amount += work->amount;
}

/* A kernel's name is read now: its module may be gone later. */
void gathered_add(struct gathered_records *gathered, const void *record, size_t bytes)
{
    struct timed_work work;
    enum timed_record is = timing_decode(record, bytes, &work);
    gathered->too_short += is == RECORD_TOO_SHORT;
    if (is != RECORD_OF_WORK)
        return;
    if (work.what == TIMED_KERNEL && !timing_is_nccl(work.name)) {
        add_to_sum(gathered, &work);
        work.what = TIMED_COMPUTE;
    }
    if (gathered->count < GATHERED_WORK)
        gathered->work[gathered->count++] = work;
    else
        gathered->dropped++;
}

static bool is_named(struct gathered_records *gathered, uint32_t correlation)
{
    return correlation &&
           atomic_load_explicit(&gathered->cause[correlation % GATHERED_CAUSES].correlation,
                                memory_order_acquire) == correlation;
}

/* What the call was made for; 0 if nobody said, or a later call has just taken its place. */
static uint64_t cause_of(struct gathered_records *gathered, uint32_t correlation)
{
    if (!is_named(gathered, correlation))
        return 0;
    uint64_t external = atomic_load_explicit(
        &gathered->cause[correlation % GATHERED_CAUSES].external, memory_order_acquire);
    return is_named(gathered, correlation) ? external : 0;
}

/* Whether an earlier kernel of the same launch takes it in. */
static bool is_taken_in(struct placed_work *placed, size_t count, const struct placed_work *work)
{
    size_t first = count > LAUNCH_KERNELS ? count - LAUNCH_KERNELS : 0;
    for (size_t i = count; i-- > first;) {
        if (placed[i].launch != work->launch || placed[i].slot != work->slot)
            continue;
        if (placed[i].begin_ns > work->begin_ns)
            placed[i].begin_ns = work->begin_ns;
        if (placed[i].end_ns < work->end_ns)
            placed[i].end_ns = work->end_ns;
        return true;
    }
    return false;
}

/* Fills in what the trace gets of it. Returns false for work of NCCL's whose operation is not
 * known: it is no compute, and the operation has other times. */
static bool place_work(struct gathered_records *gathered, const struct timed_work *work,
                       gathered_launch_function *find, struct placed_work *placed)
{
    *placed = (struct placed_work){
        .begin_ns = work->begin_ns, .end_ns = work->end_ns, .device = work->device};
    if (work->what == TIMED_COMPUTE)
        return true;
    if (work->what == TIMED_KERNEL) {
        uint64_t external = cause_of(gathered, work->correlation);
        return external && find(external, work->device, placed);
    }
    /* Of NCCL's as well: its set-up copies within the first operation. Those of its collectives by
     * copy engines can't be distinguished from those: such an operation keeps its words' times. */
    add_to_sum(gathered, work);
    return true;
}

size_t gathered_take(struct gathered_records *gathered, uint64_t until_ns,
                     gathered_launch_function *find, struct placed_work *placed)
{
    size_t taken = 0, kept = 0;
    for (size_t i = 0; i < gathered->count; i++) {
        const struct timed_work *work = &gathered->work[i];
        if (work->end_ns > until_ns) {
            gathered->work[kept++] = *work;
            continue;
        }
        bool is_placed = place_work(gathered, work, find, &placed[taken]);
        bool is_launch = is_placed && placed[taken].launch;
        taken += is_placed && !(is_launch && is_taken_in(placed, taken, &placed[taken]));
    }
    gathered->count = kept;
    return taken;
}
