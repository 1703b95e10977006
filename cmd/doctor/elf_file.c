/* elf_file.c: reads the parts of an ELF file that doctor needs. */
#include "cmd/doctor/elf_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file in memory; nothing in it is believed. */
struct elf_image {
    const unsigned char *bytes;
    uint64_t size;
};

static const void *image_part(const struct elf_image *image, uint64_t offset, uint64_t bytes)
{
    return offset <= image->size && bytes <= image->size - offset ? image->bytes + offset : NULL;
}

/* A string inside [offset, offset + size), or "". */
static const char *text_at(const struct elf_image *image, uint64_t offset, uint64_t size,
                           uint64_t index)
{
    const char *text = index < size ? image_part(image, offset, size) : NULL;
    return text && memchr(text + index, 0, size - index) ? text + index : "";
}

static bool is_nccl_library(const char *name)
{
    return strncmp(name, "ncclAllReduce", 13) == 0 || strncmp(name, "ncclCommInit", 12) == 0;
}

static bool is_cudart(const char *name)
{
    return strcmp(name, "cudaMalloc") == 0 || strcmp(name, "cudaLaunchKernel") == 0 ||
           strcmp(name, "cudaStreamSynchronize") == 0;
}

static void read_elf_symbols(struct elf_file *elf, const struct elf_image *image,
                             const Elf64_Shdr *table, const Elf64_Shdr *names)
{
    uint64_t count = table->sh_size / sizeof(Elf64_Sym);
    const Elf64_Sym *symbol = image_part(image, table->sh_offset, count * sizeof *symbol);
    for (uint64_t i = 0; symbol && i < count; i++) {
        const char *name = text_at(image, names->sh_offset, names->sh_size, symbol[i].st_name);
        bool defined = symbol[i].st_shndx != SHN_UNDEF;
        if (is_nccl_library(name))
            *(defined ? &elf->defines_nccl : &elf->imports_nccl) = true;
        else if (is_cudart(name))
            *(defined ? &elf->defines_cudart : &elf->imports_cudart) = true;
        else if (!defined && (strcmp(name, "dlopen") == 0 || strcmp(name, "dlsym") == 0))
            elf->imports_dlopen = true;
    }
}

static void read_needed(struct elf_file *elf, const struct elf_image *image,
                        const Elf64_Shdr *dynamic, const Elf64_Shdr *names)
{
    uint64_t count = dynamic->sh_size / sizeof(Elf64_Dyn);
    const Elf64_Dyn *entry = image_part(image, dynamic->sh_offset, count * sizeof *entry);
    for (uint64_t i = 0;
         entry && i < count && entry[i].d_tag != DT_NULL && elf->needed_count < ELF_NEEDED_MAX; i++)
        if (entry[i].d_tag == DT_NEEDED)
            snprintf(elf->needed[elf->needed_count++], sizeof elf->needed[0], "%s",
                     text_at(image, names->sh_offset, names->sh_size, entry[i].d_un.d_val));
}

/* Texts that NCCL alone has; NCCL's plugin loader tries names that begin with the second. The third
 * is the CUDA runtime's. */
static void read_texts(struct elf_file *elf, const struct elf_image *image)
{
    static const char nccl[] = "NCCL_DEBUG_SUBSYS", plugin[] = "libnccl-profiler";
    static const char cudart[] = "/cudart.shm.";
    elf->holds_plugins = memmem(image->bytes, image->size, plugin, sizeof plugin - 1);
    elf->holds_nccl = elf->holds_plugins ||
                      memmem(image->bytes, image->size, nccl, sizeof nccl - 1);
    elf->holds_cudart = memmem(image->bytes, image->size, cudart, sizeof cudart - 1);
}

static int read_sections(struct elf_file *elf, const struct elf_image *image,
                         const Elf64_Ehdr *header)
{
    const Elf64_Shdr *section =
        image_part(image, header->e_shoff, (uint64_t)header->e_shnum * sizeof *section);
    if (!section || header->e_shentsize != sizeof *section)
        return header->e_shnum == 0 ? 0 : -1;
    elf->is_stripped = true;
    for (unsigned i = 0; i < header->e_shnum; i++) {
        elf->is_stripped &= section[i].sh_type != SHT_SYMTAB;
        if (section[i].sh_link >= header->e_shnum)
            continue;
        const Elf64_Shdr *names = &section[section[i].sh_link];
        if (section[i].sh_type == SHT_DYNSYM || section[i].sh_type == SHT_SYMTAB)
            read_elf_symbols(elf, image, &section[i], names);
        else if (section[i].sh_type == SHT_DYNAMIC)
            read_needed(elf, image, &section[i], names);
    }
    return 0;
}

static int read_segments(struct elf_file *elf, const struct elf_image *image,
                         const Elf64_Ehdr *header)
{
    const Elf64_Phdr *segment =
        image_part(image, header->e_phoff, (uint64_t)header->e_phnum * sizeof *segment);
    if (!segment || header->e_phentsize != sizeof *segment)
        return header->e_phnum == 0 ? 0 : -1;
    for (unsigned i = 0; i < header->e_phnum; i++)
        if (segment[i].p_type == PT_INTERP)
            snprintf(elf->interpreter, sizeof elf->interpreter, "%s",
                     text_at(image, segment[i].p_offset, segment[i].p_filesz, 0));
    elf->is_static =
        !elf->interpreter[0]; /* a static-pie has a dynamic section, but no ld.so either */
    return 0;
}

