/* simt.cpp: a block's threads as coroutines, switched where they wait for each other. */
#include "tests/kernels/simt.h"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <ucontext.h>

enum { LANES = 32, THREADS_MOST = 1024, STACK_BYTES = 64 * 1024 };
enum waiting { RUNNABLE, AT_BLOCK_BARRIER, AT_WARP_BARRIER, ENDED };

struct coroutine {
    ucontext_t context; /* where it begins */
    jmp_buf waits_here; /* and goes on: unlike swapcontext() that makes no system call */
    bool began;
    std::unique_ptr<char[]> stack;
    enum waiting waiting;
    double exchanged; /* holds a float, an address or a flag as it is */
};

dim3 gridDim, blockDim;
uint3 blockIdx, threadIdx;

static std::mutex one_launch;
static coroutine coroutines[THREADS_MOST];
static jmp_buf scheduler;
static const std::function<void()> *body;

[[noreturn]] static void give_up(const char *why)
{
    fprintf(stderr, "FAILED block %u,%u,%u thread %u: %s\n", blockIdx.x, blockIdx.y, blockIdx.z,
            threadIdx.x, why);
    exit(1);
}

static void wait_at(enum waiting waiting)
{
    coroutine &me = coroutines[threadIdx.x];

    me.waiting = waiting;
    if (!_setjmp(me.waits_here))
        _longjmp(scheduler, 1);
}

void __syncthreads()
{
    wait_at(AT_BLOCK_BARRIER);
}

/* Each lane shows a value to the others of its warp; nobody shows the next one before all have
 * looked. */
template <typename Look> static auto exchange(unsigned mask, double value, Look look)
{
    if (mask != 0xffffffff)
        give_up("a warp exchange of a part of the warp, which this test does not know");
    coroutines[threadIdx.x].exchanged = value;
    wait_at(AT_WARP_BARRIER);
    const auto result = look(&coroutines[threadIdx.x / LANES * LANES]);
    wait_at(AT_WARP_BARRIER);
    return result;
}

float __shfl_xor_sync(unsigned mask, float value, int lane_mask)
{
    return exchange(mask, value, [&](const coroutine *warp) {
        return (float)warp[threadIdx.x % LANES ^ lane_mask].exchanged;
    });
}

int __any_sync(unsigned mask, int predicate)
{
    return exchange(mask, predicate ? 1 : 0, [](const coroutine *warp) {
        int any = 0;
        for (int lane = 0; lane < LANES; lane++)
            any |= warp[lane].exchanged != 0;
        return any;
    });
}

void simt_warp_agrees(const char *call, size_t value)
{
    const bool same = exchange(0xffffffff, (double)value, [](const coroutine *warp) {
        bool all = true;
        for (int lane = 1; lane < LANES; lane++)
            all &= warp[lane].exchanged == warp[0].exchanged;
        return all;
    });

    if (!same)
        give_up(call);
}

void simt_demand(bool right, const char *what)
{
    if (!right)
        give_up(what);
}

static void coroutine_main()
{
    (*body)();
    coroutines[threadIdx.x].waiting = ENDED;
    _longjmp(scheduler, 1);
}

static void coroutine_start(coroutine &c)
{
    if (!c.stack)
        c.stack.reset(new char[STACK_BYTES]);
    getcontext(&c.context);
    c.context.uc_stack.ss_sp = c.stack.get();
    c.context.uc_stack.ss_size = STACK_BYTES;
    c.context.uc_link = nullptr;
    makecontext(&c.context, coroutine_main, 0);
    c.waiting = RUNNABLE;
    c.began = false;
}

/* Returns when the coroutine waits or has ended. */
__attribute__((noinline)) static void coroutine_run(coroutine &c)
{
    if (_setjmp(scheduler))
        return;
    if (c.began)
        _longjmp(c.waits_here, 1);
    c.began = true;
    setcontext(&c.context);
}

static unsigned count_of(unsigned first, unsigned count, enum waiting waiting)
{
    unsigned found = 0;

    for (unsigned i = first; i < first + count; i++)
        found += coroutines[i].waiting == waiting;
    return found;
}

static void release(unsigned first, unsigned count)
{
    for (unsigned i = first; i < first + count; i++)
        if (coroutines[i].waiting != ENDED)
            coroutines[i].waiting = RUNNABLE;
}

/* Runs a warp until none of its threads can go on without another warp. */
static void run_warp(unsigned first)
{
    for (;;) {
        for (unsigned i = first; i < first + LANES; i++)
            if (coroutines[i].waiting == RUNNABLE) {
                threadIdx = uint3{i, 0, 0};
                coroutine_run(coroutines[i]);
            }
        if (count_of(first, LANES, AT_WARP_BARRIER) != LANES)
            return;
        release(first, LANES);
    }
}

/* Each warp goes as far ahead of the others as barriers let it: a barrier that is missing shows. */
static void run_block(unsigned threads)
{
    unsigned ended = 0;

    for (unsigned i = 0; i < threads; i++)
        coroutine_start(coroutines[i]);
    while (ended < threads) {
        for (unsigned warp = 0; warp < threads; warp += LANES)
            run_warp(warp);
        ended = count_of(0, threads, ENDED);
        if (count_of(0, threads, AT_BLOCK_BARRIER) + ended != threads)
            give_up("threads wait for each other at different places");
        release(0, threads);
    }
}

cudaError_t simt_run(dim3 grid, dim3 block, const std::function<void()> &thread)
{
    const std::lock_guard<std::mutex> lock(one_launch);

    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > 65535 || grid.z > 65535 ||
        block.x == 0 || block.x > THREADS_MOST || block.x % LANES || block.y != 1 || block.z != 1)
        return cudaErrorInvalidConfiguration;
    body = &thread;
    gridDim = grid;
    blockDim = block;
    for (blockIdx.z = 0; blockIdx.z < grid.z; blockIdx.z++)
        for (blockIdx.y = 0; blockIdx.y < grid.y; blockIdx.y++)
            for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x++)
                run_block(block.x);
    return cudaSuccess;
}

extern "C" cudaError_t cudaGetDeviceCount(int *count)
{
    *count = 1;
    return cudaSuccess;
}
