/* Every collective, data type and operator against a reference, element by element. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/emu_nccl/buffers.h"
#include "tests/emu_nccl/values.h"

enum { RANKS = 4, PREMUL = ncclNumOps };

/* Inputs whose every partial result fits even fp8 exactly. */
static double ones(int rank, size_t i)
{
    return (double)((i * 7 + (size_t)rank * 5 + i / 11) % 3) - 1;
}
static double positive_ones(int rank, size_t i)
{
    return (double)((i * 7 + (size_t)rank * 5 + i / 11) % 2);
}
static double ones_and_twos(int rank, size_t i)
{
    return (double)((i * 3 + (size_t)rank * 7 + i / 5) % 2) + 1;
}
static double small(int rank, size_t i)
{
    return (double)((i * 5 + (size_t)rank * 3 + i / 7) % 8) - 4;
}
static double small_positive(int rank, size_t i)
{
    return (double)((i * 5 + (size_t)rank * 3 + i / 7) % 5);
}

static const struct {
    const char *name;
    fill *with_sign, *without;
} operators[] = {
    [ncclSum] = {"sum", ones, positive_ones},   [ncclProd] = {"prod", ones_and_twos, ones_and_twos},
    [ncclMax] = {"max", small, small_positive}, [ncclMin] = {"min", small, small_positive},
    [ncclAvg] = {"avg", ones, positive_ones},   [PREMUL] = {"premul", ones, positive_ones},
};

static fill *fill_of(int op, ncclDataType_t type)
{
    return value_signed(type) ? operators[op].with_sign : operators[op].without;
}

static bool is_float(ncclDataType_t type)
{
    return type >= ncclFloat16;
}

static double reference(int op, ncclDataType_t type, size_t index)
{
    fill *values = fill_of(op, type);
    double result = values(0, index);

    for (int rank = 1; rank < RANKS; rank++) {
        double next = values(rank, index);

        result = op == ncclProd  ? result * next
                 : op == ncclMax ? fmax(result, next)
                 : op == ncclMin ? fmin(result, next)
                                 : result + next;
    }
    if (op == ncclAvg)
        return is_float(type) ? result / RANKS : trunc(result / RANKS);
    return op == PREMUL ? result * 2 : result;
}

static ncclRedOp_t operator_of(struct rank *me, int op, ncclDataType_t type)
{
    ncclRedOp_t made;
    _Alignas(8) char two[8];

    if (op != PREMUL)
        return (ncclRedOp_t)op;
    value_store(type, two, 0, 2);
    NCCL(ncclRedOpCreatePreMulSum(&made, two, type, ncclScalarHostImmediate, me->comm));
    return made;
}

static void expect(ncclDataType_t type, int op, const void *buffer, size_t count, size_t first,
                   const char *what)
{
    void *got = buffer_fetch(type, buffer, count);

    for (size_t i = 0; i < count; i++) {
        double is = value_load(type, got, i), should = reference(op, type, first + i);

        if (is != should)
            check_failed(__FILE__, __LINE__, "%s %s, type %d, element %zu of %zu: %g, expected %g",
                         what, operators[op].name, (int)type, i, count, is, should);
    }
    free(got);
}

static void all_reduce(struct rank *me, ncclDataType_t type, int op, size_t count, bool in_place)
{
    void *in = buffer_new(type, count, fill_of(op, type), me->rank),
         *out = in_place ? in : buffer_new(type, count, NULL, 0);
    ncclRedOp_t made = operator_of(me, op, type);

    NCCL(ncclAllReduce(in, out, count, type, made, me->comm, me->stream));
    if (op == PREMUL)
        NCCL(ncclRedOpDestroy(made, me->comm)); /* allowed as soon as the call returned */
    CUDA(cudaStreamSynchronize(me->stream));
    expect(type, op, out, count, 0, "AllReduce");
    buffer_free(in);
    if (!in_place)
        buffer_free(out);
}

