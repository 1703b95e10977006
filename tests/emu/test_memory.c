#include <dlfcn.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "support.h"

static void allocations_are_apart(void **state)
{
    char *a, *b;

    (void)state;
    OK(cudaMalloc((void **)&a, 100));
    OK(cudaMalloc((void **)&b, 100));
    assert_int_equal((uintptr_t)a % 256, 0);
    assert_true(b >= a + 4096 || a >= b + 4096);
    OK(cudaFree(a));
    OK(cudaFree(b));
    OK(cudaFree(NULL));
    EXPECT(cudaFree(a), cudaErrorInvalidValue);
    OK(cudaMalloc((void **)&a, 0));
    assert_null(a);
}

static void memory_ends(void **state)
{
    size_t before, after, total;
    void *all, *more;

    (void)state;
    OK(cudaMemGetInfo(&before, &total));
    assert_int_equal(total, 64 << 20); /* DDPCHECK_EMU_MEMORY of the test */
    OK(cudaMalloc(&all, total - (8 << 20)));
    OK(cudaMemGetInfo(&after, &total));
    assert_int_equal(before - after, total - (8 << 20));
    EXPECT(cudaMalloc(&more, 9 << 20), cudaErrorMemoryAllocation);
    assert_null(more);
    EXPECT(cudaGetLastError(), cudaErrorMemoryAllocation);
    OK(cudaMalloc(&more, 1 << 20)); /* not sticky */
    OK(cudaFree(more));
    OK(cudaFree(all));
    OK(cudaMemGetInfo(&after, &total));
    assert_int_equal(after, before);
    EXPECT(cudaMalloc(&more, SIZE_MAX - 100), cudaErrorMemoryAllocation);
}

static void expect_attributes(const void *pointer, enum cudaMemoryType type, int device)
{
    struct cudaPointerAttributes attributes;

    OK(cudaPointerGetAttributes(&attributes, pointer));
    assert_int_equal(attributes.type, type);
    if (type != cudaMemoryTypeUnregistered)
        assert_int_equal(attributes.device, device);
    if (type == cudaMemoryTypeDevice)
        assert_null(attributes.hostPointer);
    else
        assert_ptr_equal(attributes.hostPointer, pointer);
}

static void pointers_tell_what_they_are(void **state)
{
    char *device, *pinned, *managed, *own = malloc(8192);
    void *mapped;

    (void)state;
    OK(cudaSetDevice(1));
    OK(cudaMalloc((void **)&device, 1000));
    OK(cudaMallocManaged((void **)&managed, 1000, cudaMemAttachGlobal));
    OK(cudaMallocHost((void **)&pinned, 1000));
    OK(cudaSetDevice(0));
    expect_attributes(device + 999, cudaMemoryTypeDevice, 1);
    expect_attributes(managed + 1, cudaMemoryTypeManaged, 1);
    expect_attributes(pinned, cudaMemoryTypeHost, 1);
    expect_attributes(own, cudaMemoryTypeUnregistered, 0);
    OK(cudaHostRegister(own, 8192, cudaHostRegisterDefault));
    expect_attributes(own + 8191, cudaMemoryTypeHost, 0);
    EXPECT(cudaHostRegister(own + 100, 10, cudaHostRegisterDefault),
           cudaErrorHostMemoryAlreadyRegistered);
    OK(cudaHostGetDevicePointer(&mapped, own, 0));
    assert_ptr_equal(mapped, own);
    OK(cudaHostUnregister(own));
    EXPECT(cudaHostUnregister(own), cudaErrorHostMemoryNotRegistered);
    expect_attributes(own, cudaMemoryTypeUnregistered, 0);
    managed[0] = 1;
    OK(cudaMemset(managed, 5, 1000));
    OK(cudaDeviceSynchronize());
    assert_int_equal(managed[999], 5);
    OK(cudaFree(device));
    OK(cudaFree(managed));
    OK(cudaFreeHost(pinned));
    free(own);
}

static int register_mapping(int file)
{
    void *mapping = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    int error;

    assert_ptr_not_equal(mapping, MAP_FAILED);
    error = cudaHostRegister(mapping, 4096, cudaHostRegisterDefault);
    if (!error)
        OK(cudaHostUnregister(mapping));
    munmap(mapping, 4096);
    return error;
}

/* A driver pins whole pages, each once, and no pages of files on disk. */
/* A program of CUDA 12 has 24 bytes for what is 88 bytes long in CUDA 13. */
static void each_runtime_writes_its_own_struct(void **state)
{
    static const struct {
        const char *runtime;
        size_t bytes;
    } structs[] = {{"libcudart.so.12", 24}, {"libcudart.so.13", 88}};
    _Alignas(struct cudaPointerAttributes) unsigned char room[128];
    void *pointer;

    (void)state;
    OK(cudaMalloc(&pointer, 100));
    for (size_t i = 0; i < sizeof structs / sizeof *structs; i++) {
        void *library = dlopen(structs[i].runtime, RTLD_NOW | RTLD_LOCAL);
        assert_non_null(library);
        __typeof__(&cudaPointerGetAttributes) get =
            (__typeof__(get))dlsym(library, "cudaPointerGetAttributes");
        memset(room, 0xab, sizeof room);
        OK(get((struct cudaPointerAttributes *)(void *)room, pointer));
        for (size_t at = 0; at < sizeof room; at++)
            assert_int_equal(room[at] == 0xab, at >= structs[i].bytes);
    }
    OK(cudaFree(pointer));
}

