/* device.h: the virtual devices: which there are, their sticky error, who may touch whose memory.
 */
#ifndef DDPCHECK_EMU_DEVICE_H
#define DDPCHECK_EMU_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct emu_stream;
struct emu_pool;

enum { EMU_MAX_DEVICES = 256 };

struct emu_device {
    int index;                  /* as the process counts */
    int physical;               /* on the machine, after CUDA_VISIBLE_DEVICES */
    atomic_int error;           /* sticky: a cudaError_t */
    atomic_bool active;         /* its primary context exists */
    atomic_uint_fast64_t peers; /* bit d: work here may touch memory of device d */
    unsigned flags;             /* cudaSetDeviceFlags */
    size_t memory_limit;
    atomic_size_t memory_used;
    pthread_mutex_t streams_lock; /* guards `streams` */
    struct emu_stream *streams;   /* all but the legacy one */
    struct emu_stream *_Atomic legacy;
    atomic_int captures; /* blocking streams of this device that are being captured */
    struct emu_pool *default_pool;
    struct emu_pool *_Atomic pool; /* what cudaMallocAsync takes from */
};

/* NULL if there is no such device (or no memory to set the machine up). */
struct emu_device *emu_device_get(int index);
struct emu_device *emu_device_here(void);
/* Makes the error sticky if there is none yet, and wakes the threads that wait for the device. */
void emu_device_fail(int device, int error);
/* cudaDeviceReset: forgets the error, frees memory, lets go of streams. */
int emu_device_reset(struct emu_device *device);
/* What the thread has made current: false until it chose a device or used one. */
bool emu_device_chosen(void);
/* -1: as if the thread had never chosen. */
void emu_device_unset(void);

/* The identity of the thread's current context: one that the program created, or the device itself
 * for its primary one. */
const void *emu_context_current(void);
/* The one of the program, or NULL; emu_device_set makes the primary one current again. */
const void *emu_context_created(void);
void emu_context_set(const void *context);

/* identity.c: the same for every process of the machine. */
void emu_device_uuid(const struct emu_device *device, unsigned char uuid[16]);
/* Bus of the device; domain and function are 0. */
int emu_device_bus(const struct emu_device *device);
void emu_device_bus_id(const struct emu_device *device, char *text, size_t bytes);

#endif
