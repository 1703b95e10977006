/* asker DIRECTORY COUNT PAUSE_MS ROUNDS: asks every process of a rings directory up to COUNT times
 * where its threads stand, as the collector does when a job hangs, and waits for each answer. The
 * file ROUNDS has how many times it has done so. Prints "N answered, M us each". Exit status 1: one
 * did not answer. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/trace/ring.h"

enum { FILES_MAX = 64, PATIENCE_MS = 10000 };

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int map_files(const char *folder, struct ring_file **files)
{
    DIR *directory = opendir(folder);
    int count = 0;
    for (struct dirent *entry; directory && count < FILES_MAX && (entry = readdir(directory));) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        int fd = strstr(entry->d_name, RING_SUFFIX) ? open(path, O_RDWR) : -1;
        if (fd < 0)
            continue;
        void *file = mmap(NULL, sizeof **files, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
        if (file != MAP_FAILED)
            files[count++] = file;
    }
    if (directory)
        closedir(directory);
    return count;
}

static int ask(struct ring_file *file)
{
    uint32_t wanted = atomic_fetch_add(&file->stacks_wanted, 1) + 1;
    syscall(SYS_futex, &file->stacks_wanted, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    for (int i = 0; i < 10 * PATIENCE_MS; i++) {
        if (atomic_load(&file->stacks_reported) == wanted)
            return 1;
        if (atomic_load(&file->closed))
            return 0;
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    fprintf(stderr, "process %d did not answer\n", file->process.pid);
    exit(1);
}

static _Atomic uint32_t *map_rounds(const char *path)
{
    int fd = open(path, O_RDWR);
    void *rounds = mmap(NULL, sizeof(uint32_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || rounds == MAP_FAILED)
        exit(2);
    close(fd);
    return rounds;
}

int main(int argc, char **argv)
{
    struct ring_file *files[FILES_MAX];
    int files_count = argc == 5 ? map_files(argv[1], files) : 0, answered = 0, now = 1;
    double busy = 0;
    _Atomic uint32_t *rounds = files_count ? map_rounds(argv[4]) : NULL;
    for (int i = 0; files_count && now && i < atoi(argv[2]); i++) {
        double begin = seconds();
        now = 0;
        for (int at = 0; at < files_count; at++)
            now += ask(files[at]);
        answered += now;
        atomic_fetch_add(rounds, 1);
        busy += seconds() - begin;
        nanosleep(&(struct timespec){.tv_nsec = atoi(argv[3]) * 1000000l}, NULL);
    }
    printf("%d answered, %.0f us each\n", answered, busy * 1e6 / (answered ? answered : 1));
    return answered == 0;
}
