/* job_wait.c: a rank that waits for all its children, those that it has adopted as well, and goes
 * on then. job_wait subreaper|first wait|poll|poll-id: it adopts because it asked to, or as the
 * first process of its PID namespace; it waits, or polls by waitpid or waitid. Ends with status 3.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

enum { STATUS = 3, STATUS_OF_FAILURE = 9 };

static void expect(int condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "not so: %s\n", what);
    exit(STATUS_OF_FAILURE);
}

static void wait_for_all(const char *how)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    siginfo_t info;
    if (!strcmp(how, "wait"))
        while (wait(NULL) > 0) {}
    else if (!strcmp(how, "poll"))
        for (; waitpid(-1, NULL, WNOHANG) >= 0; nanosleep(&pause, NULL)) {}
    else
        for (; !waitid(P_ALL, 0, &info, WEXITED | WNOHANG); nanosleep(&pause, NULL)) {}
    expect(errno == ECHILD, "it has no child");
}

int main(int argc, char **argv)
{
    ncclUniqueId id;
    ncclComm_t comm;
    cudaStream_t stream;
    float *memory;
    int is_subreaper = argc == 3 && !strcmp(argv[1], "subreaper");
    expect(!is_subreaper || !prctl(PR_SET_CHILD_SUBREAPER, 1), "prctl");
    expect(argc == 3, "two arguments");
    expect(is_subreaper || getpid() == 1, "it is the first process");
    memset(&id, 7, sizeof id);
    expect(!ncclCommInitRank(&comm, 1, id, 0), "ncclCommInitRank");
    expect(!cudaStreamCreate(&stream) && !cudaMalloc((void **)&memory, 4096), "CUDA");
    expect(!ncclAllReduce(memory, memory, 1, ncclFloat32, ncclSum, comm, stream), "AllReduce");
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    expect(child > 0, "fork");
    wait_for_all(argv[2]);
    expect(!ncclAllReduce(memory, memory, 2, ncclFloat32, ncclSum, comm, stream), "AllReduce");
    return STATUS;
}
