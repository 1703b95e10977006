#include <cuda.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

#define CHECK(call, wanted) EXPECT((cudaError_t)(call), (cudaError_t)(wanted))

static void stream_writes_and_waits_for_values(void **state)
{
    uint64_t *page = aligned_alloc(4096, 4096);
    CUdeviceptr address;
    cudaStream_t writer, waiter;

    (void)state;
    memset(page, 0, 4096);
    CHECK(cuInit(0), CUDA_SUCCESS);
    OK(cudaStreamCreateWithFlags(&writer, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&waiter, cudaStreamNonBlocking));
    CHECK(cuStreamWriteValue64(writer, (CUdeviceptr)page, 1, 0),
          CUDA_ERROR_INVALID_VALUE); /* not registered */
    CHECK(cuMemHostRegister(page, 4096, CU_MEMHOSTREGISTER_DEVICEMAP), CUDA_SUCCESS);
    CHECK(cuMemHostGetDevicePointer(&address, page, 0), CUDA_SUCCESS);
    CHECK(cuStreamWaitValue64(waiter, address, 5, CU_STREAM_WAIT_VALUE_GEQ), CUDA_SUCCESS);
    CHECK(cuStreamWriteValue64(waiter, address + 8, 9, 0), CUDA_SUCCESS);
    CHECK(cuStreamWriteValue64(writer, address, 4, 0), CUDA_SUCCESS);
    OK(cudaStreamSynchronize(writer));
    assert_int_equal(__atomic_load_n(&page[0], __ATOMIC_ACQUIRE), 4);
    EXPECT(cudaStreamQuery(waiter), cudaErrorNotReady);
    CHECK(cuStreamWriteValue64(writer, address, 6, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER),
          CUDA_SUCCESS);
    OK(cudaStreamSynchronize(waiter));
    assert_int_equal(page[1], 9);
    CHECK(cuStreamWriteValue32(writer, address + 12, 3, 0), CUDA_SUCCESS);
    CHECK(cuStreamWriteValue64(writer, address + 4, 3, 0),
          CUDA_ERROR_INVALID_VALUE); /* not aligned */
    OK(cudaDeviceSynchronize());
    assert_int_equal(page[1] >> 32, 3);
    CHECK(cuMemHostUnregister(page), CUDA_SUCCESS);
    free(page);
}

static void stream_writes_refuse_what_is_not_for_them(void **state)
{
    uint64_t *managed, *pinned, *page = aligned_alloc(4096, 4096);
    CUdeviceptr address;

    (void)state;
    OK(cudaMallocManaged((void **)&managed, 64, cudaMemAttachGlobal));
    CHECK(cuStreamWriteValue64(NULL, (CUdeviceptr)managed, 1, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cudaMallocHost((void **)&pinned, 64));
    CHECK(cuStreamWriteValue64(NULL, (CUdeviceptr)pinned, 1, 0), CUDA_SUCCESS);
    CHECK(cuStreamWriteValue64(NULL, (CUdeviceptr)pinned, 1, 2), /* a reserved flag */
          CUDA_ERROR_INVALID_VALUE);
    OK(cudaDeviceSynchronize());
    OK(cudaFree(managed));
    OK(cudaFreeHost(pinned));
    /* A reset takes back what was registered. */
    CHECK(cuMemHostRegister(page, 4096, CU_MEMHOSTREGISTER_DEVICEMAP), CUDA_SUCCESS);
    CHECK(cuMemHostGetDevicePointer(&address, page, 0), CUDA_SUCCESS);
    CHECK(cuStreamWriteValue64(NULL, address, 1, 0), CUDA_SUCCESS);
    OK(cudaDeviceReset());
    OK(cudaFree(NULL));
    CHECK(cuStreamWriteValue64(NULL, address, 2, 0), CUDA_ERROR_INVALID_VALUE);
    free(page);
}

static void pointers_tell_their_range(void **state)
{
    char *memory;
    CUdeviceptr base, start;
    size_t bytes, size;
    unsigned type, managed;
    int ordinal;
    CUpointer_attribute attributes[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
        CU_POINTER_ATTRIBUTE_IS_MANAGED};
    void *values[] = {&type, &ordinal, &start, &size, &managed};

    (void)state;
    OK(cudaSetDevice(2));
    OK(cudaMalloc((void **)&memory, 1000));
    CHECK(cuMemGetAddressRange(&base, &bytes, (CUdeviceptr)memory + 500), CUDA_SUCCESS);
    assert_int_equal(base, (CUdeviceptr)memory);
    assert_int_equal(bytes, 1000);
    CHECK(cuMemGetAddressRange(&base, &bytes, (CUdeviceptr)memory + 1000), CUDA_ERROR_NOT_FOUND);
    CHECK(cuPointerGetAttributes(5, attributes, values, (CUdeviceptr)memory + 999), CUDA_SUCCESS);
    assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
    assert_int_equal(ordinal, 2);
    assert_int_equal(start, (CUdeviceptr)memory);
    assert_int_equal(size, 1000);
    assert_int_equal(managed, 0);
    CHECK(cuPointerGetAttributes(5, attributes, values, (CUdeviceptr)&bytes), CUDA_SUCCESS);
    assert_int_equal(type, 0);
    assert_int_equal(ordinal, -2);
    CHECK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)&bytes),
          CUDA_ERROR_INVALID_VALUE);
}

