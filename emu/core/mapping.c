/* mapping.c: reserved addresses, device memory without addresses, and mappings.
 *
 * All of a process's such memory is one sparse memory file, so that memory keeps its bytes while it
 * is mapped nowhere, and can be mapped twice. A mapping is a range of the table in memory.c. */
#include "emu/core/mapping.h"

#include <driver_types.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emu/core.h"
#include "emu/core/device.h"
#include "emu/core/handles.h"
#include "emu/core/memory.h"
#include "emu/core/stream.h"

struct emu_physical {
    int device;
    size_t bytes;
    off_t place; /* in the file */
    int import;  /* another process's file, and 1; 0: it is in our own */
    int users;   /* the program's handles, and mappings */
    int handles;
};

struct reservation {
    struct reservation *next;
    uintptr_t base;
    size_t bytes;
};

/* Never held while the table of ranges is asked for anything. */
static pthread_mutex_t mapping_lock = PTHREAD_MUTEX_INITIALIZER;
static struct reservation *reservations;
static int memory_file; /* and 1; 0: none yet */
static off_t file_end;

static bool is_granular(size_t bytes)
{
    return bytes && !(bytes % EMU_MAPPING_GRANULE);
}

/* With the lock held: where the one that holds all of this is linked; NULL: none does. */
static struct reservation **reservation_link(uintptr_t address, size_t bytes)
{
    for (struct reservation **link = &reservations; *link; link = &(*link)->next)
        if (address >= (*link)->base && address - (*link)->base < (*link)->bytes)
            return bytes <= (*link)->bytes - (address - (*link)->base) ? link : NULL;
    return NULL;
}

bool emu_mapping_reserves(uintptr_t address)
{
    pthread_mutex_lock(&mapping_lock);
    bool found = reservation_link(address, 1) != NULL;
    pthread_mutex_unlock(&mapping_lock);
    return found;
}

/* Pages that nobody can touch, at a multiple of the granule. */
static uintptr_t reserve_addresses(size_t bytes, size_t alignment, uintptr_t wanted)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *base = MAP_FAILED;

    if (wanted && !(wanted % alignment))
        base = mmap((void *)wanted, bytes, PROT_NONE, flags | MAP_FIXED_NOREPLACE, -1, 0);
    if (base != MAP_FAILED)
        return (uintptr_t)base;
    base = mmap(NULL, bytes + alignment, PROT_NONE, flags, -1, 0);
    if (base == MAP_FAILED)
        return 0;
    uintptr_t from = (uintptr_t)base, first = (from + alignment - 1) / alignment * alignment;
    if (first > from)
        munmap(base, first - from);
    if (first < from + alignment)
        munmap((void *)(first + bytes), from + alignment - first);
    return first;
}

int emu_mapping_reserve(size_t bytes, size_t alignment, uintptr_t wanted, uintptr_t *base)
{
    struct reservation *reservation;

    if (!is_granular(bytes) || (alignment & (alignment - 1)))
        return cudaErrorInvalidValue;
    if (alignment < EMU_MAPPING_GRANULE)
        alignment = EMU_MAPPING_GRANULE;
    reservation = malloc(sizeof(*reservation));
    *base = reservation ? reserve_addresses(bytes, alignment, wanted) : 0;
    if (!*base) {
        free(reservation);
        return cudaErrorMemoryAllocation;
    }
    pthread_mutex_lock(&mapping_lock);
    *reservation = (struct reservation){.next = reservations, .base = *base, .bytes = bytes};
    reservations = reservation;
    pthread_mutex_unlock(&mapping_lock);
    return 0;
}

int emu_mapping_unreserve(uintptr_t base, size_t bytes)
{
    struct reservation *found = NULL, **link;

    if (emu_memory_maps(base, bytes))
        return cudaErrorInvalidValue;
    pthread_mutex_lock(&mapping_lock);
    link = reservation_link(base, bytes);
    if (link && (*link)->base == base && (*link)->bytes == bytes) {
        found = *link;
        *link = found->next;
    }
    pthread_mutex_unlock(&mapping_lock);
    if (!found)
        return cudaErrorInvalidValue;
    munmap((void *)base, bytes);
    free(found);
    return 0;
}

