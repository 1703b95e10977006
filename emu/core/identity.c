/* identity.c: the UUIDs and PCI addresses of the virtual devices. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emu/core/device.h"

/* Splitmix64 (Steele, Lea & Flood 2014): spreads a counter over all bits. */
static uint64_t spread_bits(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Ranks that NCCL takes for another host's have GPUs of their own: by NCCL_HOSTID, or the host
 * name, which a UTS namespace has of its own. */
static uint64_t host_name_number(void)
{
    char name[256] = "";
    const char *id = getenv("NCCL_HOSTID");
    uint64_t number = 0;

    gethostname(name, sizeof(name) - 1);
    for (const char *c = id && *id ? id : name; *c; c++)
        number = spread_bits(number ^ (unsigned char)*c);
    return number;
}

/* A number that all processes on this machine agree on, and other machines do not. */
static uint64_t machine_number(void)
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    uint64_t number = 0;
    int c;

    if (!file)
        return 0;
    while ((c = fgetc(file)) != EOF)
        number = spread_bits(number ^ (uint64_t)c);
    fclose(file);
    return number;
}

void emu_device_uuid(const struct emu_device *device, unsigned char uuid[16])
{
    uint64_t half[2];

    half[0] = spread_bits((machine_number() ^ host_name_number()) + (uint64_t)device->physical);
    half[1] = spread_bits(half[0] + (uint64_t)device->physical);
    memcpy(uuid, half, sizeof(half));
}

int emu_device_bus(const struct emu_device *device)
{
    return device->physical + 1; /* bus 0 is the root complex's */
}

void emu_device_bus_id(const struct emu_device *device, char *text, size_t bytes)
{
    snprintf(text, bytes, "0000:%02X:00.0", emu_device_bus(device));
}
