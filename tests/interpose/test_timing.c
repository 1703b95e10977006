/* What the shim makes of CUPTI's records: of every version, joined, and never more than there is
 * room for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <pthread.h>
#include <string.h>

#include <cmocka.h>
#include <cuda.h>
#include <cupti.h>
#include <cupti_activity_deprecated.h>

#include "interpose/timing/gathered.h"
#include "interpose/timing/groups.h"

static struct gathered_records *gathered;

enum { BEGIN = 1000, END = 5000, DEVICE = 3, CORRELATION = 42, AMOUNT = 6 * 5 * 4 * 32 * 2 };

static void expect_work(const void *record, size_t bytes, enum timed_what what, const char *name)
{
    struct timed_work work;
    assert_int_equal(timing_decode(record, bytes, &work), RECORD_OF_WORK);
    assert_int_equal(work.what, what);
    assert_int_equal(work.begin_ns, BEGIN);
    assert_int_equal(work.end_ns, END);
    assert_int_equal(work.device, DEVICE);
    assert_int_equal(work.correlation, CORRELATION);
    assert_int_equal(work.amount, AMOUNT);
    assert_string_equal(work.name, name);
}

/* Each version's struct, filled in by its own names. */
#define EXPECT_KERNEL(type)                                               \
    {                                                                     \
        type kernel;                                                      \
        memset(&kernel, 0xaa, sizeof kernel);                             \
        kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;              \
        kernel.start = BEGIN, kernel.end = END, kernel.deviceId = DEVICE; \
        kernel.gridX = 6, kernel.gridY = 5, kernel.gridZ = 4;             \
        kernel.blockX = 32, kernel.blockY = 2, kernel.blockZ = 1;         \
        kernel.correlationId = CORRELATION, kernel.name = "gemm";         \
        expect_work(&kernel, sizeof kernel, TIMED_KERNEL, "gemm");        \
    }
#define EXPECT_COPY(type, of, copied, expected)                     \
    {                                                               \
        type copy;                                                  \
        memset(&copy, 0xaa, sizeof copy);                           \
        copy.kind = of, copy.copyKind = copied;                     \
        copy.start = BEGIN, copy.end = END, copy.deviceId = DEVICE; \
        copy.correlationId = CORRELATION, copy.bytes = AMOUNT;      \
        expect_work(&copy, sizeof copy, TIMED_COPY, expected);      \
    }
#define EXPECT_SET(type)                                         \
    {                                                            \
        type set;                                                \
        memset(&set, 0xaa, sizeof set);                          \
        set.kind = CUPTI_ACTIVITY_KIND_MEMSET;                   \
        set.start = BEGIN, set.end = END, set.deviceId = DEVICE; \
        set.correlationId = CORRELATION, set.bytes = AMOUNT;     \
        expect_work(&set, sizeof set, TIMED_COPY, "memory set"); \
    }

