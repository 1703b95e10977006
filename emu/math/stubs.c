/* stubs.c: one of CUDA's math libraries: every function that its list (LIBRARY.def) names. Calls
 * succeed and compute nothing: whoever needs numbers needs a GPU.
 *
 * The lists hold names, and where a caller reads a result on the host, which argument it is: no
 * header of these libraries is needed. By the x86-64 calling convention the integer and pointer
 * arguments of a call, however many there are, can be read as a row of words. */
#include <stddef.h>

#include "emu/core.h"
#include "emu/math/words.h"

/* Launches work whose results are not computed. */
#define COMPUTE(name)            \
    int name(void);              \
    int name(void)               \
    {                            \
        emu_not_computed(#name); \
        return 0;                \
    }
/* Changes only a descriptor or a handle. */
#define SETTING(name) \
    int name(void);   \
    int name(void)    \
    {                 \
        return 0;     \
    }
/* Writes results that the caller reads: numbers are 0, handles are not NULL, plans are 1. */
#define QUERY(name, results)           \
    int name(WORD_PARAMETERS);         \
    int name(WORD_PARAMETERS)          \
    {                                  \
        void *const words[] = {WORDS}; \
        results return 0;              \
    }
#define CREATE(name, index) QUERY(name, HANDLE(index))
#define HANDLE(index)       words_set_handle(words[index]);
#define SIZE(index)         words_set_size(words[index], 0);
#define INT(index)          words_set_int(words[index], 0);
#define PLAN(index)         words_set_int(words[index], 1);
/* The newest of its major version: JAX refuses libraries that are older than its own. */
#define VERSION(index) words_set_int(words[index], DDPCHECK_EMU_MAJOR * 1000 + 909);
/* The same, of which the first word asks for a part (libraryPropertyType): major, minor, patch. */
#define PROPERTY(index) words_set_int(words[index], (int)(size_t)words[0] ? 9 : DDPCHECK_EMU_MAJOR);

#include DDPCHECK_EMU_LIST