/* With the lock held: the file, grown by so much; -1: there is no memory. */
static int grow_file(size_t bytes)
{
    if (!memory_file)
        memory_file = memfd_create("ddpcheck-emu-mapped", MFD_CLOEXEC) + 1;
    if (!memory_file || ftruncate(memory_file - 1, file_end + (off_t)bytes))
        return -1;
    file_end += (off_t)bytes;
    return memory_file - 1;
}

int emu_physical_new(int device, size_t bytes, struct emu_physical **made)
{
    struct emu_physical *physical = NULL;
    int error = cudaErrorMemoryAllocation;

    if (!is_granular(bytes))
        return cudaErrorInvalidValue;
    if (!emu_memory_charge(device, bytes))
        return error;
    physical = malloc(sizeof(*physical));
    pthread_mutex_lock(&mapping_lock);
    if (physical && grow_file(bytes) >= 0) {
        *physical = (struct emu_physical){.device = device,
                                          .bytes = bytes,
                                          .place = file_end - (off_t)bytes,
                                          .users = 1,
                                          .handles = 1};
        error = 0;
    }
    pthread_mutex_unlock(&mapping_lock);
    if (!error)
        error = emu_handles_add(physical, HANDLE_PHYSICAL);
    if (error) {
        emu_memory_refund(device, bytes);
        free(physical);
        return error;
    }
    *made = physical;
    return 0;
}

/* With the lock held: gives the pages back. Bytes that stay would be another allocation's if the
 * place were given out again, which it is not: what is lost then is the machine's memory alone. */
static void drop_pages(const struct emu_physical *physical)
{
    int failed;

    do
        failed = fallocate(memory_file - 1, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                           physical->place, (off_t)physical->bytes);
    while (failed && errno == EINTR);
    if (failed)
        fprintf(stderr, "ddpcheck emu: can't give back %zu bytes of released memory: %s\n",
                physical->bytes, strerror(errno));
}

/* A handle or a mapping less; the memory goes with the last. */
static void physical_drop(struct emu_physical *physical)
{
    pthread_mutex_lock(&mapping_lock);
    bool is_last = !--physical->users;
    if (is_last && !physical->import)
        drop_pages(physical);
    pthread_mutex_unlock(&mapping_lock);
    if (!is_last)
        return;
    if (physical->import)
        close(physical->import - 1);
    else
        emu_memory_refund(physical->device, physical->bytes);
    free(physical);
}

/* False: it is none, or was released. */
static bool physical_use(struct emu_physical *physical, int handles)
{
    pthread_mutex_lock(&mapping_lock);
    bool known = emu_handles_get(physical, HANDLE_PHYSICAL) != NULL;
    if (known) {
        physical->users++;
        physical->handles += handles;
    }
    pthread_mutex_unlock(&mapping_lock);
    return known;
}

int emu_physical_release(struct emu_physical *physical)
{
    pthread_mutex_lock(&mapping_lock);
    bool known = emu_handles_get(physical, HANDLE_PHYSICAL) != NULL;
    if (known && !--physical->handles)
        emu_handles_remove(physical, HANDLE_PHYSICAL);
    pthread_mutex_unlock(&mapping_lock);
    if (!known)
        return cudaErrorInvalidValue;
    physical_drop(physical);
    return 0;
}

int emu_physical_retain(const void *pointer, struct emu_physical **physical)
{
    struct emu_range range;

    if (!emu_memory_look_up(pointer, &range, NULL) || !range.physical)
        return cudaErrorInvalidValue;
    pthread_mutex_lock(&mapping_lock);
    bool listed = range.physical->handles++ > 0;
    range.physical->users++;
    pthread_mutex_unlock(&mapping_lock);
    *physical = range.physical;
    return listed ? 0 : emu_handles_add(range.physical, HANDLE_PHYSICAL);
}

int emu_physical_device(const struct emu_physical *physical)
{
    return emu_handles_get(physical, HANDLE_PHYSICAL) ? physical->device : -1;
}

static int file_of(const struct emu_physical *physical)
{
    return (physical->import ? physical->import : memory_file) - 1;
}

