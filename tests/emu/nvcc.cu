/* What nvcc compiles <<<>>> to, on the emulated machine: registration, launch, a grid, a variable.
 */
#include <cstdio>
#include <cuda_runtime.h>

__device__ int variable[4];

__global__ void add_scaled(float factor, const float *x, float *y, int count)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

    if (i < count)
        y[i] += factor * x[i];
}

static bool check(const char *what, bool good)
{
    if (!good)
        fprintf(stderr, "%s: expected something else (last error: %s)\n", what,
                cudaGetErrorName(cudaPeekAtLastError()));
    return good;
}

int main()
{
    enum { COUNT = 1000 };
    float host[COUNT], *x, *y;
    int numbers[4] = {1, 2, 3, 4}, back[4] = {0};
    bool good = true;

    for (int i = 0; i < COUNT; i++)
        host[i] = (float)i;
    good &= check("cudaMalloc", !cudaMalloc(&x, sizeof(host)) && !cudaMalloc(&y, sizeof(host)));
    good &= check("cudaMemcpy", !cudaMemcpy(x, host, sizeof(host), cudaMemcpyHostToDevice));
    cudaMemset(y, 0, sizeof(host));
    for (int i = 0; i < 3; i++)
        add_scaled<<<4, 256>>>(2, x, y, COUNT);
    good &= check("launch", cudaGetLastError() == cudaSuccess);
    cudaMemcpy(host, y, sizeof(host), cudaMemcpyDeviceToHost);
    good &= check("sum", host[10] == 60 && host[999] == 5994);
    good &= check("to symbol", !cudaMemcpyToSymbol(variable, numbers, sizeof(numbers)));
    good &=
        check("from symbol", !cudaMemcpyFromSymbol(back, variable, sizeof(back)) && back[3] == 4);
    add_scaled<<<1, 1>>>(2, host, y, 1);
    good &= check("illegal address", cudaDeviceSynchronize() == cudaErrorIllegalAddress);
    return !good;
}
