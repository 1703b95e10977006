/* job_rings.c: programs about the memory of the rings, by name: job_rings NAME. Each prints "ok" at
 * its end. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "lib/trace/ring.h"

#define EXPECT(condition)                                                           \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            exit(9);                                                                \
        }                                                                           \
    } while (0)

static float *memory;
static cudaStream_t stream;
static ncclComm_t comm;

static void begin(void)
{
    ncclUniqueId id;
    memset(&id, 7, sizeof id);
    EXPECT(!ncclCommInitRank(&comm, 2, id, 0));
    EXPECT(!cudaStreamCreate(&stream));
    EXPECT(!cudaMalloc((void **)&memory, 4096));
}

static void call(void)
{
    EXPECT(!ncclAllReduce(memory, memory, 4, ncclFloat32, ncclSum, comm, stream));
    EXPECT(!cudaMemcpyAsync(memory + 64, memory, 16, cudaMemcpyDeviceToDevice, stream));
    EXPECT(!cudaStreamSynchronize(stream));
}

static void *call_once(void *unused)
{
    call();
    return unused;
}

/* A burst of one thread, beside one that makes a few calls. */
static void burst(void)
{
    pthread_t thread;
    begin();
    EXPECT(!pthread_create(&thread, NULL, call_once, NULL));
    EXPECT(!pthread_join(thread, NULL));
    for (int i = 0; i < 5000; i++)
        call();
}

/* kB that are this process's alone. */
static long private_kb(void)
{
    char line[256];
    long kb = -1;
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    while (file && kb < 0 && fgets(line, sizeof line, file))
        if (!strncmp(line, "Private_Dirty:", 14))
            kb = atol(line + 14);
    EXPECT(file && kb >= 0);
    fclose(file);
    return kb;
}

/* What a worker of a loader takes that calls nothing; prints the kB. */
static void worker(void)
{
    int status;
    begin();
    call();
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        printf("%ld kB\n", private_kb());
        fflush(stdout);
        _exit(0);
    }
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
}

/* The ring file of this process. */
static struct ring_file *map_rings(size_t *bytes)
{
    char path[4096], rings[2048] = "", prefix[32];
    struct ring_file *file;
    snprintf(path, sizeof path, "%s/rings", getenv("DDPCHECK_DIR"));
    FILE *named = fopen(path, "r");
    EXPECT(named && fscanf(named, "%2047s", rings) == 1);
    fclose(named);
    DIR *directory = opendir(rings);
    EXPECT(directory);
    snprintf(prefix, sizeof prefix, "%d-", (int)getpid());
    struct dirent *entry;
    while ((entry = readdir(directory)) && strncmp(entry->d_name, prefix, strlen(prefix))) {}
    EXPECT(entry);
    snprintf(path, sizeof path, "%s/%.256s", rings, entry->d_name);
    closedir(directory);
    int fd = open(path, O_RDWR);
    EXPECT(fd >= 0);
    EXPECT(pread(fd, bytes, 4, offsetof(struct ring_file, file_header_bytes)) == 4);
    *bytes = *(uint32_t *)bytes + RING_PAGE; /* with the words of the first segment */
    file = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    EXPECT(file != MAP_FAILED);
    close(fd);
    return file;
}

/* A wild pointer writes into the shared mapping, word by word, while the program makes its calls.
 */
static void scribble(void)
{
    static const uint64_t values[] = {0, UINT64_MAX, UINT64_C(1) << 31, 0x123456789abcdef1};
    size_t bytes;
    pthread_t thread;
    int status;
    begin();
    call();
    uint64_t *word = (uint64_t *)(void *)map_rings(&bytes);
    for (size_t value = 0; value < sizeof values / sizeof *values; value++)
        for (size_t at = 0; at < bytes / sizeof *word; at++) {
            *(volatile uint64_t *)&word[at] = values[value];
            call();
        }
    EXPECT(!pthread_create(&thread, NULL, call_once, NULL));
    EXPECT(!pthread_join(thread, NULL));
    pid_t child = fork();
    if (!child) {
        begin();
        call();
        _exit(0);
    }
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
}

static const struct job {
    const char *name;
    void (*run)(void);
} jobs[] = {{"burst", burst}, {"worker", worker}, {"scribble", scribble}};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < sizeof jobs / sizeof *jobs; i++)
        if (!strcmp(argv[1], jobs[i].name)) {
            jobs[i].run();
            puts("ok");
            return 0;
        }
    fprintf(stderr, "usage: job_rings NAME\n");
    return 2;
}
