/* symbol_index.c: finds the function of an address in a large object file. */
#include <stdlib.h>

#ifdef HAVE_LIBDW

#include "lib/trace/symbol_index.h"

enum { OVERLAPS = 8 }; /* functions inside of functions: how far to look back */

struct function {
    GElf_Addr begin, end;
    const char *name;
    int rank; /* of names for one place, the highest wins */
};

struct symbol_index {
    int count;
    struct function functions[];
};

static int by_address(const void *a, const void *b)
{
    const struct function *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (x->name > y->name) - (x->name < y->name);
}

static int rank_of(unsigned char info)
{
    if (GELF_ST_BIND(info) == STB_GLOBAL)
        return 2;
    return GELF_ST_BIND(info) == STB_WEAK ? 1 : 0;
}

struct symbol_index *symbol_index_new(Dwfl_Module *module)
{
    int symbols = dwfl_module_getsymtab(module);
    struct symbol_index *index =
        symbols > 0 ? malloc(sizeof *index + (size_t)symbols * sizeof index->functions[0]) : NULL;
    if (!index)
        return NULL;
    index->count = 0;
    for (int i = 0; i < symbols; i++) {
        GElf_Sym symbol;
        GElf_Addr address;
        const char *name = dwfl_module_getsym_info(module, i, &symbol, &address, NULL, NULL, NULL);
        int type = GELF_ST_TYPE(symbol.st_info);
        if (name && name[0] && symbol.st_size && symbol.st_shndx != SHN_UNDEF &&
            (type == STT_FUNC || type == STT_GNU_IFUNC))
            index->functions[index->count++] =
                (struct function){address, address + symbol.st_size, name, rank_of(symbol.st_info)};
    }
    qsort(index->functions, (size_t)index->count, sizeof index->functions[0], by_address);
    return index;
}

void symbol_index_free(struct symbol_index *index)
{
    free(index);
}

const char *symbol_index_find(const struct symbol_index *index, GElf_Addr address)
{
    int low = 0, high = index->count; /* the first that begins behind the address */
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (index->functions[middle].begin <= address)
            low = middle + 1;
        else
            high = middle;
    }
    for (int i = low - 1; i >= 0 && i >= low - OVERLAPS; i--)
        if (address < index->functions[i].end)
            return index->functions[i].name;
    return NULL;
}

#endif
