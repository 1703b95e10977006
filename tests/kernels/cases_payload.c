/* cases_payload.c: hashes of buffers, to the bit, and NaNs and Infs, to the element. */
#include "tests/kernels/cases.h"
#include "tests/kernels/values.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kernels/kernels.h"
#include "kernels/payload.h"

enum { MARGIN = 64, LENGTHS = 150, OFFSETS = 17, LARGE = 3 << 20, BLOCKS_MOST = 7 };
enum { PAGE = 4096 };

extern const int runtime_is_host
    __attribute__((weak)); /* host_runtime.c: device memory is the host's */

/* Formats of nccl.h as sign, exponent and fraction bits. */
static const struct format {
    const char *name;
    int datatype, exponent, fraction;
    bool has_inf;
} formats[] = {
    {"float16", 6, 5, 10, true}, {"float32", 7, 8, 23, true},      {"float64", 8, 11, 52, true},
    {"bfloat16", 9, 8, 7, true}, {"float8 e4m3", 10, 4, 3, false}, {"float8 e5m2", 11, 5, 2, true},
};

static struct payload_found *found; /* device memory */
static uint64_t tickets;

/* As payload.h says it in words, byte by byte. */
static uint64_t expected_hash(const unsigned char *data, size_t bytes)
{
    uint64_t sum = 0;

    for (size_t at = 0; at < bytes; at += 8) {
        uint64_t word = 0;
        for (size_t i = at; i < at + 8 && i < bytes; i++)
            word += (uint64_t)data[i] << 8 * (i - at);
        word += (at / 8 + 1) * 0x9e3779b97f4a7c15;
        word *= 0xbf58476d1ce4e5b9;
        word ^= word >> 32;
        word *= 0x94d049bb133111eb;
        sum += word ^ word >> 29;
    }
    sum += (bytes + 1) * 0x9e3779b97f4a7c15;
    sum *= 0xbf58476d1ce4e5b9;
    sum ^= sum >> 32;
    sum *= 0x94d049bb133111eb;
    return sum ^ sum >> 29 ? sum ^ sum >> 29 : 1;
}

