/* words.c: puts what the GPU writes into shared memory. Drivers from 550.90 on pin memory with
 * FOLL_LONGTERM, which Linux from 6.5 on refuses for mappings of files on a disk. */
#include "interpose/ring/words.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "interpose/ring/files.h"
#include "interpose/shim/shim.h"
#include "lib/trace/rings_directory.h"

/* NCCL and others need the same memory: at most this part of what is free. */
enum { WORDS_PART = 4 };

static bool has_shared_memory_room(uint64_t bytes)
{
    struct statfs system;
    return statfs(RING_WORDS_DIRECTORY, &system) == 0 &&
           (uint64_t)system.f_bavail * (uint64_t)system.f_bsize / WORDS_PART >= bytes;
}

static bool map_over_slots(struct ring_file *file, int fd, uint64_t bytes)
{
    return fchmod(fd, 0600) == 0 && files_reserve(fd, 0, bytes) == 0 &&
           mmap(file->slot, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) !=
               MAP_FAILED;
}

void words_place(struct ring_file *file)
{
    uint64_t bytes = ring_words_bytes(file->hash_entries);
    char name[sizeof file->words], place[sizeof RING_WORDS_DIRECTORY + sizeof name];
    uint64_t number;
    if (!rings_random(&number))
        return;
    snprintf(name, sizeof name, "ddpcheck-%u-%016llx.words", (unsigned)geteuid(),
             (unsigned long long)number);
    snprintf(place, sizeof place, RING_WORDS_DIRECTORY "%s", name);
    if (!has_shared_memory_room(bytes))
        return;
    int fd = open(place, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return;
    if (map_over_slots(file, fd, bytes))
        memcpy(file->words, name, sizeof name);
    else
        unlink(place);
    close(fd);
}