static void each_version_is_decoded(void **state)
{
    (void)state;
    EXPECT_KERNEL(CUpti_ActivityKernel4)
    EXPECT_KERNEL(CUpti_ActivityKernel5)
    EXPECT_KERNEL(CUpti_ActivityKernel6)
    EXPECT_KERNEL(CUpti_ActivityKernel7)
    EXPECT_KERNEL(CUpti_ActivityKernel8)
    EXPECT_KERNEL(CUpti_ActivityKernel9)
#if CUPTI_API_VERSION >= 130000
    EXPECT_KERNEL(CUpti_ActivityKernel10)
#endif
#if CUPTI_API_VERSION >= 130100
    EXPECT_KERNEL(CUpti_ActivityKernel11)
#endif
#if CUPTI_API_VERSION >= 130300
    EXPECT_KERNEL(CUpti_ActivityKernel12)
#endif
#if CUPTI_API_VERSION >= 130400
    EXPECT_KERNEL(CUpti_ActivityKernel13)
#endif
    CUpti_ActivityKind copies = CUPTI_ACTIVITY_KIND_MEMCPY;
    EXPECT_COPY(CUpti_ActivityMemcpy, copies, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, "copy to the device")
    EXPECT_COPY(CUpti_ActivityMemcpy3, copies, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, "copy to the host")
    EXPECT_COPY(CUpti_ActivityMemcpy4, copies, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD,
                "copy on the device")
    EXPECT_COPY(CUpti_ActivityMemcpy5, copies, CUPTI_ACTIVITY_MEMCPY_KIND_ATOA, "copy")
#if CUPTI_API_VERSION >= 130000
    EXPECT_COPY(CUpti_ActivityMemcpy6, copies, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD,
                "copy to the device")
#endif
#if CUPTI_API_VERSION >= 130400
    EXPECT_COPY(CUpti_ActivityMemcpy7, copies, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD,
                "copy to the device")
    EXPECT_SET(CUpti_ActivityMemset5)
#endif
    EXPECT_COPY(CUpti_ActivityMemcpyPtoP4, CUPTI_ACTIVITY_KIND_MEMCPY2,
                CUPTI_ACTIVITY_MEMCPY_KIND_PTOP, "copy to another device")
    EXPECT_SET(CUpti_ActivityMemset)
    EXPECT_SET(CUpti_ActivityMemset2)
    EXPECT_SET(CUpti_ActivityMemset3)
    EXPECT_SET(CUpti_ActivityMemset4)
}

static void other_records_are_left_out(void **state)
{
    CUpti_ActivityKernel4 kernel = {.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, .name = "gemm"};
    CUpti_ActivityAPI call = {.kind = CUPTI_ACTIVITY_KIND_DRIVER};
    struct timed_work work;
    (void)state;
    /* Without times, for lack of memory. */
    assert_int_equal(timing_decode(&kernel, sizeof kernel, &work), RECORD_OF_OTHER);
    kernel.start = END, kernel.end = BEGIN;
    assert_int_equal(timing_decode(&kernel, sizeof kernel, &work), RECORD_OF_OTHER);
    assert_int_equal(timing_decode(&call, sizeof call, &work), RECORD_OF_OTHER);
}

/* Of a version whose records have other fields, and are shorter for it. */
static void short_records_are_counted(void **state)
{
    CUpti_ActivityKernel4 kernel = {
        .kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, .start = BEGIN, .end = END, .name = "gemm"};
    struct timed_work work;
    (void)state;
    assert_int_equal(timing_decode(&kernel, sizeof kernel - 1, &work), RECORD_TOO_SHORT);
    gathered_add(gathered, &kernel, sizeof kernel - 8);
    assert_int_equal(gathered->too_short, 1);
    assert_int_equal(gathered->count, 0);
}

static void kernels_of_nccl_are_known(void **state)
{
    (void)state;
    assert_true(timing_is_nccl("_Z40ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgs"));
    assert_true(timing_is_nccl("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"));
    assert_true(timing_is_nccl("_Z27ncclKernel_AllReduce_RING_LLP11ncclDevComm"));
    assert_false(timing_is_nccl("_Z16my_nccl_like_sumPf"));
}

static struct placed_work placed[GATHERED_WORK];

static int make_gathered(void **state)
{
    (void)state;
    gathered = calloc(1, sizeof *gathered);
    return gathered ? 0 : -1;
}

static int free_gathered(void **state)
{
    (void)state;
    free(gathered);
    return 0;
}

static void add_kernel(const char *name, uint64_t begin, uint64_t end, uint32_t correlation)
{
    CUpti_ActivityKernel4 kernel = {.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                    .start = begin,
                                    .end = end,
                                    .correlationId = correlation,
                                    .name = name};
    gathered_add(gathered, &kernel, sizeof kernel);
}

static bool find_same(uint64_t external, int device, struct placed_work *work)
{
    (void)device;
    work->launch = external;
    work->slot = 5;
    return true;
}

/* Two kernels of one launch are one; a kernel of NCCL's that nobody named is nothing; what is not
 * over yet stays. */
