/* image.c: reads fat binaries, and finds out what a device code image is and what it fits. */
#include "emu/core/image.h"

#include <driver_types.h>
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/core/attributes.h"
#include "emu/core/image_parts.h"

enum { PART_PTX = 1, PART_CUBIN = 2 };
enum { PART_LZ4 = 0x2000, PART_ZSTD = 0x8000 };

#define WRAPPER_MAGIC UINT32_C(0x466243b1)
#define FATBIN_MAGIC  UINT32_C(0xba55ed50)

struct wrapper {
    uint32_t magic, version;
    const void *fatbin;
    const void *more;
};

struct fatbin {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes; /* behind the header */
};

struct part {
    uint16_t kind, version;
    uint32_t header_bytes;
    uint64_t bytes;
    uint32_t packed_bytes, options;
    uint16_t minor, major; /* of PTX: its version */
    uint32_t architecture; /* 90: compute capability 9.0 */
    uint32_t name, name_bytes;
    uint64_t flags;
    uint64_t reserved, unpacked_bytes;
};

static uint32_t magic_of(const void *image)
{
    uint32_t magic;

    memcpy(&magic, image, sizeof(magic));
    return magic;
}

/* What is inside of the wrapper that nvcc's host code registers. */
static const void *unwrap(const void *image)
{
    return magic_of(image) == WRAPPER_MAGIC ? ((const struct wrapper *)image)->fatbin : image;
}

const void *emu_image_registered(const void *wrapper)
{
    const void *image = wrapper ? unwrap(wrapper) : NULL;

    return image && magic_of(image) == FATBIN_MAGIC ? image : NULL;
}

/* The part behind `part`, or the first for NULL; NULL behind the last, or if the next has no room.
 */
static const struct part *next_part(const struct fatbin *fatbin, const struct part *part)
{
    const char *at = (const char *)fatbin + fatbin->header_bytes, *end = at + fatbin->bytes;

    if (part)
        at = (const char *)part + part->header_bytes + part->bytes;
    part = (const struct part *)at;
    if ((size_t)(end - at) < sizeof(*part) || part->header_bytes + part->bytes > (size_t)(end - at))
        return NULL;
    return part;
}

void image_visit_kernel(struct image_visit *visit, const struct emu_image_kernel *kernel)
{
    visit->stopped = visit->stopped || !visit->each(visit->arg, kernel);
}

/* Whether text of a PTX version can be compiled by the driver ("PTX ISA", Release Notes): CUDA 13.0
 * takes up to 9.0, 12.9 up to 8.8, 12.8 up to 8.7. */
static bool is_ptx_too_new(unsigned major, unsigned minor)
{
    int driver = emu_driver_version();
    unsigned newest = driver >= 13000 ? 90 + (unsigned)(driver - 13000) / 10
                                      : 80 + (unsigned)(driver % 1000) / 10 - (driver >= 12060);

    return major * 10 + minor > newest;
}

/* Machine code runs on later minor versions of its architecture (CUDA programming guide, "Binary
 * Compatibility"). */
static bool runs_on(unsigned code, unsigned architecture)
{
    return code <= architecture && code / 10 == architecture / 10;
}

/* Error 222 if there is nothing but text that is too new; error 209 if there is nothing for this
 * device. PTX can be compiled for all later architectures ("PTX Compatibility"). */
static int find_misfit(const struct fatbin *fatbin, unsigned architecture)
{
    int error = cudaErrorNoKernelImageForDevice;

    for (const struct part *part = next_part(fatbin, NULL); part; part = next_part(fatbin, part)) {
        bool older = part->architecture <= architecture;

        if (part->kind == PART_CUBIN && runs_on(part->architecture, architecture))
            return 0;
        if (part->kind == PART_PTX && older && !is_ptx_too_new(part->major, part->minor))
            return 0;
        if (part->kind == PART_PTX && older)
            error = cudaErrorUnsupportedPtxVersion;
    }
    return error;
}

static int find_text_misfit(const char *text)
{
    unsigned major, minor;
    const char *version = strstr(text, ".version");

    return version && sscanf(version, ".version %u.%u", &major, &minor) == 2 &&
                   is_ptx_too_new(major, minor)
               ? cudaErrorUnsupportedPtxVersion
               : 0;
}

int emu_image_misfit(const void *image, unsigned architecture)
{
    unsigned code;

    image = unwrap(image);
    if (magic_of(image) == FATBIN_MAGIC)
        return find_misfit(image, architecture);
    if (memcmp(image, ELFMAG, SELFMAG))
        return find_text_misfit(image);
    code = image_cubin_architecture(image);
    return !code || runs_on(code, architecture) ? 0 : cudaErrorNoKernelImageForDevice;
}

void emu_image_architectures(const void *image, void (*each)(void *arg, unsigned architecture),
                             void *arg)
{
    image = unwrap(image);
    if (magic_of(image) != FATBIN_MAGIC)
        return;
    for (const struct part *part = next_part(image, NULL); part; part = next_part(image, part))
        if (part->kind == PART_CUBIN)
            each(arg, part->architecture);
}

static bool read_part(struct image_visit *to, int kind, const char *inside)
{
    if (kind == PART_CUBIN)
        return image_read_cubin(to, inside);
    return kind == PART_PTX && image_read_ptx(to, inside);
}

/* A part that LZ4 packed, or zstd, as CUDA 13 does. */
static bool read_packed_part(struct image_visit *to, const struct part *part)
{
    enum { BYTES_MAX = 1 << 30 };
    bool sound = part->packed_bytes <= part->bytes && part->unpacked_bytes &&
                 part->unpacked_bytes <= BYTES_MAX;
    bool (*unpack)(const void *packed, size_t bytes, void *to, size_t room) =
        part->flags & PART_ZSTD ? image_unpack_zstd : image_unpack_lz4;
    char *inside = sound ? calloc(1, part->unpacked_bytes + 1) : NULL; /* NUL behind text */
    bool read = inside &&
                unpack((const char *)part + part->header_bytes, part->packed_bytes, inside,
                       part->unpacked_bytes) &&
                read_part(to, part->kind, inside);

    free(inside);
    to->packed = to->packed || !read;
    return true;
}

static bool read_fatbin(struct image_visit *to, const struct fatbin *fatbin)
{
    const struct part *part = next_part(fatbin, NULL);
    bool read = false;

    for (; part && !to->stopped; part = next_part(fatbin, part)) {
        if (part->flags & (PART_LZ4 | PART_ZSTD))
            read = read_packed_part(to, part) || read;
        else
            read = read_part(to, part->kind, (const char *)part + part->header_bytes) || read;
    }
    return read;
}

enum emu_image emu_image_kernels(const void *image,
                                 bool (*each)(void *arg, const struct emu_image_kernel *kernel),
                                 void *arg)
{
    struct image_visit to = {.each = each, .arg = arg};
    bool read;

    image = unwrap(image);
    if (magic_of(image) == FATBIN_MAGIC)
        read = read_fatbin(&to, image);
    else if (!memcmp(image, ELFMAG, SELFMAG))
        read = image_read_cubin(&to, image);
    else
        read = image_read_ptx(&to, image);
    if (!read)
        return EMU_IMAGE_NONE;
    return to.packed ? EMU_IMAGE_PACKED : EMU_IMAGE_LISTED;
}
