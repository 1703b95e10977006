/* libc.c: finds a function of a C library that has no dlvsym. */
#include "interpose/real/libc.h"

#include <link.h>
#include <stdint.h>
#include <string.h>

struct libc_search {
    const char *symbol;
    void *found;
};

/* What a lookup needs of a dynamic section. Addresses are relative to the base (musl), or not. */
struct tables {
    const ElfW(Sym) * symbols;
    const char *names;
    const uint32_t *hash; /* DT_HASH: buckets, symbols, ... */
};

static const void *address_in(const struct dl_phdr_info *info, ElfW(Addr) value)
{
    return (const void *)(value < info->dlpi_addr ? info->dlpi_addr + value : value);
}

static struct tables read_tables(const struct dl_phdr_info *info, const ElfW(Dyn) * entry)
{
    struct tables tables = {0};
    for (; entry->d_tag != DT_NULL; entry++) {
        const void *address = address_in(info, entry->d_un.d_ptr);
        if (entry->d_tag == DT_SYMTAB)
            tables.symbols = address;
        else if (entry->d_tag == DT_STRTAB)
            tables.names = address;
        else if (entry->d_tag == DT_HASH)
            tables.hash = address;
    }
    return tables;
}

/* The file of musl is its loader as well. */
static bool is_musl(const char *name)
{
    return strstr(name, "ld-musl") || strstr(name, "/libc.so");
}

static int search_library(struct dl_phdr_info *info, size_t size, void *argument)
{
    struct libc_search *search = argument;
    (void)size;
    if (!info->dlpi_name || !is_musl(info->dlpi_name))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_DYNAMIC)
            continue;
        const struct tables tables =
            read_tables(info, (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr));
        for (uint32_t at = 0; tables.hash && tables.symbols && tables.names && at < tables.hash[1];
             at++) {
            const ElfW(Sym) *symbol = &tables.symbols[at];
            if (symbol->st_shndx == SHN_UNDEF || !symbol->st_value ||
                strcmp(tables.names + symbol->st_name, search->symbol) != 0)
                continue;
            search->found = (void *)(info->dlpi_addr + symbol->st_value);
            return 1;
        }
    }
    return 0;
}

void *libc_find(const char *symbol)
{
    struct libc_search search = {.symbol = symbol};
    dl_iterate_phdr(search_library, &search);
    return search.found;
}