static void operations_are_told_from_compute(void **state)
{
    (void)state;
    gathered_name(gathered, 100, 9);
    gathered_name(gathered, 101, 9);
    gathered_name(gathered, 102, 9);
    gathered_name(gathered, 102 + GATHERED_CAUSES, 10); /* takes the place of 102 */
    add_kernel("ncclDevKernel_AllReduce", 100, 200, 100);
    add_kernel("ncclDevKernel_AllReduce", 210, 300, 101);
    add_kernel("ncclDevKernel_Broadcast", 310, 320, 102);
    add_kernel("gemm", 400, 450, 103);
    add_kernel("gemm", 460, 500, 104);
    add_kernel("late", 400, 1001, 105);
    assert_int_equal(gathered_take(gathered, 1000, find_same, placed), 3);
    assert_int_equal(placed[0].launch, 9);
    assert_int_equal(placed[0].begin_ns, 100);
    assert_int_equal(placed[0].end_ns, 300);
    assert_int_equal(placed[1].launch, 0);
    assert_int_equal(gathered_take(gathered, 2000, find_same, placed), 1);
    uint64_t count = 0, total = 0;
    for (int i = 0; i < GATHERED_NAMES; i++)
        if (!strcmp(gathered->name[i].text, "gemm")) {
            count += gathered->name[i].count;
            total += gathered->name[i].total_ns;
        }
    assert_int_equal(count, 2);
    assert_int_equal(total, 90);
}

static void what_has_no_room_is_counted(void **state)
{
    char name[32];
    uint64_t count = 0;
    (void)state;
    for (int i = 0; i < GATHERED_WORK + 10; i++) {
        snprintf(name, sizeof name, "kernel %d", i);
        add_kernel(name, 100, 200, 0);
    }
    assert_int_equal(gathered->dropped, 10);
    for (int i = 0; i < GATHERED_NAMES; i++)
        count += gathered->name[i].count;
    assert_true(count > GATHERED_NAMES / 2); /* names that no longer fit are "other kernels" */
    assert_int_equal(gathered_take(gathered, 1000, find_same, placed), GATHERED_WORK);
    assert_int_equal(gathered->count, 0);
}

static struct record records[64];

static void work_becomes_stretches(void **state)
{
    struct placed_work work[] = {
        {.begin_ns = 2000000, .end_ns = 2100000, .launch = 7, .slot = 1},
        {.begin_ns = 1020000, .end_ns = 1030000},
        {.begin_ns = 1000000, .end_ns = 1010000},
        {.begin_ns = 1005000, .end_ns = 1015000}, /* overlaps the previous one */
        {.begin_ns = 2050000, .end_ns = 2060000},
        {.begin_ns = 2105000, .end_ns = 2110000}, /* behind the operation */
        {.begin_ns = 1000000, .end_ns = 1500000, .device = 1},
    };
    (void)state;
    size_t count = stretches_record(work, sizeof work / sizeof *work, records, 64);
    assert_int_equal(count, 5);
    assert_int_equal(records[0].api, API_notice_activity);
    assert_int_equal(records[0].activity.count, 3);
    assert_int_equal(records[0].activity.begin_ns, 1000000);
    assert_int_equal(records[0].activity.end_ns, 1030000);
    assert_int_equal(records[0].activity.busy_ns, 25000);
    assert_int_equal(records[1].device, 1);
    assert_int_equal(records[2].activity.begin_ns, 2050000);
    assert_int_equal(records[3].api, API_notice_timed);
    assert_int_equal(records[3].timed.launch, 7);
    assert_int_equal(records[4].activity.begin_ns, 2105000);
}

