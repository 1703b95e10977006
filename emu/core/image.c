/* image.c: finds the names of kernels in cubins, PTX text and fat binaries. */
#include "emu/core/image.h"

#include <ctype.h>
#include <driver_types.h>
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "emu/core/attributes.h"
#include "emu/core/limits.h"

enum { KERNEL_SYMBOL = 0x10 }; /* in st_other of a cubin's symbols */
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
};

struct visit {
    bool (*each)(void *arg, const char *name, size_t length);
    void *arg;
    bool stopped, packed;
};

static void visit_name(struct visit *visit, const char *name, size_t length)
{
    visit->stopped = visit->stopped || !visit->each(visit->arg, name, length);
}

static bool visit_symbols(struct visit *to, const char *image, const Elf64_Shdr *sections,
                          const Elf64_Shdr *table)
{
    const Elf64_Sym *symbols = (const Elf64_Sym *)(image + table->sh_offset);
    const char *names = image + sections[table->sh_link].sh_offset;

    for (size_t i = 0; i < table->sh_size / sizeof(*symbols) && !to->stopped; i++)
        if (ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC && symbols[i].st_other & KERNEL_SYMBOL)
            visit_name(to, names + symbols[i].st_name, strlen(names + symbols[i].st_name));
    return true;
}

static bool read_cubin(struct visit *to, const char *image)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)image;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(image + header->e_shoff);
    bool found = false;

    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != EM_CUDA)
        return false;
    for (int i = 0; i < header->e_shnum; i++)
        if (sections[i].sh_type == SHT_SYMTAB)
            found = visit_symbols(to, image, sections, &sections[i]);
    return found;
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

/* Error 222 for text that is too new; error 209 for a fat binary with nothing for this device:
 * machine code runs on later minor versions of its architecture, PTX on all later ones (CUDA
 * programming guide, "Binary Compatibility", "PTX Compatibility"). */
static int find_misfit(const struct fatbin *fatbin)
{
    const char *at = (const char *)fatbin + fatbin->header_bytes, *end = at + fatbin->bytes;
    int error = cudaErrorNoKernelImageForDevice;

    while ((size_t)(end - at) >= sizeof(struct part)) {
        const struct part *part = (const struct part *)at;
        bool older = part->architecture <= PTX_VERSION;

        if (part->kind == PART_CUBIN && older && part->architecture / 10 == PTX_VERSION / 10)
            return 0;
        if (part->kind == PART_PTX && older && !is_ptx_too_new(part->major, part->minor))
            return 0;
        if (part->kind == PART_PTX && older)
            error = cudaErrorUnsupportedPtxVersion;
        if (part->header_bytes + part->bytes > (size_t)(end - at))
            break;
        at += part->header_bytes + part->bytes;
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

int emu_image_misfit(const void *image)
{
    uint32_t magic;

    memcpy(&magic, image, sizeof(magic));
    if (magic == WRAPPER_MAGIC) {
        image = ((const struct wrapper *)image)->fatbin;
        memcpy(&magic, image, sizeof(magic));
    }
    if (magic == FATBIN_MAGIC)
        return find_misfit(image);
    return memcmp(image, ELFMAG, SELFMAG) ? find_text_misfit(image) : 0;
}

static bool is_name_letter(char letter)
{
    return isalnum((unsigned char)letter) || letter == '_' || letter == '$' || letter == '%';
}

/* ".entry NAME(", wherever comments do not hide it. */
static bool read_ptx(struct visit *to, const char *text)
{
    if (!strstr(text, ".version"))
        return false;
    while ((text = strpbrk(text, "./")) && !to->stopped) {
        size_t length = 0;

        if (!strncmp(text, "//", 2)) {
            text += strcspn(text, "\n");
            continue;
        }
        if (!strncmp(text, "/*", 2)) {
            text = strstr(text, "*/");
            if (!text)
                break;
        }
        if (strncmp(text, ".entry", 6) || !isspace((unsigned char)text[6])) {
            text++;
            continue;
        }
        text += 6;
        text += strspn(text, " \t\r\n");
        while (is_name_letter(text[length]))
            length++;
        visit_name(to, text, length);
    }
    return true;
}

static bool read_fatbin(struct visit *to, const struct fatbin *fatbin)
{
    const char *at = (const char *)fatbin + fatbin->header_bytes, *end = at + fatbin->bytes;
    bool read = false;

    while ((size_t)(end - at) >= sizeof(struct part) && !to->stopped) {
        const struct part *part = (const struct part *)at;

        if (part->flags & (PART_LZ4 | PART_ZSTD))
            read = to->packed = true;
        else if (part->kind == PART_CUBIN)
            read = read_cubin(to, at + part->header_bytes) || read;
        else if (part->kind == PART_PTX)
            read = read_ptx(to, at + part->header_bytes) || read;
        if (part->header_bytes + part->bytes > (size_t)(end - at))
            return false;
        at += part->header_bytes + part->bytes;
    }
    return read;
}

enum emu_image emu_image_kernels(const void *image,
                                 bool (*each)(void *arg, const char *name, size_t length),
                                 void *arg)
{
    struct visit to = {.each = each, .arg = arg};
    uint32_t magic;
    bool read;

    memcpy(&magic, image, sizeof(magic));
    if (magic == WRAPPER_MAGIC) {
        image = ((const struct wrapper *)image)->fatbin;
        memcpy(&magic, image, sizeof(magic));
    }
    if (magic == FATBIN_MAGIC)
        read = read_fatbin(&to, image);
    else if (!memcmp(image, ELFMAG, SELFMAG))
        read = read_cubin(&to, image);
    else
        read = read_ptx(&to, image);
    if (!read)
        return EMU_IMAGE_NONE;
    return to.packed ? EMU_IMAGE_PACKED : EMU_IMAGE_LISTED;
}