static void reduce(struct rank *me, ncclDataType_t type, int op, size_t count, bool in_place)
{
    int root = (int)(count % RANKS);
    void *in = buffer_new(type, count, fill_of(op, type), me->rank);
    void *out = me->rank != root ? NULL : in_place ? in : buffer_new(type, count, NULL, 0);

    NCCL(ncclReduce(in, out, count, type, operator_of(me, op, type), root, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    if (me->rank == root)
        expect(type, op, out, count, 0, "Reduce");
    buffer_free(in);
    if (out && !in_place)
        buffer_free(out);
}

static void reduce_scatter(struct rank *me, ncclDataType_t type, int op, size_t count,
                           bool in_place)
{
    char *in = buffer_new(type, count * RANKS, fill_of(op, type), me->rank);
    size_t block = (size_t)me->rank * count;
    void *out = in_place ? in + block * value_bytes(type) : buffer_new(type, count, NULL, 0);

    NCCL(ncclReduceScatter(in, out, count, type, operator_of(me, op, type), me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    expect(type, op, out, count, block, "ReduceScatter");
    buffer_free(in);
    if (!in_place)
        buffer_free(out);
}

static void reductions(struct rank *me, size_t count, bool in_place)
{
    for (int type = 0; type < ncclNumTypes; type++)
        for (int op = 0; op <= PREMUL; op++) {
            all_reduce(me, (ncclDataType_t)type, op, count, in_place);
            reduce(me, (ncclDataType_t)type, op, count, in_place);
            reduce_scatter(me, (ncclDataType_t)type, op, count, in_place);
        }
}

static void all_reductions(struct rank *me)
{
    reductions(me, 1, false);
    reductions(me, 37, true);
    reductions(me, 130, false);
}

/* Longer than any staging buffer, and no multiple of anything. */
static void large_reductions(struct rank *me)
{
    static const ncclDataType_t types[] = {ncclInt8, ncclFloat16, ncclFloat32, ncclFloat64};

    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
        for (int in_place = 0; in_place < 2; in_place++) {
            all_reduce(me, types[i], ncclSum, 300007, in_place);
            reduce(me, types[i], ncclMax, 150001, in_place);
            reduce_scatter(me, types[i], ncclAvg, 70001, in_place);
        }
}

/* What `rank` has at `index`, for moves of bytes. */
static double content(int rank, size_t index)
{
    return (double)((index * 13 + (size_t)rank * 29) % 113);
}

static void expect_content(ncclDataType_t type, const void *buffer, size_t at, size_t count,
                           int rank, size_t first, const char *what)
{
    const char *from = (const char *)buffer + at * value_bytes(type);
    void *got = buffer_fetch(type, from, count);

    for (size_t i = 0; i < count; i++)
        if (value_load(type, got, i) != content(rank, first + i))
            check_failed(__FILE__, __LINE__,
                         "%s, type %d: element %zu of %zu from rank %d is %g, expected %g", what,
                         (int)type, first + i, count, rank, value_load(type, got, i),
                         content(rank, first + i));
    free(got);
}

static void broadcast(struct rank *me, ncclDataType_t type, size_t count, int root, bool in_place)
{
    void *in = buffer_new(type, count, content, me->rank),
         *out = in_place ? in : buffer_new(type, count, NULL, 0);

    if (in_place)
        NCCL(ncclBcast(in, count, type, root, me->comm, me->stream));
    else
        NCCL(ncclBroadcast(me->rank == root ? in : NULL, out, count, type, root, me->comm,
                           me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    expect_content(type, out, 0, count, root, 0, "Broadcast");
    buffer_free(in);
    if (!in_place)
        buffer_free(out);
}

static void all_gather(struct rank *me, ncclDataType_t type, size_t count, bool in_place)
{
    char *out = buffer_new(type, count * RANKS, NULL, 0),
         *own = out + (size_t)me->rank * count * value_bytes(type);
    void *in = buffer_new(type, count, content, me->rank);

    if (in_place)
        copy(own, in, count * value_bytes(type));
    NCCL(ncclAllGather(in_place ? own : in, out, count, type, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    for (int rank = 0; rank < RANKS; rank++)
        expect_content(type, out, (size_t)rank * count, count, rank, 0, "AllGather");
    buffer_free(in);
    buffer_free(out);
}

static void all_to_all(struct rank *me, ncclDataType_t type, size_t count)
{
    void *in = buffer_new(type, count * RANKS, content, me->rank),
         *out = buffer_new(type, count * RANKS, NULL, 0);

    NCCL(ncclAlltoAll(in, out, count, type, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    for (int rank = 0; rank < RANKS; rank++)
        expect_content(type, out, (size_t)rank * count, count, rank, (size_t)me->rank * count,
                       "AlltoAll");
    buffer_free(in);
    buffer_free(out);
}

static void gather(struct rank *me, ncclDataType_t type, size_t count, int root, bool in_place)
{
    char *out = me->rank == root ? buffer_new(type, count * RANKS, NULL, 0) : NULL;
    void *in = buffer_new(type, count, content, me->rank), *from = in;

    if (in_place && out) {
        from = out + (size_t)root * count * value_bytes(type);
        copy(from, in, count * value_bytes(type));
    }
    NCCL(ncclGather(from, out, count, type, root, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    for (int rank = 0; out && rank < RANKS; rank++)
        expect_content(type, out, (size_t)rank * count, count, rank, 0, "Gather");
    buffer_free(in);
    if (out)
        buffer_free(out);
}

static void scatter(struct rank *me, ncclDataType_t type, size_t count, int root, bool in_place)
{
    char *in = me->rank == root ? buffer_new(type, count * RANKS, content, root) : NULL;
    void *own = buffer_new(type, count, NULL, 0), *out = own;

    if (in_place && in)
        out = in + (size_t)root * count * value_bytes(type);
    NCCL(ncclScatter(in, out, count, type, root, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    expect_content(type, out, 0, count, root, (size_t)me->rank * count, "Scatter");
    buffer_free(own);
    if (in)
        buffer_free(in);
}

static void all_moves(struct rank *me)
{
    static const size_t counts[] = {1, 37, 100003};
    static const ncclDataType_t types[] = {ncclUint8, ncclBfloat16, ncclInt32, ncclFloat64};

    for (size_t c = 0; c < 3; c++)
        for (size_t t = 0; t < 4; t++)
            for (int in_place = 0; in_place < 2; in_place++) {
                int root = (int)(c + t) % RANKS;

                broadcast(me, types[t], counts[c], root, in_place);
                all_gather(me, types[t], counts[c], in_place);
                all_to_all(me, types[t], counts[c]);
                gather(me, types[t], counts[c], root, in_place);
                scatter(me, types[t], counts[c], root, in_place);
            }
}

/* Each rank multiplies its own input by its own scalar, which lies on the device. */
static void device_scalar(struct rank *me)
{
    float *scalar = floats_new(1, 0), *in = floats_new(1000, 3), *out = floats_new(1000, 0),
          own = (float)(me->rank + 1);
    ncclRedOp_t op;

    NCCL(ncclRedOpCreatePreMulSum(&op, scalar, ncclFloat32, ncclScalarDevice, me->comm));
    CUDA(cudaMemcpyAsync(scalar, &own, sizeof(own), cudaMemcpyHostToDevice, me->stream));
    NCCL(ncclAllReduce(in, out, 1000, ncclFloat32, op, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    floats_check(out, 0, 1000, 3 * (1 + 2 + 3 + 4));
    CHECK_EQUAL(ncclAllReduce(in, out, 1000, ncclInt32, op, me->comm, me->stream),
                ncclInvalidArgument);
    NCCL(ncclRedOpDestroy(op, me->comm));
    CHECK_EQUAL(ncclAllReduce(in, out, 1000, ncclFloat32, op, me->comm, me->stream),
                ncclInvalidArgument);
    CHECK_EQUAL(ncclRedOpDestroy(ncclSum, me->comm), ncclInvalidArgument);
}

/* Inexact sums are the same bits on all ranks and at each repetition. */
static void same_bits(struct rank *me)
{
    enum { COUNT = 10007 };
    float *host = malloc(COUNT * sizeof(float)), *all, *in = floats_new(COUNT, 0),
          *out = floats_new(COUNT, 0);
    void *gathered = floats_new(COUNT * RANKS, 0);

    for (int i = 0; i < COUNT; i++)
        host[i] = (float)sin(i * 0.7 + me->rank) * (float)pow(10, i % 9);
    copy(in, host, COUNT * sizeof(float));
    for (int repetition = 0; repetition < 5; repetition++) {
        NCCL(ncclAllReduce(in, out, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        NCCL(ncclAllGather(out, gathered, COUNT, ncclFloat32, me->comm, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
        all = buffer_fetch(ncclFloat32, gathered, COUNT * RANKS);
        for (int rank = 1; rank < RANKS; rank++)
            CHECK(!memcmp(all, all + (size_t)rank * COUNT, COUNT * sizeof(float)));
        if (repetition)
            CHECK(!memcmp(all, host, COUNT * sizeof(float)));
        memcpy(host, all, COUNT * sizeof(float));
        free(all);
    }
    free(host);
}

/* Collectives of nothing wait for nobody. */
static void nothing(struct rank *me)
{
    if (!me->rank) {
        NCCL(ncclAllReduce(NULL, NULL, 0, ncclFloat32, ncclSum, me->comm, me->stream));
        NCCL(ncclAllGather(NULL, NULL, 0, ncclFloat32, me->comm, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
    }
    all_reduce(me, ncclFloat32, ncclSum, 5, false);
}

static const struct job_case cases[] = {
    {.name = "all_reductions",
     .run = all_reductions,
     .as = BOTH,
     .ranks = RANKS,
     .communicator = true},
    {.name = "large_reductions",
     .run = large_reductions,
     .as = BOTH,
     .ranks = RANKS,
     .communicator = true},
    {.name = "all_moves", .run = all_moves, .as = BOTH, .ranks = RANKS, .communicator = true},
    {.name = "device_scalar",
     .run = device_scalar,
     .as = BOTH,
     .ranks = RANKS,
     .communicator = true},
    {.name = "same_bits", .run = same_bits, .as = PROCESSES, .ranks = RANKS, .communicator = true},
    {.name = "nothing", .run = nothing, .as = PROCESSES, .ranks = RANKS, .communicator = true},
};

int main(int argc, char **argv)
{
    return ranks_main(cases, sizeof(cases) / sizeof(*cases), argc, argv);
}
