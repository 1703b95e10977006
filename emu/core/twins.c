/* twins.c: loads the libraries that hold the C twins of kernels, and has the twins of CUB's kernels
 * that count. */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "emu/core.h"
#include "emu/core/kernel.h"
#include "emu/core/process.h"

static struct {
    pthread_once_t once;
    const struct twin *all; /* NULL: no library */
    atomic_uint running;
    atomic_bool leaving; /* the process is in exit() */
} twins = {.once = PTHREAD_ONCE_INIT};

/* The destructors of the twins' libraries (OpenBLAS frees its buffers) follow: no twin may run
 * then. Every twin ends by itself, so that this waits for none that hangs; the bound is for a
 * machine that is too busy. */
static void leave_without_twins(void)
{
    atomic_store(&twins.leaving, true);
    for (int milliseconds = 0; atomic_load(&twins.running) && milliseconds < 5000; milliseconds++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

void emu_twin_run(const struct twin *twin, const struct twin_grid *grid, void *const *args)
{
    struct twin_grid cut = *grid;

    cut.twin = twin;
    atomic_fetch_add(&twins.running, 1);
    if (!atomic_load(&twins.leaving))
        twin->run(&cut, args);
    atomic_fetch_sub(&twins.running, 1);
}

static void load_twins(void)
{
    char beside[PATH_MAX];
    const char *path = getenv("DDPCHECK_EMU_TWINS");
    void *library;

    if (!path || !*path)
        path = emu_process_sibling("libddpcheck_twins.so", beside, sizeof(beside));
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr,
                "ddpcheck emu: no C twins of kernels: %s; kernels will do nothing "
                "(DDPCHECK_EMU_TWINS names another library)\n",
                dlerror());
        return;
    }
    atexit(leave_without_twins);
    twins.all = dlsym(library, "kernels_twins");
    if (!twins.all)
        fprintf(stderr, "ddpcheck emu: %s has no table kernels_twins; kernels will do nothing\n",
                path);
}

/* The last parameter is where the count goes, unless the caller passed an iterator object there. */
static void zero_count(void *const *args, int last)
{
    struct emu_memory memory;
    void *count;

    memcpy(&count, args[last], sizeof(count));
    if (emu_memory_find(count, &memory) &&
        (uintptr_t)count - memory.base + sizeof(uint64_t) <= memory.bytes)
        memset(count, 0, sizeof(uint64_t));
}

static void zero_second(const struct twin_grid *grid, void *const *args)
{
    (void)grid;
    zero_count(args, 1);
}

static void zero_third(const struct twin_grid *grid, void *const *args)
{
    (void)grid;
    zero_count(args, 2);
}

/* Their parameters up to the count, as in CUB's dispatch_reduce.cuh and agent_select_if.cuh: what
 * is read, and the count; the state of tiles, their number, and the count. */
static const struct twin counts[] = {
    {"DeviceReduceSingleTileKernel", "[1]l", zero_second},
    {"DeviceCompactInitKernel", "[1]il", zero_third},
};

static const struct twin *find_count_twin(const char *name)
{
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        if (!strcmp(counts[i].name, name))
            return &counts[i];
    return NULL;
}

const struct twin *emu_twin_find(const char *name)
{
    pthread_once(&twins.once, load_twins);
    for (const struct twin *twin = twins.all; twin && twin->name; twin++)
        if (!strcmp(twin->name, name))
            return twin;
    return find_count_twin(name);
}
