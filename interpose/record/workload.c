/* workload.c: counts the kernels that are launched on each device. */
#include "interpose/record/workload.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "interpose/shim/forget.h"

enum { DEVICES = 64, CACHE_LINE = 64 };

/* A line each: threads that drive different devices don't slow each other down. */
static struct {
    struct {
        _Alignas(CACHE_LINE) _Atomic uint64_t kernels;
        _Atomic uint64_t threads;
        atomic_bool has_graphs;
    } device[DEVICES];
} workload;

static bool has_counters(int32_t device)
{
    return device >= 0 && device < DEVICES;
}

void workload_add(int32_t device, uint64_t threads)
{
    if (!has_counters(device))
        return;
    atomic_fetch_add_explicit(&workload.device[device].kernels, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&workload.device[device].threads, threads, memory_order_relaxed);
}

void workload_graph(int32_t device)
{
    if (has_counters(device))
        atomic_store_explicit(&workload.device[device].has_graphs, true, memory_order_relaxed);
}

struct workload workload_take(int32_t device)
{
    if (!has_counters(device) ||
        atomic_load_explicit(&workload.device[device].has_graphs, memory_order_relaxed))
        return (struct workload){0};
    return (struct workload){
        atomic_exchange_explicit(&workload.device[device].kernels, 0, memory_order_relaxed),
        atomic_exchange_explicit(&workload.device[device].threads, 0, memory_order_relaxed)};
}

void workload_forked(void)
{
    forget_state(&workload, sizeof workload);
}
