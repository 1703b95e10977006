/* noise.c: draws the input vectors of a generator. */
#include "trainer/noise.h"

#include "trainer/check.h"

void noise_open(struct noise *noise, uint64_t seed, int latent, int room)
{
    *noise = (struct noise){.seed = seed, .latent = latent, .room = room};
    CHECK_CUDA(
        cudaMallocHost((void **)&noise->host, (size_t)room * (size_t)latent * sizeof *noise->host));
}

void noise_close(struct noise *noise)
{
    CHECK_CUDA(cudaFreeHost(noise->host));
}

struct tensor *noise_draw(struct noise *noise, struct device *device, enum random_stream stream,
                          int n, uint64_t first, uint64_t stride)
{
    int latent = noise->latent;
    if (n > noise->room)
        fatal("noise for %d images was asked for, with room for %d", n, noise->room);
    struct tensor *vectors = tensor_new_on_tape(device, shape_4d(n, latent, 1, 1));
    for (int i = 0; i < n; i++)
        for (int k = 0; k < latent; k++)
            noise->host[i * latent + k] =
                random_normal(noise->seed, stream,
                              (first + (uint64_t)i * stride) * (uint64_t)latent + (uint64_t)k);
    CHECK_CUDA(cudaMemcpyAsync(tensor_data(vectors), noise->host,
                               tensor_count(vectors) * sizeof(float), cudaMemcpyHostToDevice,
                               device->stream));
    return vectors;
}
