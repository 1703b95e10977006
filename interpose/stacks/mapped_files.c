/* mapped_files.c: reads /proc/self/maps and, through the kernel, the program headers of the files
 * that are mapped there. */
#include "interpose/stacks/mapped_files.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/python/peek.h"

enum { HEADERS_MAX = 32, LINE_MAX_BYTES = PATH_MAX + 128, PAGE = 4096 };

struct mapped_part {
    uint64_t start, offset, inode;
    bool is_executable;
    const char *path; /* in the line; "" none */
};

/* Large: a signal's stack may be small. */
static struct {
    char text[2 * LINE_MAX_BYTES];
    size_t used;
    ElfW(Phdr) header[HEADERS_MAX];
    uint64_t first, inode; /* the last mapping of a file's begin, and the file */
} mapped;

/* "START-END PERMISSIONS OFFSET DEVICE INODE PATH". */
static bool parse_line(const char *line, struct mapped_part *part)
{
    char *at;
    part->start = strtoull(line, &at, 16);
    if (*at != '-')
        return false;
    strtoull(at + 1, &at, 16);
    if (strnlen(at, strlen(" r-xp ")) < strlen(" r-xp "))
        return false;
    part->is_executable = at[3] == 'x';
    part->offset = strtoull(at + strlen(" r-xp "), &at, 16);
    at += strspn(at, " ");
    at += strcspn(at, " "); /* the device */
    part->inode = strtoull(at, &at, 10);
    part->path = at + strspn(at, " ");
    return true;
}

static uint64_t page_of(uint64_t address)
{
    return address / PAGE * PAGE;
}

/* Reads the program headers of the file that begins at `first`. Returns how many, 0 if it is no
 * object file. */
static unsigned read_headers(uint64_t first)
{
    ElfW(Ehdr) file;
    if (!peek(first, &file, sizeof file) || memcmp(file.e_ident, ELFMAG, SELFMAG) != 0 ||
        file.e_phentsize != sizeof *mapped.header || file.e_phnum > HEADERS_MAX ||
        !peek(first + file.e_phoff, mapped.header, file.e_phnum * sizeof *mapped.header))
        return 0;
    return file.e_phnum;
}

/* What is mapped as a file's code counts only where its headers want it: any program may map a file
 * to read it. */
static bool describe_file(const struct mapped_part *part, struct dl_phdr_info *info)
{
    unsigned count = read_headers(mapped.first);
    const ElfW(Phdr) *load = NULL;
    *info = (struct dl_phdr_info){
        .dlpi_name = part->path, .dlpi_phdr = mapped.header, .dlpi_phnum = (ElfW(Half))count};
    for (unsigned i = 0; i < count && !load; i++)
        if (mapped.header[i].p_type == PT_LOAD)
            load = &mapped.header[i];
    if (!load)
        return false;
    info->dlpi_addr = mapped.first - page_of(load->p_vaddr);
    for (unsigned i = 0; i < count; i++)
        if (mapped.header[i].p_type == PT_LOAD && mapped.header[i].p_flags & PF_X &&
            page_of(info->dlpi_addr + mapped.header[i].p_vaddr) == part->start)
            return true;
    return false;
}

static void see_line(const char *line, void (*see)(const struct dl_phdr_info *, void *),
                     void *argument)
{
    struct mapped_part part;
    struct dl_phdr_info info;
    if (!parse_line(line, &part) || part.path[0] != '/')
        return;
    if (part.offset == 0) {
        mapped.first = part.start;
        mapped.inode = part.inode;
    }
    if (part.is_executable && part.inode == mapped.inode && describe_file(&part, &info))
        see(&info, argument);
}

/* Sees the whole lines of the text, and keeps the rest of it. */
static void see_lines(void (*see)(const struct dl_phdr_info *, void *), void *argument)
{
    char *line = mapped.text, *end;
    while ((end = memchr(line, '\n', mapped.used - (size_t)(line - mapped.text)))) {
        *end = '\0';
        see_line(line, see, argument);
        line = end + 1;
    }
    mapped.used -= (size_t)(line - mapped.text);
    memmove(mapped.text, line, mapped.used);
}

void mapped_files_see(void (*see)(const struct dl_phdr_info *info, void *argument), void *argument)
{
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    ssize_t got = 0;
    mapped.used = 0;
    mapped.inode = 0;
    while (fd >= 0 && mapped.used < sizeof mapped.text &&
           ((got = read(fd, mapped.text + mapped.used, sizeof mapped.text - mapped.used)) > 0 ||
            (got < 0 && errno == EINTR))) {
        mapped.used += got > 0 ? (size_t)got : 0;
        see_lines(see, argument);
    }
    if (fd >= 0)
        close(fd);
}