static void contexts_follow_devices(void **state)
{
    CUcontext primary, current, created, of_stream;
    CUdevice device;
    cudaStream_t stream;
    int runtime_device;

    (void)state;
    CHECK(cuDevicePrimaryCtxRetain(&primary, 1), CUDA_SUCCESS);
    CHECK(cuCtxSetCurrent(primary), CUDA_SUCCESS);
    OK(cudaGetDevice(&runtime_device));
    assert_int_equal(runtime_device, 1);
    OK(cudaStreamCreate(&stream));
    OK(cudaSetDevice(0));
    CHECK(cuStreamGetCtx(stream, &of_stream), CUDA_SUCCESS);
    assert_ptr_equal(of_stream, primary);
    CHECK(cuCtxGetDevice(&device), CUDA_SUCCESS);
    assert_int_equal(device, 0);
    CHECK(cuCtxPushCurrent(primary), CUDA_SUCCESS);
    CHECK(cuCtxGetCurrent(&current), CUDA_SUCCESS);
    assert_ptr_equal(current, primary);
    CHECK(cuCtxPopCurrent(&current), CUDA_SUCCESS);
    assert_ptr_equal(current, primary);
    CHECK(cuCtxGetDevice(&device), CUDA_SUCCESS);
    assert_int_equal(device, 0);
    CHECK(cuCtxCreate(&created, NULL, 0, 2), CUDA_SUCCESS);
    CHECK(cuCtxGetDevice(&device), CUDA_SUCCESS);
    assert_int_equal(device, 2);
    CHECK(cuCtxDestroy(created), CUDA_SUCCESS);
    CHECK(cuCtxDestroy(created), CUDA_ERROR_INVALID_CONTEXT);
    CHECK(cuCtxSetCurrent(NULL), CUDA_SUCCESS);
    CHECK(cuCtxGetDevice(&device), CUDA_ERROR_INVALID_CONTEXT);
    OK(cudaSetDevice(0));
    OK(cudaStreamDestroy(stream));
}

static const char ptx[] = ".version 8.0\n.target sm_80\n.entry nothing() { ret; }\n";

static CUresult launch_nothing(CUfunction function, CUstream stream)
{
    return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
}

/* cuLaunchKernel: a module's function runs in its module's context, a library's kernel in that of
 * the stream. Which context is current matters to the default stream alone. */
