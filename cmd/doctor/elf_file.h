/* elf_file.h: what doctor wants to know of a program or library file. */
#ifndef DDPCHECK_ELF_FILE_H
#define DDPCHECK_ELF_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"

enum elf_kind { ELF_NONE, ELF_SCRIPT, ELF_PROGRAM };
enum { ELF_NEEDED_MAX = 64 };

struct elf_file {
    enum elf_kind kind;
    bool is_32_bit, is_foreign; /* not x86-64's machine */
    bool is_static;             /* a program without ld.so: LD_PRELOAD has no effect */
    bool is_setuid;
    bool defines_nccl,
        defines_cudart; /* linked statically: nccl*, cuda* functions are defined inside */
    bool imports_nccl, imports_cudart, imports_dlopen;
    bool is_stripped; /* it has no symbols of its own: what is defined inside can't be known by name
                       */
    bool holds_cudart;  /* texts of the CUDA runtime's own are inside */
    bool holds_nccl;    /* texts of NCCL's own are inside: it, or a library with it, is linked in */
    bool holds_plugins; /* and that NCCL loads profiler plugins (2.23 or newer) */
    char interpreter[256]; /* ELF: ld.so; script: the program of its #! line */
    char needed[ELF_NEEDED_MAX][128];
    int needed_count;
};

/* Reads a file. What is neither an ELF file nor a script has kind ELF_NONE. Returns 0, or -1 with
 * err (can't be read, or an ELF file whose parts lie outside it). */
int elf_file_read(struct elf_file *elf, const char *path, struct error *err);

/* A symbol of ld.so's table: defined, to be found, or one that the file does without. */
enum elf_symbol_kind { ELF_SYMBOL_DEFINED, ELF_SYMBOL_WANTED, ELF_SYMBOL_OPTIONAL };

/* Calls `visit` for each symbol that ld.so sees. Returns 0, or -1 with err (as elf_file_read). */
int elf_file_visit_symbols(const char *path,
                           void (*visit)(void *context, const char *name,
                                         enum elf_symbol_kind kind),
                           void *context, struct error *err);

/* True if a needed library's name begins so. */
bool elf_file_needs(const struct elf_file *elf, const char *prefix);

#endif
