/* architecture.c: decides which compute capability the emulated devices have. */
#include "emu/core/architecture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "emu/core/image.h"

/* All architectures are below ARCHITECTURES; the usual one runs everything that has PTX up to it.
 */
enum { USUAL = 90, ARCHITECTURES = 1000 };

struct registered_image {
    struct registered_image *next;
    const void *image;
};

static struct {
    pthread_mutex_t lock; /* guards `images` */
    struct registered_image *images;
    atomic_uint decided;
} architecture = {.lock = PTHREAD_MUTEX_INITIALIZER};

void emu_architecture_add(const void *image)
{
    struct registered_image *one = image ? malloc(sizeof(*one)) : NULL;

    if (!one)
        return; /* without memory it has no part in the decision */
    pthread_mutex_lock(&architecture.lock);
    *one = (struct registered_image){architecture.images, image};
    architecture.images = one;
    pthread_mutex_unlock(&architecture.lock);
}

void emu_architecture_remove(const void *image)
{
    struct registered_image **link = &architecture.images, *found;

    pthread_mutex_lock(&architecture.lock);
    while (*link && (*link)->image != image)
        link = &(*link)->next;
    found = *link;
    if (found)
        *link = found->next;
    pthread_mutex_unlock(&architecture.lock);
    free(found);
}

static void mark_brought(void *arg, unsigned brought)
{
    if (brought < ARCHITECTURES)
        ((bool *)arg)[brought] = true;
}

static unsigned count_fitting(unsigned candidate)
{
    unsigned count = 0;

    for (const struct registered_image *one = architecture.images; one; one = one->next)
        count += !emu_image_misfit(one->image, candidate);
    return count;
}

/* The one that runs most of what is registered: the usual one if no other runs more, else the
 * newest. */
static unsigned find_best(void)
{
    bool brought[ARCHITECTURES] = {false};
    unsigned best = USUAL, most = count_fitting(USUAL);

    for (const struct registered_image *one = architecture.images; one; one = one->next)
        emu_image_architectures(one->image, mark_brought, brought);
    for (unsigned candidate = ARCHITECTURES; candidate-- > 0;) {
        unsigned count = brought[candidate] ? count_fitting(candidate) : 0;

        if (count > most) {
            best = candidate;
            most = count;
        }
    }
    return best;
}

/* "8.0" as 80; 0 if it is not set. */
static unsigned read_setting(void)
{
    const char *text = getenv("DDPCHECK_EMU_ARCHITECTURE");
    unsigned major, minor;
    char rest;

    if (!text || !*text)
        return 0;
    if (sscanf(text, "%2u.%1u%c", &major, &minor, &rest) == 2 && major)
        return major * 10 + minor;
    fprintf(stderr,
            "ddpcheck emu: DDPCHECK_EMU_ARCHITECTURE=%s is no compute capability like 8.0\n", text);
    return 0;
}

unsigned emu_architecture(void)
{
    unsigned known = atomic_load_explicit(&architecture.decided, memory_order_acquire);

    if (known)
        return known;
    pthread_mutex_lock(&architecture.lock);
    known = atomic_load(&architecture.decided);
    if (!known) {
        known = read_setting();
        known = known ? known : find_best();
        atomic_store(&architecture.decided, known);
    }
    pthread_mutex_unlock(&architecture.lock);
    return known;
}