/* "#!/usr/bin/env python3" gives python3. */
static void read_script(struct elf_file *elf, const struct elf_image *image)
{
    char line[300], program[256] = "", argument[256] = "";
    elf->kind = ELF_SCRIPT;
    snprintf(line, sizeof line, "%.*s",
             (int)(image->size < sizeof line ? image->size : sizeof line - 1),
             (const char *)image->bytes);
    line[strcspn(line, "\n")] = 0;
    sscanf(line + 2, " %255s %255s", program, argument);
    const char *base = strrchr(program, '/');
    bool is_env = base && strcmp(base, "/env") == 0 && argument[0];
    snprintf(elf->interpreter, sizeof elf->interpreter, "%s", is_env ? argument : program);
}

static int read_elf_image(struct elf_file *elf, const struct elf_image *image, const char *path,
                          struct error *err)
{
    const Elf64_Ehdr *header = image_part(image, 0, sizeof *header);
    if (image->size >= 3 && memcmp(image->bytes, "#!", 2) == 0) {
        read_script(elf, image);
        return 0;
    }
    if (image->size < EI_NIDENT || memcmp(image->bytes, ELFMAG, SELFMAG) != 0)
        return 0;
    elf->kind = ELF_PROGRAM;
    elf->is_32_bit = image->bytes[EI_CLASS] == ELFCLASS32;
    if (elf->is_32_bit || !header)
        return 0;
    elf->is_foreign = header->e_machine != EM_X86_64;
    if (read_sections(elf, image, header) < 0 || read_segments(elf, image, header) < 0)
        return error_set(err, "%s is a damaged ELF file: its tables are outside of it", path);
    read_texts(elf, image);
    return 0;
}

/* Maps a file. Returns 0, or -1 with err; the image of an empty file has no bytes. */
static int map_image(struct elf_image *image, struct stat *status, const char *path,
                     struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, status) < 0 || !S_ISREG(status->st_mode)) {
        int number = errno;
        if (fd >= 0)
            close(fd);
        return error_set(err, "can't read %s: %s", path,
                         fd < 0 ? strerror(number) : "it is no regular file");
    }
    *image = (struct elf_image){.size = (uint64_t)status->st_size};
    void *bytes = image->size ? mmap(NULL, image->size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    int number = errno;
    close(fd);
    if (bytes == MAP_FAILED)
        return error_set(err, "can't read %s: %s", path, strerror(number));
    image->bytes = bytes;
    return 0;
}

static void unmap_image(const struct elf_image *image)
{
    if (image->bytes)
        munmap((void *)image->bytes, image->size);
}

int elf_file_read(struct elf_file *elf, const char *path, struct error *err)
{
    struct stat status;
    struct elf_image image;
    *elf = (struct elf_file){0};
    if (map_image(&image, &status, path, err) < 0)
        return -1;
    elf->is_setuid = (status.st_mode & S_ISUID && status.st_uid != geteuid()) ||
                     status.st_mode & S_ISGID;
    int result = read_elf_image(elf, &image, path, err);
    unmap_image(&image);
    return result;
}

static enum elf_symbol_kind symbol_kind(const Elf64_Sym *symbol)
{
    if (symbol->st_shndx != SHN_UNDEF)
        return ELF_SYMBOL_DEFINED;
    return ELF64_ST_BIND(symbol->st_info) == STB_WEAK ? ELF_SYMBOL_OPTIONAL : ELF_SYMBOL_WANTED;
}

static void visit_table(const struct elf_image *image, const Elf64_Shdr *table,
                        const Elf64_Shdr *names,
                        void (*visit)(void *context, const char *name, enum elf_symbol_kind kind),
                        void *context)
{
    uint64_t count = table->sh_size / sizeof(Elf64_Sym);
    const Elf64_Sym *symbol = image_part(image, table->sh_offset, count * sizeof *symbol);
    for (uint64_t i = 1; symbol && i < count; i++)
        visit(context, text_at(image, names->sh_offset, names->sh_size, symbol[i].st_name),
              symbol_kind(&symbol[i]));
}

int elf_file_visit_symbols(const char *path,
                           void (*visit)(void *context, const char *name,
                                         enum elf_symbol_kind kind),
                           void *context, struct error *err)
{
    struct stat status;
    struct elf_image image;
    if (map_image(&image, &status, path, err) < 0)
        return -1;
    const Elf64_Ehdr *header = image_part(&image, 0, sizeof *header);
    bool is_read = header && memcmp(image.bytes, ELFMAG, SELFMAG) == 0 &&
                   header->e_ident[EI_CLASS] == ELFCLASS64;
    const Elf64_Shdr *section =
        is_read ? image_part(&image, header->e_shoff, (uint64_t)header->e_shnum * sizeof *section)
                : NULL;
    for (unsigned i = 0; section && i < header->e_shnum; i++)
        if (section[i].sh_type == SHT_DYNSYM && section[i].sh_link < header->e_shnum)
            visit_table(&image, &section[i], &section[section[i].sh_link], visit, context);
    unmap_image(&image);
    return section ? 0 : error_set(err, "%s is no ELF file that can be read", path);
}

bool elf_file_needs(const struct elf_file *elf, const char *prefix)
{
    for (int i = 0; i < elf->needed_count; i++)
        if (strncmp(elf->needed[i], prefix, strlen(prefix)) == 0)
            return true;
    return false;
}
