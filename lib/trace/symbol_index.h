#ifndef DDPCHECK_LIB_TRACE_SYMBOL_INDEX_H
#define DDPCHECK_LIB_TRACE_SYMBOL_INDEX_H
/* symbol_index.h: the functions of a large object file, sorted by address.
 *
 * libdw looks through the whole symbol table for each address, which takes 10 ms in one of
 * PyTorch's libraries. */

#include <elfutils/libdwfl.h>

enum { SYMBOL_INDEX_WORTH = 20000 }; /* symbols of an object from which an index pays */

struct symbol_index;

/* All functions of the module that have a size. Returns NULL without memory or symbols. */
struct symbol_index *symbol_index_new(Dwfl_Module *module);

void symbol_index_free(struct symbol_index *index); /* NULL is fine */

/* The name, owned by the module, of the function that holds the address (as libdwfl counts them),
 * or NULL. Of several names the same one is chosen each time: global before weak before local, as
 * libdw does. */
const char *symbol_index_find(const struct symbol_index *index, GElf_Addr address);

#endif