/* The place is the position in the file that is handed out, and below the granule are the device
 * and how many granules it has. */
enum { DEVICE_BITS = 8, COUNT_BITS = 13 };

int emu_physical_export(const struct emu_physical *physical, int *file)
{
    char path[64];
    int device = emu_physical_device(physical);

    if (device < 0)
        return cudaErrorInvalidValue;
    size_t count = physical->bytes / EMU_MAPPING_GRANULE;
    if (count >> COUNT_BITS)
        return cudaErrorNotSupported;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file_of(physical));
    *file = open(path, O_RDWR | O_CLOEXEC);
    if (*file < 0)
        return cudaErrorOperatingSystem;
    const off_t position = physical->place |
                           (off_t)(emu_device_get(device)->physical & ((1 << DEVICE_BITS) - 1)) |
                           (off_t)count << DEVICE_BITS;
    if (lseek(*file, position, SEEK_SET) == position)
        return 0;
    close(*file);
    *file = -1;
    return cudaErrorOperatingSystem;
}

/* The process's own name for the device; the current one where it does not see it. */
static int device_seen(int physical)
{
    for (int i = 0; i < emu_device_count(); i++)
        if (emu_device_get(i)->physical == physical)
            return i;
    return emu_device_current();
}

int emu_physical_import(int file, struct emu_physical **made)
{
    off_t at = lseek(file, 0, SEEK_CUR);
    size_t count = at < 0 ? 0 : (size_t)at % EMU_MAPPING_GRANULE >> DEVICE_BITS;
    struct emu_physical *physical = count ? malloc(sizeof(*physical)) : NULL;
    int own = physical ? fcntl(file, F_DUPFD_CLOEXEC, 0) : -1;

    if (own < 0 || emu_handles_add(physical, HANDLE_PHYSICAL)) {
        if (own >= 0)
            close(own);
        free(physical);
        return count ? cudaErrorMemoryAllocation : cudaErrorInvalidValue;
    }
    *physical = (struct emu_physical){
        .device = device_seen((int)(at & ((1 << DEVICE_BITS) - 1))),
        .bytes = count * EMU_MAPPING_GRANULE,
        .place = at - at % EMU_MAPPING_GRANULE,
        .import = own + 1,
        .users = 1,
        .handles = 1,
    };
    *made = physical;
    return 0;
}

int emu_mapping_map(uintptr_t base, size_t bytes, size_t offset, struct emu_physical *physical)
{
    pthread_mutex_lock(&mapping_lock);
    bool reserved = reservation_link(base, bytes) != NULL;
    pthread_mutex_unlock(&mapping_lock);
    if (!reserved || !is_granular(bytes) || base % EMU_MAPPING_GRANULE ||
        offset % EMU_MAPPING_GRANULE || !physical_use(physical, 0))
        return cudaErrorInvalidValue;
    const struct emu_range model = {.base = base,
                                    .bytes = bytes,
                                    .mapped = bytes,
                                    .device = physical->device,
                                    .kind = EMU_MEMORY_DEVICE,
                                    .physical = physical};
    int error = offset > physical->bytes || bytes > physical->bytes - offset
                    ? cudaErrorInvalidValue
                    : emu_memory_map(&model);
    if (error) {
        physical_drop(physical);
        return error;
    }
    /* Readable by the host, as all device memory of the machine: its work runs there. */
    if (mmap((void *)base, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_of(physical),
             physical->place + (off_t)offset) == MAP_FAILED) {
        emu_memory_unmap(base, bytes);
        return cudaErrorMemoryAllocation;
    }
    return 0;
}

int emu_mapping_unmap(uintptr_t base, size_t bytes)
{
    struct emu_range range;
    int error;

    if (!bytes || !emu_memory_look_up((void *)base, &range, NULL) || !range.physical)
        return cudaErrorInvalidValue;
    error = emu_stream_synchronize_device(emu_device_get(range.device));
    return error ? error : emu_memory_unmap(base, bytes);
}

void emu_mapping_close(const struct emu_range *range)
{
    /* The addresses stay reserved. */
    mmap((void *)range->base, range->mapped, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    physical_drop(range->physical);
}
