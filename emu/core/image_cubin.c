/* image_cubin.c: finds the kernels of a cubin (ELF) and the layout of their parameters, as ptxas of
 * CUDA 12 and 13 writes them and cuobjdump prints them. */
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "emu/core/image_parts.h"

enum { KERNEL_SYMBOL = 0x10 }; /* in st_other */
/* Of a record in .nv.info.KERNEL: its form, and which attribute it is. */
enum { FORM_SIZED = 4, KPARAM_INFO = 0x17, KPARAM_INFO_V2 = 0x45 };
/* In the last word of KPARAM_INFO, above the pointee's alignment and the constant bank. */
enum { KPARAM_SIZE_SHIFT = 18 };

struct open_cubin {
    const char *image;
    const Elf64_Shdr *sections;
    int count;
    const char *names;
};

struct cubin_record {
    uint8_t form, attribute;
    uint16_t bytes; /* behind this, if FORM_SIZED; else the value itself */
};

struct cubin_parameter {
    uint32_t index;
    uint16_t ordinal, offset;
    union {
        uint32_t word;
        uint16_t bytes; /* of version 2: for blocks of more than 4 KiB */
    } size;
};

/* True if the record is a parameter that has room. */
static bool read_kparam(struct emu_image_kernel *kernel, const struct cubin_record *record)
{
    struct cubin_parameter found;
    size_t bytes;

    if (record->bytes < sizeof(found))
        return false;
    memcpy(&found, record + 1, sizeof(found));
    bytes = record->attribute == KPARAM_INFO ? found.size.word >> KPARAM_SIZE_SHIFT
                                             : found.size.bytes;
    if (found.ordinal >= EMU_MAX_PARAMETERS)
        return false;
    kernel->parameters[found.ordinal] = (struct emu_parameter){found.offset, bytes, false};
    if (kernel->count <= found.ordinal)
        kernel->count = found.ordinal + 1;
    return true;
}

static void read_kernel_info(struct emu_image_kernel *kernel, const char *at, size_t bytes)
{
    const char *end = at + bytes;

    kernel->count = 0;
    while ((size_t)(end - at) >= sizeof(struct cubin_record)) {
        const struct cubin_record *record = (const struct cubin_record *)at;
        size_t size = sizeof(*record) + (record->form == FORM_SIZED ? record->bytes : 0);
        bool parameter = record->form == FORM_SIZED &&
                         (record->attribute == KPARAM_INFO || record->attribute == KPARAM_INFO_V2);

        if (size > (size_t)(end - at) || (parameter && !read_kparam(kernel, record))) {
            kernel->count = EMU_PARAMETERS_UNKNOWN;
            return;
        }
        at += size;
    }
}

static void visit_kernel_symbol(struct image_visit *visit, const struct open_cubin *cubin,
                                const char *name)
{
    static const char prefix[] = ".nv.info.";
    struct emu_image_kernel kernel = {
        .name = name, .length = strlen(name), .count = EMU_PARAMETERS_UNKNOWN};

    for (int i = 0; i < cubin->count && cubin->names; i++) {
        const char *section = cubin->names + cubin->sections[i].sh_name;

        if (!strncmp(section, prefix, sizeof(prefix) - 1) &&
            !strcmp(section + sizeof(prefix) - 1, name)) {
            read_kernel_info(&kernel, cubin->image + cubin->sections[i].sh_offset,
                             cubin->sections[i].sh_size);
            break;
        }
    }
    image_visit_kernel(visit, &kernel);
}

static void visit_kernel_symbols(struct image_visit *visit, const struct open_cubin *cubin,
                                 const Elf64_Shdr *table)
{
    const Elf64_Sym *symbols = (const Elf64_Sym *)(cubin->image + table->sh_offset);
    const char *names = cubin->image + cubin->sections[table->sh_link].sh_offset;

    for (size_t i = 0; i < table->sh_size / sizeof(*symbols) && !visit->stopped; i++)
        if (ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC && symbols[i].st_other & KERNEL_SYMBOL)
            visit_kernel_symbol(visit, cubin, names + symbols[i].st_name);
}

bool image_read_cubin(struct image_visit *visit, const char *image)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)image;
    struct open_cubin cubin = {image, (const Elf64_Shdr *)(image + header->e_shoff),
                               header->e_shnum, NULL};
    bool found = false;

    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != EM_CUDA)
        return false;
    if (header->e_shstrndx != SHN_UNDEF && header->e_shstrndx < header->e_shnum)
        cubin.names = image + cubin.sections[header->e_shstrndx].sh_offset;
    for (int i = 0; i < cubin.count; i++) {
        if (cubin.sections[i].sh_type != SHT_SYMTAB)
            continue;
        visit_kernel_symbols(visit, &cubin, &cubin.sections[i]);
        found = true;
    }
    return found;
}

/* ABI version 8, which ptxas writes from compute capability 10.0 on, has it one byte higher. */
unsigned image_cubin_architecture(const char *image)
{
    enum { NEWER_ABI = 8, NEWER_SHIFT = 8, MASK = 0xff };
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)image;
    unsigned shift = header->e_ident[EI_ABIVERSION] >= NEWER_ABI ? NEWER_SHIFT : 0;

    return header->e_flags >> shift & MASK;
}
