/* images.h: small device code images for the tests of the emulated machine: a cubin and a fat
 * binary as ptxas and nvcc lay them out, with a kernel of three parameters and no code. */
#ifndef DDPCHECK_TESTS_EMU_IMAGES_H
#define DDPCHECK_TESTS_EMU_IMAGES_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { KERNEL_SYMBOL = 0x10, NAME_ROOM = 64 };
enum { PART_PTX = 1, PART_CUBIN = 2 };

/* .nv.info.KERNEL of kernel(float *, struct of 24 bytes, int), as ptxas 12.8 writes it for sm_80.
 */
static const uint8_t kernel_info[] = {
    0x04, 0x37, 4,    0, 0x80, 0, 0, 0, /* CUDA API version */
    0x01, 0x35, 0,    0,                /* no value */
    0x03, 0x19, 0x24, 0,                /* bytes: a value of 16 bits */
    0x04, 0x17, 12,   0, 0,    0, 0, 0, 2, 0, 0x20, 0, 0x00, 0xf0, 0x11, 0x00, /* 4 bytes at 32 */
    0x04, 0x17, 12,   0, 0,    0, 0, 0, 1, 0, 0x08, 0, 0x00, 0xf0, 0x61, 0x00, /* 24 bytes at 8 */
    0x04, 0x17, 12,   0, 0,    0, 0, 0, 0, 0, 0x00, 0, 0x00, 0xf0, 0x21, 0x00, /* 8 bytes at 0 */
    0x03, 0x1b, 0xff, 0,                                                       /* registers */
};

/* A cubin as small as it can be: two functions, one of them a kernel. */
struct test_cubin {
    Elf64_Ehdr header;
    Elf64_Shdr sections[5];
    Elf64_Sym symbols[3];
    char names[NAME_ROOM], section_names[NAME_ROOM];
    uint8_t info[128];
};

static inline struct test_cubin make_cubin_with(const char *kernel, const uint8_t *info,
                                                size_t bytes)
{
    struct test_cubin cubin = {
        .header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64},
                   .e_machine = EM_CUDA,
                   .e_shoff = offsetof(struct test_cubin, sections),
                   .e_shnum = 5,
                   .e_shstrndx = 3},
        .sections = {{0},
                     {.sh_type = SHT_SYMTAB,
                      .sh_offset = offsetof(struct test_cubin, symbols),
                      .sh_size = sizeof(cubin.symbols),
                      .sh_link = 2},
                     {.sh_type = SHT_STRTAB,
                      .sh_offset = offsetof(struct test_cubin, names),
                      .sh_size = NAME_ROOM},
                     {.sh_type = SHT_STRTAB,
                      .sh_offset = offsetof(struct test_cubin, section_names),
                      .sh_size = NAME_ROOM},
                     {.sh_type = SHT_LOPROC,
                      .sh_name = 1,
                      .sh_offset = offsetof(struct test_cubin, info),
                      .sh_size = bytes}},
        .symbols = {{0},
                    {.st_name = 7,
                     .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                     .st_other = KERNEL_SYMBOL},
                    {.st_name = 1, .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC)}},
        .names = "\0inner",
    };
    snprintf(cubin.names + 7, sizeof(cubin.names) - 7, "%s", kernel);
    snprintf(cubin.section_names + 1, sizeof(cubin.section_names) - 1, ".nv.info.%s", kernel);
    memcpy(cubin.info, info, bytes);
    return cubin;
}

static inline struct test_cubin make_cubin(const char *kernel)
{
    return make_cubin_with(kernel, kernel_info, sizeof(kernel_info));
}

/* The container that nvcc makes, around one part. */
struct test_fatbin {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes;
    uint16_t kind, part_version;
    uint32_t part_header_bytes;
    uint64_t part_bytes;
    uint32_t packed_bytes, options;
    uint16_t minor, major; /* of PTX */
    uint32_t architecture;
    uint64_t name, flags, reserved, unpacked_bytes;
    struct test_cubin cubin;
};

static inline struct test_fatbin make_fatbin(const char *kernel, uint32_t architecture)
{
    return (struct test_fatbin){.magic = 0xba55ed50,
                                .version = 1,
                                .header_bytes = 16,
                                .bytes = sizeof(struct test_fatbin) - 16,
                                .kind = PART_CUBIN,
                                .part_header_bytes = 64,
                                .part_bytes = sizeof(struct test_cubin),
                                .architecture = architecture,
                                .cubin = make_cubin(kernel)};
}

/* What nvcc's host code registers. */
struct test_wrapper {
    uint32_t magic, version;
    const void *fatbin, *more;
};
#define WRAPPER(fatbin)                             \
    {                                               \
        0x466243b1, 1, (const void *)(fatbin), NULL \
    }

#endif
