/* stubs.c: one of CUDA's math libraries: every function that its list (LIBRARY.def) names. Calls
 * succeed and compute nothing: right numbers need a GPU.
 *
 * The lists hold names, which argument is a result that the caller reads on the host, and which are
 * memory that the call works on: no header of these libraries is needed. By the x86-64 calling
 * convention the integer and pointer arguments of a call, however many there are, can be read as a
 * row of words. */
#include <stddef.h>
#include <stdint.h>

#include "emu/core.h"
#include "emu/math/launch.h"
#include "emu/math/words.h"

/* A status of failure in each of the libraries that have handles with streams. */
enum { NO_MEMORY = 2 };

/* Launches work on the memory that `letters` names (math_launch_words). */
#define LAUNCH(name, letters)                     \
    int name(WORD_PARAMETERS);                    \
    int name(WORD_PARAMETERS)                     \
    {                                             \
        void *const words[] = {WORDS};            \
                                                  \
        math_launch_words(#name, letters, words); \
        return 0;                                 \
    }
/* Launches work; what memory it touches is not known. */
#define COMPUTE(name)            \
    int name(void);              \
    int name(void)               \
    {                            \
        emu_not_computed(#name); \
        return 0;                \
    }
/* The same; argument `info` is where in device memory it reports its success, of each of as many
 * problems as argument `batch` says, or of one. */
#define COMPUTE_INFOS(name, info, batch)                                         \
    int name(WORD_PARAMETERS);                                                   \
    int name(WORD_PARAMETERS)                                                    \
    {                                                                            \
        void *const words[] = {WORDS};                                           \
                                                                                 \
        emu_not_computed(#name);                                                 \
        math_report_success(words[0], words[info], (int)(intptr_t)words[batch]); \
        return 0;                                                                \
    }
#define COMPUTE_INFO(name, info)                       \
    int name(WORD_PARAMETERS);                         \
    int name(WORD_PARAMETERS)                          \
    {                                                  \
        void *const words[] = {WORDS};                 \
                                                       \
        emu_not_computed(#name);                       \
        math_report_success(words[0], words[info], 1); \
        return 0;                                      \
    }
/* The same, once and in host memory. */
#define COMPUTE_HOST_INFO(name, info)  \
    int name(WORD_PARAMETERS);         \
    int name(WORD_PARAMETERS)          \
    {                                  \
        void *const words[] = {WORDS}; \
                                       \
        emu_not_computed(#name);       \
        words_set_int(words[info], 0); \
        return 0;                      \
    }
/* Changes only a descriptor or a handle. */
#define SETTING(name) \
    int name(void);   \
    int name(void)    \
    {                 \
        return 0;     \
    }
/* A handle with a stream. The library's other handles are all the same object. */
#define CREATE_HANDLE(name)             \
    int name(void **handle);            \
    int name(void **handle)             \
    {                                   \
        *handle = math_handle_create(); \
        return *handle ? 0 : NO_MEMORY; \
    }
#define DESTROY_HANDLE(name)         \
    int name(void *handle);          \
    int name(void *handle)           \
    {                                \
        math_handle_destroy(handle); \
        return 0;                    \
    }
#define SET_STREAM(name)                        \
    int name(void *handle, void *stream);       \
    int name(void *handle, void *stream)        \
    {                                           \
        math_handle_set_stream(handle, stream); \
        return 0;                               \
    }
#define GET_STREAM(name)                      \
    int name(void *handle, void **stream);    \
    int name(void *handle, void **stream)     \
    {                                         \
        *stream = math_handle_stream(handle); \
        return 0;                             \
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
/* One part of that version; the first word says which (libraryPropertyType): major, minor, patch.
 */
#define PROPERTY(index) words_set_int(words[index], (int)(size_t)words[0] ? 9 : DDPCHECK_EMU_MAJOR);

/* A function and its twin with 64-bit counts. */
#define LAUNCH_64(name, letters) LAUNCH(name, letters) LAUNCH(name##_64, letters)
#define COMPUTE_64(name)         COMPUTE(name) COMPUTE(name##_64)
/* The same row for each type of BLAS: S float, D double, C and Z their complex numbers. The type's
 * letter stands between the arguments `library` and the first of the row. */
#define SD(row, library, ...)   row(library##S##__VA_ARGS__) row(library##D##__VA_ARGS__)
#define CZ(row, library, ...)   row(library##C##__VA_ARGS__) row(library##Z##__VA_ARGS__)
#define SDCZ(row, library, ...) SD(row, library, __VA_ARGS__) CZ(row, library, __VA_ARGS__)
#define sdcz(row, library, ...)                                                            \
    row(library##s##__VA_ARGS__) row(library##d##__VA_ARGS__) row(library##c##__VA_ARGS__) \
        row(library##z##__VA_ARGS__)

#include DDPCHECK_EMU_LIST