static struct payload_found hash_at(const unsigned char *data, size_t bytes, int datatype,
                                    unsigned blocks)
{
    struct payload_found result;
    const uint64_t ticket = ++tickets;

    LAUNCHED(kernels_payload_hash(data, bytes, datatype, found, ticket,
                                  (int)(ticket % PAYLOAD_PARTIALS), blocks, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaMemcpy(&result, found, sizeof result, cudaMemcpyDeviceToHost));
    if (result.done != ticket)
        fail("the launch's ticket: expected %llu, got %llu", (unsigned long long)ticket,
             (unsigned long long)result.done);
    return result;
}

static void expect_hash(const unsigned char *host, const unsigned char *device, size_t bytes,
                        unsigned blocks)
{
    const struct payload_found got = hash_at(device, bytes, 1, blocks);
    const uint64_t expected = expected_hash(host, bytes);

    if (got.hash != expected || got.nans || got.infs)
        fail("hash of %zu bytes at offset %zu, %u blocks: expected %016llx, got %016llx, %u NaN, "
             "%u Inf",
             bytes, (size_t)device % 16, blocks, (unsigned long long)expected,
             (unsigned long long)got.hash, got.nans, got.infs);
}

static unsigned char *random_bytes(size_t bytes)
{
    unsigned char *memory = malloc(bytes);

    MUST(memory ? cudaSuccess : cudaErrorMemoryAllocation);
    for (size_t i = 0; i < bytes; i++)
        memory[i] = (unsigned char)(random_uniform() * 256);
    return memory;
}

/* Every length and alignment; what lies around the buffer is random and must not count. */
static void lengths_and_alignments(void)
{
    const size_t room = LENGTHS + OFFSETS + MARGIN;
    unsigned char *host = random_bytes(room), *device;

    MUST(cudaMalloc((void **)&device, room));
    copy_to_device(device, host, room);
    for (size_t offset = 0; offset < OFFSETS; offset++)
        for (size_t bytes = 1; bytes < LENGTHS; bytes++)
            expect_hash(host + offset, device + offset, bytes, 1 + (unsigned)(bytes % 3));
    MUST(cudaFree(device));
    free(host);
}

/* Many blocks, grids that do not divide the length, several rounds of a grid. */
static void large_buffers(void)
{
    unsigned char *host = random_bytes(LARGE), *device;

    MUST(cudaMalloc((void **)&device, LARGE));
    copy_to_device(device, host, LARGE);
    for (size_t offset = 0; offset < 16; offset += 1 + offset % 5)
        for (unsigned blocks = 1; blocks <= BLOCKS_MOST; blocks += 3)
            expect_hash(host + offset, device + offset, 100000 + 4099 * offset, blocks);
    expect_hash(host, device, LARGE, 256);
    expect_hash(host + 4, device + 4, LARGE - 9, 256);
    /* One bit anywhere, and two words exchanged, make another hash. */
    const uint64_t before = hash_at(device, LARGE, 1, 64).hash;
    for (int i = 0; i < 8; i++) {
        const size_t at = (size_t)(random_uniform() * LARGE);
        const unsigned char flipped = host[at] ^ (unsigned char)(1 << i);
        copy_to_device(device + at, &flipped, 1);
        if (hash_at(device, LARGE, 1, 64).hash == before)
            fail("a bit that changed at byte %zu: the hash is the same", at);
        copy_to_device(device + at, host + at, 1);
    }
    copy_to_device(device, host + 8, 8);
    copy_to_device(device + 8, host, 8);
    if (hash_at(device, LARGE, 1, 64).hash == before)
        fail("two words that changed places: the hash is the same");
    MUST(cudaFree(device));
    free(host);
}

/* The last byte of a page that has none behind it, the first of one that has none before it. */
static void nothing_outside(void)
{
    if (!&runtime_is_host)
        return;
    unsigned char *pages = mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    MUST(pages != MAP_FAILED && !mprotect(pages + PAGE, PAGE, PROT_READ | PROT_WRITE)
             ? cudaSuccess
             : cudaErrorMemoryAllocation);
    for (size_t i = 0; i < PAGE; i++)
        pages[PAGE + i] = (unsigned char)(random_uniform() * 256);
    for (size_t bytes = 1; bytes < 60; bytes++) {
        expect_hash(pages + 2 * PAGE - bytes, pages + 2 * PAGE - bytes, bytes, 2);
        expect_hash(pages + PAGE, pages + PAGE, bytes, 2);
    }
    munmap(pages, 3 * PAGE);
}

static void put(unsigned char *to, const struct format *format, uint64_t exponent,
                uint64_t fraction, bool negative)
{
    const uint64_t bits = (uint64_t)negative << (format->exponent + format->fraction) |
                          exponent << format->fraction | fraction;
    memcpy(to, &bits, (size_t)(1 + format->exponent + format->fraction) / 8);
}

/* Random exponents and fractions, the extremes among them; counted by their definition. */
static void not_a_number(const struct format *format)
{
    enum { ELEMENTS = 4001 };
    const size_t size = (size_t)(1 + format->exponent + format->fraction) / 8;
    const uint64_t all_ones = (UINT64_C(1) << format->exponent) - 1,
                   fractions = UINT64_C(1) << format->fraction;
    unsigned char *host = random_bytes(ELEMENTS * size + 16), *device;
    uint32_t nans = 0, infs = 0;

    for (size_t i = 0; i < ELEMENTS; i++) {
        const int kind = (int)(random_uniform() * 6);
        const uint64_t exponent = kind < 3    ? all_ones
                                  : kind == 3 ? all_ones - 1
                                              : (uint64_t)(random_uniform() * (double)all_ones);
        const uint64_t fraction = kind == 0   ? 0
                                  : kind == 1 ? fractions - 1
                                  : kind == 4 ? 1
                                              : (uint64_t)(random_uniform() * (double)fractions);
        put(host + i * size, format, exponent, fraction, random_uniform() < 0.5);
        if (exponent == all_ones && format->has_inf && fraction == 0)
            infs++;
        else if (exponent == all_ones && (format->has_inf || fraction == fractions - 1))
            nans++;
    }
    MUST(cudaMalloc((void **)&device, ELEMENTS * size + 16));
    for (size_t shift = 0; shift < 16; shift += size) {
        copy_to_device(device + shift, host, ELEMENTS * size);
        const struct payload_found got =
            hash_at(device + shift, ELEMENTS * size, format->datatype, 3);
        if (got.nans != nans || got.infs != infs ||
            got.hash != expected_hash(host, ELEMENTS * size))
            fail("%s at offset %zu: expected %u NaN, %u Inf, got %u, %u", format->name, shift, nans,
                 infs, got.nans, got.infs);
    }
    MUST(cudaFree(device));
    free(host);
}

static void uniform_buffers(void)
{
    unsigned char host[96], *device;

    MUST(cudaMalloc((void **)&device, sizeof host));
    for (int i = 0; i < 96; i++)
        host[i] = "abcd"[i % 4];
    copy_to_device(device, host, sizeof host);
    for (size_t offset = 0; offset < 16; offset += 4)
        for (size_t bytes = 1; bytes <= 72; bytes += 3)
            if (hash_at(device + offset, bytes, 1, 2).flags != PAYLOAD_UNIFORM)
                fail("%zu bytes of one pattern at offset %zu: expected uniform", bytes, offset);
    for (size_t at = 0; at < 72; at += 7) {
        host[at] ^= 1;
        copy_to_device(device, host, sizeof host);
        if (hash_at(device, 73, 1, 2).flags || hash_at(device, at < 17 ? 17 : at + 1, 1, 1).flags)
            fail("another byte at %zu: expected not uniform", at);
        host[at] ^= 1;
    }
    MUST(cudaFree(device));
}

void case_payload(void)
{
    MUST(cudaMalloc((void **)&found, sizeof *found));
    lengths_and_alignments();
    large_buffers();
    nothing_outside();
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        not_a_number(&formats[i]);
    uniform_buffers();
    if (kernels_payload_hash(found, 0, 1, found, 1, 0, 1, stream) != cudaErrorInvalidValue ||
        kernels_payload_hash(found, 8, 1, found, 1, PAYLOAD_PARTIALS, 1, stream) !=
            cudaErrorInvalidValue)
        fail("a hash of nothing, or without a partial sum: expected to be refused");
    MUST(cudaFree(found));
}