static void launches_follow_the_stream(void **state)
{
    CUcontext here, there;
    CUmodule module;
    CUlibrary library;
    CUfunction function;
    CUkernel kernel;
    CUstream of_here, of_there;

    (void)state;
    CHECK(cuDevicePrimaryCtxRetain(&there, 1), CUDA_SUCCESS);
    CHECK(cuCtxSetCurrent(there), CUDA_SUCCESS);
    CHECK(cuStreamCreate(&of_there, 0), CUDA_SUCCESS);
    CHECK(cuDevicePrimaryCtxRetain(&here, 0), CUDA_SUCCESS);
    CHECK(cuCtxSetCurrent(here), CUDA_SUCCESS);
    CHECK(cuStreamCreate(&of_here, 0), CUDA_SUCCESS);
    CHECK(cuModuleLoadData(&module, ptx), CUDA_SUCCESS);
    CHECK(cuModuleGetFunction(&function, module, "nothing"), CUDA_SUCCESS);
    CHECK(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0), CUDA_SUCCESS);
    CHECK(cuLibraryGetKernel(&kernel, library, "nothing"), CUDA_SUCCESS);
    CHECK(launch_nothing((CUfunction)kernel, of_there), CUDA_SUCCESS);
    CHECK(launch_nothing(function, of_there), CUDA_ERROR_INVALID_HANDLE);
    CHECK(cuCtxSetCurrent(there), CUDA_SUCCESS);
    CHECK(launch_nothing(function, of_here), CUDA_SUCCESS);
    CHECK(launch_nothing(function, NULL), CUDA_ERROR_INVALID_HANDLE);
    CHECK(launch_nothing((CUfunction)kernel, NULL), CUDA_SUCCESS);
    CHECK(cuLibraryUnload(library), CUDA_SUCCESS);
    CHECK(cuModuleUnload(module), CUDA_SUCCESS);
    CHECK(cuStreamDestroy(of_there), CUDA_SUCCESS);
    CHECK(cuStreamDestroy(of_here), CUDA_SUCCESS);
}

