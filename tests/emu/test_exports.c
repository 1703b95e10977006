/* Every symbol of NVIDIA's libraries, with its version node, is there. The lists in exports/ were
 * read from CUDA 13.0's libcudart, libcuda (its link stub) and libcupti and CUDA 12.9's libcudart.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "support.h"

static void expect_exports(const char *library_name, const char *node)
{
    char path[4096], name[256];
    void *library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
    int missing = 0, count = 0;
    FILE *list;

    assert_non_null(library);
    snprintf(path, sizeof(path), "%s/%s", EXPORTS, library_name);
    list = fopen(path, "r");
    assert_non_null(list);
    while (fscanf(list, "%255s", name) == 1) {
        void *symbol = node ? dlvsym(library, name, node) : dlsym(library, name);

        count++;
        if (symbol)
            continue;
        print_error("%s has no %s%s%s\n", library_name, name, node ? "@@" : "", node ? node : "");
        missing++;
    }
    fclose(list);
    assert_true(count > 190);
    assert_int_equal(missing, 0);
}

static void cudart_13(void **state)
{
    (void)state;
    expect_exports("libcudart.so.13", "libcudart.so.13");
}

static void cudart_12(void **state)
{
    (void)state;
    expect_exports("libcudart.so.12", "libcudart.so.12");
}

static void driver(void **state)
{
    (void)state;
    expect_exports("libcuda.so.1", NULL);
}

static void cupti_13(void **state)
{
    (void)state;
    expect_exports("libcupti.so.13", "libcupti.so.13");
}

static void unsupported_says_so(void **state)
{
    cudaArray_t array;

    (void)state;
    EXPECT(cudaMallocArray(&array, NULL, 1, 1, 0), cudaErrorNotSupported);
    EXPECT(cudaGetLastError(), cudaErrorNotSupported);
}

/* CUDA 12's own layout of cudaDeviceProp: the fields behind the first that differs are in place. */
static void properties_of_12(void **state)
{
    void *library = dlopen("libcudart.so.12", RTLD_NOW | RTLD_LOCAL);
    cudaError_t (*get)(void *, int) =
        dlvsym(library, "cudaGetDeviceProperties_v2", "libcudart.so.12");
    char properties[1032]; /* its size in CUDA 12 */
    int major, minor;

    (void)state;
    assert_non_null(get);
    OK(get(properties, 0));
    memcpy(&major, properties + 360, 4);
    memcpy(&minor, properties + 364, 4);
    assert_string_equal(properties, "ddpcheck emulated GPU");
    assert_int_equal(major, 9);
    assert_int_equal(minor, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cudart_13),
        cmocka_unit_test(cudart_12),
        cmocka_unit_test(driver),
        cmocka_unit_test(cupti_13),
        cmocka_unit_test(unsupported_says_so),
        cmocka_unit_test(properties_of_12),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
