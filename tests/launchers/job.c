/* job.c: a rank of a small job, started by somebody else's launcher. It is reported which variable
 * holds its rank, so that it knows nothing of what the shim finds out by itself.
 *
 * job RANK-VARIABLE LOCAL-RANK-VARIABLE RANKS FOLDER [skip]: with skip the last rank leaves the
 * fourth AllReduce out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

enum { COUNT = 1000, STEPS = 6, SKIPPED = 3 };

#define TRY(call)                                                            \
    do {                                                                     \
        int result_ = (int)(call);                                           \
        if (result_) {                                                       \
            fprintf(stderr, "job.c:%d: %s: %d\n", __LINE__, #call, result_); \
            exit(9);                                                         \
        }                                                                    \
    } while (0)

static int number_of(const char *variable)
{
    const char *text = getenv(variable);
    if (!text) {
        fprintf(stderr, "job: %s is not set\n", variable);
        exit(2);
    }
    return atoi(text);
}

/* Rank 0 leaves the job's unique id in the folder that all ranks see. */
static void agree(ncclUniqueId *id, int rank, const char *folder)
{
    char path[4096], made[4200];
    snprintf(path, sizeof path, "%s/id", folder);
    snprintf(made, sizeof made, "%s.made", path);
    FILE *file;
    if (rank == 0) {
        TRY(ncclGetUniqueId(id));
        file = fopen(made, "w");
        TRY(!file || fwrite(id, sizeof *id, 1, file) != 1 || fclose(file) || rename(made, path));
        return;
    }
    while (!(file = fopen(path, "r")))
        usleep(10000);
    TRY(fread(id, sizeof *id, 1, file) != 1 || fclose(file));
}

int main(int argc, char **argv)
{
    if (argc < 5)
        return 2;
    int rank = number_of(argv[1]), device = number_of(argv[2]), ranks = atoi(argv[3]);
    int skips = argc > 5 && strcmp(argv[5], "skip") == 0 && rank == ranks - 1;
    ncclUniqueId id;
    ncclComm_t comm;
    cudaStream_t stream;
    float *gradients;
    agree(&id, rank, argv[4]);
    TRY(cudaSetDevice(device));
    TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    TRY(cudaMalloc((void **)&gradients, COUNT * sizeof *gradients));
    TRY(cudaMemset(gradients, 0, COUNT * sizeof *gradients));
    TRY(cudaDeviceSynchronize());
    TRY(ncclCommInitRank(&comm, ranks, id, rank));
    for (int step = 0; step < STEPS; step++)
        if (!skips || step != SKIPPED) {
            TRY(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, comm, stream));
            TRY(cudaStreamSynchronize(stream));
        }
    TRY(ncclCommDestroy(comm));
    return 0;
}