/* Two contexts of one device are two, as well. */
static void created_contexts_have_their_own_objects(void **state)
{
    CUcontext primary, created, of_stream;
    CUmodule module;
    CUfunction function;
    CUstream stream;
    CUevent event;

    (void)state;
    CHECK(cuDevicePrimaryCtxRetain(&primary, 0), CUDA_SUCCESS);
    CHECK(cuCtxSetCurrent(primary), CUDA_SUCCESS);
    CHECK(cuModuleLoadData(&module, ptx), CUDA_SUCCESS);
    CHECK(cuModuleGetFunction(&function, module, "nothing"), CUDA_SUCCESS);
    CHECK(cuEventCreate(&event, 0), CUDA_SUCCESS);
    CHECK(cuCtxCreate(&created, NULL, 0, 0), CUDA_SUCCESS);
    CHECK(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
    CHECK(cuStreamGetCtx(stream, &of_stream), CUDA_SUCCESS);
    assert_ptr_equal(of_stream, created);
    CHECK(launch_nothing(function, stream), CUDA_ERROR_INVALID_HANDLE);
    CHECK(cuEventRecord(event, stream), CUDA_ERROR_INVALID_HANDLE);
    CHECK(cuEventRecord(event, NULL), CUDA_ERROR_INVALID_HANDLE);
    OK(cudaSetDevice(0)); /* makes the primary context current */
    CHECK(cuCtxGetCurrent(&of_stream), CUDA_SUCCESS);
    assert_ptr_equal(of_stream, primary);
    CHECK(cuEventRecord(event, NULL), CUDA_SUCCESS);
    CHECK(launch_nothing(function, NULL), CUDA_SUCCESS);
    CHECK(cuStreamDestroy(stream), CUDA_SUCCESS);
    CHECK(cuEventDestroy(event), CUDA_SUCCESS);
    CHECK(cuModuleUnload(module), CUDA_SUCCESS);
    CHECK(cuCtxDestroy(created), CUDA_SUCCESS);
}

static void both_apis_share_objects(void **state)
{
    CUdeviceptr memory;
    CUevent event;
    CUstream stream;
    int host = 42, back = 0;
    CUuuid uuid;
    struct cudaDeviceProp properties;

    (void)state;
    CHECK(cuMemAlloc(&memory, 4), CUDA_SUCCESS);
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CHECK(cuEventCreate(&event, 0), CUDA_SUCCESS);
    CHECK(cuMemcpyHtoDAsync(memory, &host, 4, stream), CUDA_SUCCESS);
    OK(cudaEventRecord(event, stream));
    CHECK(cuEventSynchronize(event), CUDA_SUCCESS);
    OK(cudaMemcpy(&back, (void *)memory, 4, cudaMemcpyDeviceToHost));
    assert_int_equal(back, 42);
    CHECK(cuMemsetD32(memory, 0x01020304, 1), CUDA_SUCCESS);
    CHECK(cuMemcpyDtoH(&back, memory, 4), CUDA_SUCCESS);
    assert_int_equal(back, 0x01020304);
    CHECK(cuEventDestroy(event), CUDA_SUCCESS);
    CHECK(cuStreamDestroy(stream), CUDA_SUCCESS);
    OK(cudaFree((void *)memory));
    CHECK(cuDeviceGetUuid(&uuid, 0), CUDA_SUCCESS);
    OK(cudaGetDeviceProperties(&properties, 0));
    assert_memory_equal(&uuid, &properties.uuid, sizeof(uuid));
}

static void functions_are_found_by_name(void **state)
{
    void *by_runtime, *by_driver;
    enum cudaDriverEntryPointQueryResult status;
    CUdriverProcAddressQueryResult driver_status;
    CUresult (*get_version)(int *);
    int version = 0;

    (void)state;
    OK(cudaGetDriverEntryPointByVersion("cuDriverGetVersion", (void **)&get_version, 12000,
                                        cudaEnableDefault, &status));
    assert_int_equal(status, cudaDriverEntryPointSuccess);
    CHECK(get_version(&version), CUDA_SUCCESS);
    assert_true(version >= 13000);
    OK(cudaGetDriverEntryPointByVersion("cuMemAlloc", &by_runtime, 13000, cudaEnableDefault,
                                        &status));
    CHECK(cuGetProcAddress("cuMemAlloc", &by_driver, 13000, 0, &driver_status), CUDA_SUCCESS);
    assert_ptr_equal(by_runtime, by_driver);
    assert_ptr_equal(by_driver, (void *)cuMemAlloc); /* that is cuMemAlloc_v2 */
    OK(cudaGetDriverEntryPointByVersion("cuStreamQuery", &by_runtime, 13000,
                                        cudaEnablePerThreadDefaultStream, &status));
    CHECK(cuGetProcAddress("cuStreamQuery", &by_driver, 13000, 0, &driver_status), CUDA_SUCCESS);
    assert_ptr_not_equal(by_runtime, by_driver);
    CHECK(cuGetProcAddress("cuNoSuchThing", &by_driver, 13000, 0, &driver_status),
          CUDA_ERROR_NOT_FOUND);
    assert_int_equal(driver_status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    OK(cudaGetDriverEntryPointByVersion("cuTexObjectCreate", &by_runtime, 13000, cudaEnableDefault,
                                        &status));
    assert_int_equal(status, cudaDriverEntryPointSymbolNotFound); /* not supported: not given out */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(stream_writes_and_waits_for_values, reset_devices),
        cmocka_unit_test_setup(stream_writes_refuse_what_is_not_for_them, reset_devices),
        cmocka_unit_test_setup(pointers_tell_their_range, reset_devices),
        cmocka_unit_test_setup(contexts_follow_devices, reset_devices),
        cmocka_unit_test_setup(launches_follow_the_stream, reset_devices),
        cmocka_unit_test_setup(created_contexts_have_their_own_objects, reset_devices),
        cmocka_unit_test_setup(both_apis_share_objects, reset_devices),
        cmocka_unit_test_setup(functions_are_found_by_name, reset_devices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
