/* Virtual memory management: PyTorch's expandable segments reserve addresses once, and map memory
 * behind each other as it is needed. */
#include <cuda.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

enum { PIECE = 2 << 20 };

#define CHECK(call, wanted) EXPECT((cudaError_t)(call), (cudaError_t)(wanted))

static const CUmemAllocationProp on_first = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED,
    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
};

static void allow(CUdeviceptr base, size_t bytes, int device, CUmemAccess_flags flags)
{
    const CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
                                    .flags = flags};

    CHECK(cuMemSetAccess(base, bytes, &access, 1), CUDA_SUCCESS);
}

/* Copies over the border of two pieces are one copy. */
static void pieces_are_one_buffer(void **state)
{
    CUmemGenericAllocationHandle piece[2];
    static unsigned char host[2 * PIECE];
    size_t granularity, before, after, all, size;
    CUdeviceptr base, found;

    (void)state;
    CHECK(cuInit(0), CUDA_SUCCESS);
    OK(cudaFree(NULL));
    CHECK(cuMemGetAllocationGranularity(&granularity, &on_first, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
          CUDA_SUCCESS);
    assert_int_equal(granularity, PIECE);
    CHECK(cuMemAddressReserve(&base, 64 * (size_t)PIECE, 0, 0, 0), CUDA_SUCCESS);
    assert_int_equal(base % PIECE, 0);
    EXPECT(cudaMemset((void *)base, 1, 16), cudaErrorInvalidValue); /* nothing is mapped */
    OK(cudaMemGetInfo(&before, &all));
    for (size_t i = 0; i < 2; i++) {
        CHECK(cuMemCreate(&piece[i], PIECE, &on_first, 0), CUDA_SUCCESS);
        CHECK(cuMemMap(base + i * PIECE, PIECE, 0, piece[i], 0), CUDA_SUCCESS);
        CHECK(cuMemMap(base + i * PIECE, PIECE, 0, piece[i], 0), CUDA_ERROR_INVALID_VALUE);
        CHECK(cuMemRelease(piece[i]), CUDA_SUCCESS);
    }
    OK(cudaMemGetInfo(&after, &all));
    assert_int_equal(before - after, 2 * PIECE);
    allow(base, 2 * PIECE, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    OK(cudaMemset((void *)(base + PIECE / 2), 7, PIECE));
    OK(cudaMemcpy(host, (void *)base, 2 * PIECE, cudaMemcpyDeviceToHost));
    assert_int_equal(host[PIECE - 1] + host[PIECE], 14);
    assert_int_equal(host[PIECE / 2 - 1] + host[PIECE + PIECE / 2], 0);
    CHECK(cuMemGetAddressRange(&found, &size, base + PIECE + 5), CUDA_SUCCESS);
    assert_int_equal(found, base + PIECE);
    assert_int_equal(size, PIECE);
    CHECK(cuMemAddressFree(base, 64 * (size_t)PIECE), CUDA_ERROR_INVALID_VALUE);
    CHECK(cuMemUnmap(base, PIECE / 2), CUDA_ERROR_INVALID_VALUE);
    CHECK(cuMemUnmap(base, 2 * PIECE), CUDA_SUCCESS);
    OK(cudaMemGetInfo(&after, &all));
    assert_int_equal(before, after);
    CHECK(cuMemAddressFree(base, 64 * (size_t)PIECE), CUDA_SUCCESS);
}

/* Memory that is mapped nowhere keeps its bytes; mapped twice, it is the same at both addresses. */
static void memory_outlives_its_mapping(void **state)
{
    CUmemGenericAllocationHandle piece, again;
    CUmemAllocationProp properties;
    CUdeviceptr first, second;
    int value = 0;

    (void)state;
    CHECK(cuMemAddressReserve(&first, PIECE, 0, 0, 0), CUDA_SUCCESS);
    CHECK(cuMemAddressReserve(&second, PIECE, 0, 0, 0), CUDA_SUCCESS);
    CHECK(cuMemCreate(&piece, PIECE, &on_first, 0), CUDA_SUCCESS);
    CHECK(cuMemMap(first, PIECE, 0, piece, 0), CUDA_SUCCESS);
    allow(first, PIECE, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    OK(cudaMemset((void *)first, 1, sizeof(int)));
    CHECK(cuMemRetainAllocationHandle(&again, (void *)first), CUDA_SUCCESS);
    assert_int_equal(again, piece);
    CHECK(cuMemUnmap(first, PIECE), CUDA_SUCCESS);
    CHECK(cuMemRelease(piece), CUDA_SUCCESS);
    CHECK(cuMemGetAllocationPropertiesFromHandle(&properties, again), CUDA_SUCCESS);
    CHECK(cuMemMap(first, PIECE, 0, again, 0), CUDA_SUCCESS);
    CHECK(cuMemMap(second, PIECE, 0, again, 0), CUDA_SUCCESS);
    CHECK(cuMemRelease(again), CUDA_SUCCESS);
    CHECK(cuMemMap(second, PIECE, 0, again, 0), CUDA_ERROR_INVALID_VALUE); /* released */
    allow(second, PIECE, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    OK(cudaMemcpy(&value, (void *)second, sizeof value, cudaMemcpyDeviceToHost));
    assert_int_equal(value, 0x01010101);
    CHECK(cuMemUnmap(first, PIECE), CUDA_SUCCESS);
    CHECK(cuMemUnmap(second, PIECE), CUDA_SUCCESS);
    CHECK(cuMemAddressFree(first, PIECE), CUDA_SUCCESS);
    CHECK(cuMemAddressFree(second, PIECE), CUDA_SUCCESS);
}

/* What another process maps is the same memory; here it is the same process. */
static void memory_is_shared_by_files(void **state)
{
    CUmemGenericAllocationHandle piece, imported;
    CUdeviceptr base, again;
    int file, value = 0;

    (void)state;
    CHECK(cuMemAddressReserve(&base, PIECE, 0, 0, 0), CUDA_SUCCESS);
    CHECK(cuMemAddressReserve(&again, PIECE, 0, 0, 0), CUDA_SUCCESS);
    CHECK(cuMemCreate(&piece, PIECE, &on_first, 0), CUDA_SUCCESS);
    CHECK(cuMemExportToShareableHandle(&file, piece, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
          CUDA_SUCCESS);
    CHECK(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)file,
                                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
          CUDA_SUCCESS);
    assert_int_equal(close(file), 0);
    CHECK(cuMemMap(base, PIECE, 0, piece, 0), CUDA_SUCCESS);
    CHECK(cuMemMap(again, PIECE, 0, imported, 0), CUDA_SUCCESS);
    allow(base, PIECE, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    allow(again, PIECE, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    OK(cudaMemset((void *)(base + PIECE - sizeof(int)), 1, sizeof(int)));
    OK(cudaMemcpy(&value, (void *)(again + PIECE - sizeof(int)), sizeof(int),
                  cudaMemcpyDeviceToHost));
    assert_int_equal(value, 0x01010101);
    CHECK(cuMemUnmap(base, PIECE), CUDA_SUCCESS);
    CHECK(cuMemUnmap(again, PIECE), CUDA_SUCCESS);
    CHECK(cuMemRelease(imported), CUDA_SUCCESS);
    CHECK(cuMemRelease(piece), CUDA_SUCCESS);
    CHECK(cuMemAddressFree(base, PIECE), CUDA_SUCCESS);
    CHECK(cuMemAddressFree(again, PIECE), CUDA_SUCCESS);
}

/* No device may touch a mapping by itself, its own neither. */
static void access_is_given(void **state)
{
    const CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
    CUmemGenericAllocationHandle piece;
    unsigned long long flags;
    CUdeviceptr base;

    (void)state;
    CHECK(cuMemAddressReserve(&base, PIECE, 0, 0, 0), CUDA_SUCCESS);
    CHECK(cuMemCreate(&piece, PIECE, &on_first, 0), CUDA_SUCCESS);
    CHECK(cuMemMap(base, PIECE, 0, piece, 0), CUDA_SUCCESS);
    CHECK(cuMemRelease(piece), CUDA_SUCCESS);
    CHECK(cuMemGetAccess(&flags, &here, base), CUDA_SUCCESS);
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    allow(base, PIECE, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    CHECK(cuMemGetAccess(&flags, &here, base), CUDA_SUCCESS);
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    OK(cudaMemset((void *)base, 1, PIECE));
    OK(cudaDeviceSynchronize());
    CHECK(cuMemUnmap(base, PIECE), CUDA_SUCCESS);
    CHECK(cuMemAddressFree(base, PIECE), CUDA_SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_one_buffer),
        cmocka_unit_test(memory_outlives_its_mapping),
        cmocka_unit_test(memory_is_shared_by_files),
        cmocka_unit_test(access_is_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