/* However many kernels there are: stretches get longer, and no time is lost. */
static void stretches_fit_their_room(void **state)
{
    enum { WORK = 5000 };
    static struct placed_work work[WORK];
    uint64_t busy = 0, count = 0;
    (void)state;
    for (uint64_t i = 0; i < WORK; i++)
        work[i] =
            (struct placed_work){.begin_ns = 1 + i * 1000000, .end_ns = 1 + i * 1000000 + 500};
    size_t made = stretches_record(work, WORK, records, 64);
    assert_true(made > 0 && made <= 64);
    for (size_t i = 0; i < made; i++) {
        busy += records[i].activity.busy_ns;
        count += records[i].activity.count;
        assert_true(!i || records[i - 1].time_ns <= records[i].time_ns);
    }
    assert_int_equal(count, WORK);
    assert_int_equal(busy, WORK * 500);
}

static struct timed_groups groups;
enum { LAPS = 300, WRITERS = 2 };

static struct timed_launches launches_of(uint64_t number)
{
    struct timed_launches launches = {.count = TIMED_LAUNCHES};
    for (int i = 0; i < TIMED_LAUNCHES; i++)
        launches.launch[i] = (struct timed_launch){number, (uint32_t)number, (int32_t)number};
    return launches;
}

static void expect_launches_of(uint64_t number, const struct timed_launches *launches)
{
    assert_int_equal(launches->count, TIMED_LAUNCHES);
    for (int i = 0; i < TIMED_LAUNCHES; i++) {
        assert_int_equal(launches->launch[i].number, number);
        assert_int_equal(launches->launch[i].slot, (uint32_t)number);
    }
}

static void a_later_group_takes_the_place(void **state)
{
    struct timed_launches early = launches_of(5), late = launches_of(5 + GROUP_RING), found;
    (void)state;
    assert_false(timed_groups_find(&groups, 5, &found));
    assert_true(timed_groups_put(&groups, 5, &early));
    assert_true(timed_groups_find(&groups, 5, &found));
    expect_launches_of(5, &found);
    assert_true(timed_groups_put(&groups, 5 + GROUP_RING, &late));
    assert_false(timed_groups_find(&groups, 5, &found));
    assert_false(timed_groups_put(&groups, 5, &early)); /* its thread was slow */
    assert_true(timed_groups_find(&groups, 5 + GROUP_RING, &found));
    expect_launches_of(5 + GROUP_RING, &found);
}

static _Atomic uint64_t next_group;
static _Atomic int writing;

static void *put_groups(void *unused)
{
    (void)unused;
    for (uint64_t number = 0; number < LAPS * GROUP_RING;) {
        number = atomic_fetch_add(&next_group, 1);
        struct timed_launches launches = launches_of(number * GROUP_RING); /* all in one place */
        timed_groups_put(&groups, number * GROUP_RING, &launches);
    }
    atomic_fetch_sub(&writing, 1);
    return NULL;
}

static void what_is_read_is_of_one_group(void **state)
{
    pthread_t writer[WRITERS];
    (void)state;
    memset((void *)&groups, 0, sizeof groups);
    writing = WRITERS;
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&writer[i], NULL, put_groups, NULL), 0);
    while (writing) {
        uint64_t number = (groups.group[0].number - 1) / GROUP_RING * GROUP_RING;
        struct timed_launches found;
        if (timed_groups_find(&groups, number, &found))
            expect_launches_of(number, &found);
    }
    for (int i = 0; i < WRITERS; i++)
        pthread_join(writer[i], NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_version_is_decoded),
        cmocka_unit_test(other_records_are_left_out),
        cmocka_unit_test_setup_teardown(short_records_are_counted, make_gathered, free_gathered),
        cmocka_unit_test(kernels_of_nccl_are_known),
        cmocka_unit_test_setup_teardown(operations_are_told_from_compute, make_gathered,
                                        free_gathered),
        cmocka_unit_test_setup_teardown(what_has_no_room_is_counted, make_gathered, free_gathered),
        cmocka_unit_test(work_becomes_stretches),
        cmocka_unit_test(stretches_fit_their_room),
        cmocka_unit_test(a_later_group_takes_the_place),
        cmocka_unit_test(what_is_read_is_of_one_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
