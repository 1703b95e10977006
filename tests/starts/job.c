/* job.c: a rank that ends with "fine". With an argument it has threads with small stacks (threads),
 * forbids itself most system calls and then calls NCCL in new threads (prctl, seccomp: how), or
 * runs a helper (a path). */
#include <cuda_runtime_api.h>
#include <errno.h>
#include <nccl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SMALL = 16384, ROOM = 8192, GIVEN = 65536 };

static ncclComm_t comm;
static void *buffer;

/* Uses half of a small stack, as the thread of a library does. */
static void *use_stack(void *unused)
{
    volatile char room[ROOM];
    (void)unused;
    for (size_t i = 0; i < sizeof room; i += 64)
        room[i] = 1;
    return NULL;
}

static void *call_nccl(void *unused)
{
    (void)unused;
    ncclAllReduce(buffer, buffer, 8, ncclFloat, ncclSum, comm, NULL);
    return NULL;
}

static void run_thread(const char *what, const pthread_attr_t *attributes,
                       void *(*function)(void *))
{
    pthread_t thread;
    int error = pthread_create(&thread, attributes, function, NULL);
    if (error) {
        printf("%s: %s\n", what, strerror(error));
        exit(1);
    }
    pthread_join(thread, NULL);
}

static void run_small_threads(void)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, SMALL);
    run_thread("a small stack", &attributes, use_stack);
    pthread_attr_setstacksize(&attributes, 256 * 1024);
    run_thread("a stack of 256 KB", &attributes, call_nccl);
    void *stack = mmap(NULL, GIVEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack != MAP_FAILED && !pthread_attr_setstack(&attributes, stack, GIVEN))
        run_thread("a stack of its own", &attributes, use_stack);
    pthread_attr_destroy(&attributes);
}

/* What the program needs from here on is allowed; all else ends it. */
static void restrict_calls(int by_syscall)
{
    static const int allowed[] = {
        SYS_read,           SYS_write,           SYS_futex,       SYS_mmap,
        SYS_munmap,         SYS_mprotect,        SYS_brk,         SYS_exit,
        SYS_madvise,        SYS_exit_group,      SYS_clone,       SYS_clone3,
        SYS_rseq,           SYS_close,           SYS_sched_yield, SYS_set_robust_list,
        SYS_rt_sigprocmask, SYS_clock_nanosleep, SYS_nanosleep,   SYS_clock_gettime,
        SYS_newfstatat,     SYS_unlink,          SYS_gettid,      SYS_getpid};
    enum { ALLOWED = sizeof allowed / sizeof *allowed };
    struct sock_filter filter[2 * ALLOWED + 2];
    unsigned count = 0;
    filter[count++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < ALLOWED; i++) {
        filter[count++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], 0, 1);
        filter[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    filter[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog program = {.len = (unsigned short)count, .filter = filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (by_syscall ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)
                   : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        printf("no filter: %s\n", strerror(errno));
}

int main(int argc, char **argv)
{
    int device = 0;
    const char *what = argc > 1 ? argv[1] : "";
    int restricts = !strcmp(what, "prctl") || !strcmp(what, "seccomp");
    if (*what && !restricts && strcmp(what, "threads") != 0 && system(what))
        return 2;
    if (cudaMalloc(&buffer, 64) || ncclCommInitAll(&comm, 1, &device))
        return 3;
    call_nccl(NULL);
    cudaDeviceSynchronize();
    if (restricts) {
        restrict_calls(!strcmp(what, "seccomp"));
        run_thread("a thread", NULL, call_nccl);
        run_thread("another thread", NULL, call_nccl);
        cudaDeviceSynchronize();
        printf("fine\n");
        fflush(stdout);
        syscall(SYS_exit_group, 0);
    }
    if (!strcmp(what, "threads"))
        run_small_threads();
    cudaDeviceSynchronize();
    ncclCommDestroy(comm);
    printf("fine\n");
    return 0;
}