static void what_can_be_registered(void **state)
{
    char *own = aligned_alloc(4096, 8192), path[] = "/var/tmp/ddpcheck-emu-XXXXXX";
    int file = mkstemp(path), shared = memfd_create("shared", MFD_CLOEXEC);
    struct statfs system;

    (void)state;
    OK(cudaHostRegister(own, 100, cudaHostRegisterDefault));
    EXPECT(cudaHostRegister(own + 200, 100, cudaHostRegisterDefault),
           cudaErrorHostMemoryAlreadyRegistered);
    OK(cudaHostRegister(own + 4096, 100, cudaHostRegisterDefault));
    OK(cudaHostUnregister(own));
    OK(cudaHostUnregister(own + 4096));
    assert_true(file >= 0 && shared >= 0 && !unlink(path));
    assert_true(!ftruncate(file, 4096) && !ftruncate(shared, 4096) && !fstatfs(file, &system));
    assert_int_equal(register_mapping(shared), cudaSuccess);
    if (system.f_type != TMPFS_MAGIC)
        assert_int_equal(register_mapping(file), cudaErrorInvalidValue);
    cudaGetLastError();
    close(file);
    close(shared);
    free(own);
}

static void use_after_free_is_illegal_and_sticky(void **state)
{
    char *device, host[100];
    void *more;

    (void)state;
    OK(cudaMalloc((void **)&device, 100));
    OK(cudaFree(device));
    OK(cudaMemsetAsync(device, 1, 100, 0));
    EXPECT(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    EXPECT(cudaMalloc(&more, 10), cudaErrorIllegalAddress);
    EXPECT(cudaMemcpy(host, device, 100, cudaMemcpyDeviceToHost), cudaErrorIllegalAddress);
    EXPECT(cudaGetLastError(), cudaErrorIllegalAddress);
    EXPECT(cudaGetLastError(), cudaErrorIllegalAddress); /* does not go away */
    OK(cudaSetDevice(1));
    OK(cudaMalloc(&more, 10)); /* the other device is well */
    EXPECT(cudaSetDevice(0), cudaErrorIllegalAddress);
    OK(cudaDeviceReset());
    OK(cudaMalloc(&more, 10));
}

/* cudaFree waits for the device; a kernel may use the memory until then. */
static void free_waits_for_the_device(void **state)
{
    struct gate gate = GATE_CLOSED;
    cudaStream_t stream;
    pthread_t thread;
    void *memory;

    (void)state;
    OK(cudaMalloc(&memory, 100));
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(cudaLaunchHostFunc(stream, gate_pass, &gate));
    OK(cudaMemsetAsync(memory, 0, 100, stream));
    assert_int_equal(pthread_create(&thread, NULL, gate_open_later, &gate), 0);
    OK(cudaFree(memory));
    assert_true(gate_is_open(&gate));
    pthread_join(thread, NULL);
    OK(cudaDeviceSynchronize());
    OK(cudaStreamDestroy(stream));
}

static void stream_ordered_allocation(void **state)
{
    struct gate gate = GATE_CLOSED;
    cudaStream_t stream;
    cudaMemPool_t pool;
    uint64_t used;
    char *memory, back[10];

    (void)state;
    OK(cudaStreamCreate(&stream));
    OK(cudaDeviceGetDefaultMemPool(&pool, 0));
    OK(cudaLaunchHostFunc(stream, gate_pass, &gate));
    OK(cudaMallocAsync((void **)&memory, 10, stream));
    OK(cudaMemsetAsync(memory, 3, 10, stream));
    OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
    assert_true(used >= 10);
    gate_open(&gate);
    OK(cudaMemcpyAsync(back, memory, 10, cudaMemcpyDeviceToHost, stream));
    assert_int_equal(back[9], 3);
    OK(cudaFreeAsync(memory, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
    assert_int_equal(used, 0);
    EXPECT(cudaFreeAsync(memory, stream), cudaErrorInvalidValue);
    OK(cudaStreamDestroy(stream));
}

static void devices_are_distinct(void **state)
{
    struct cudaDeviceProp a, b;
    char bus[32];
    int device, count;

    (void)state;
    OK(cudaGetDeviceCount(&count));
    assert_int_equal(count, 3);
    OK(cudaGetDeviceProperties(&a, 0));
    OK(cudaGetDeviceProperties(&b, 1));
    assert_string_equal(a.name, "ddpcheck emulated GPU");
    assert_memory_not_equal(&a.uuid, &b.uuid, sizeof(a.uuid));
    assert_int_not_equal(a.pciBusID, b.pciBusID);
    OK(cudaDeviceGetPCIBusId(bus, sizeof(bus), 1));
    OK(cudaDeviceGetByPCIBusId(&device, bus));
    assert_int_equal(device, 1);
    EXPECT(cudaSetDevice(3), cudaErrorInvalidDevice);
    EXPECT(cudaGetDeviceProperties(&a, -1), cudaErrorInvalidDevice);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(allocations_are_apart, reset_devices),
        cmocka_unit_test_setup(memory_ends, reset_devices),
        cmocka_unit_test_setup(pointers_tell_what_they_are, reset_devices),
        cmocka_unit_test_setup(each_runtime_writes_its_own_struct, reset_devices),
        cmocka_unit_test_setup(what_can_be_registered, reset_devices),
        cmocka_unit_test_setup(use_after_free_is_illegal_and_sticky, reset_devices),
        cmocka_unit_test_setup(free_waits_for_the_device, reset_devices),
        cmocka_unit_test_setup(stream_ordered_allocation, reset_devices),
        cmocka_unit_test_setup(devices_are_distinct, reset_devices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
