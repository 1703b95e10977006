/* Runs every function of kernels/kernels.h and compares with the references in double. Built twice:
 * as test_kernels_device with CUDA's runtime (a GPU's, or emu's by LD_LIBRARY_PATH), and as
 * test_kernels_twins, where the launch calls the C twin directly (direct_launch.c). An argument is
 * the only case to run. Exit 77: there is no device. */
#include "tests/kernels/cases.h"
#include "tests/kernels/values.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    void (*run)(void);
    bool shifts; /* also with arrays that begin beside 16-byte boundaries */
} cases[] = {
    {"conv2d", case_conv2d, false},
    {"transposed conv2d", case_transposed, false},
    {"fused activations", case_activated, false},
    {"tensor cores", case_math, false},
    {"linear", case_linear, true},
    {"batch norm", case_batch_norm, true},
    {"activations", case_activations, true},
    {"losses", case_losses, true},
    {"optimisers", case_optimisers, true},
    {"elementwise", case_elementwise, true},
    {"casts", case_casts, false},
    {"payload hashes", case_payload, false},
    {"several streams at once", case_streams, false},
    {"refused sizes", case_refused, false},
};

int main(int argc, char **argv)
{
    int devices = 0;
    const cudaError_t status = cudaGetDeviceCount(&devices);

    if (status != cudaSuccess || devices == 0) {
        printf("skipped: no GPU here, and no command installs one: %s\n",
               status ? cudaGetErrorString(status) : "none found");
        return 77;
    }
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const unsigned before = failures();
        if (argc > 1 && strcmp(argv[1], cases[i].name) != 0)
            continue;
        for (int shift = 0; shift <= cases[i].shifts; shift++) {
            values_shift(shift);
            cases[i].run();
            values_free_all();
        }
        values_shift(0);
        printf("%-26s %s\n", cases[i].name, failures() == before ? "ok" : "FAILED");
    }
    MUST(cudaStreamDestroy(stream));
    printf("%u comparisons with the references, %u failures\n", comparisons(), failures());
    return failures() != 0 || comparisons() == 0;
}
