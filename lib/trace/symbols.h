/* symbols.h: which function, file and line an address of a (perhaps dead) process belongs to.
 *
 * Works on the object files on disk, by what the shim wrote about the process's mappings; the
 * process itself is not needed. A file that is no longer the one that ran (another build id) is not
 * used. The first address of a large object takes as long as reading its debug information does. */
#ifndef DDPCHECK_SYMBOLS_H
#define DDPCHECK_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "lib/trace/trace.h"

struct symbols;

/* Which files are opened: a trace may come from anybody, and name what it likes. */
enum symbols_files {
    SYMBOLS_ALL,   /* of a running process, or of a collector's own trace */
    SYMBOLS_PLAIN, /* of a trace of this host: none that a link leads to (lib/base/plain_file.h) */
    SYMBOLS_NONE   /* of another host's */
};

/* An object file as it was mapped. */
struct symbols_module {
    const char *path;
    enum symbols_files files;
    uint64_t base; /* address - base is the address in the file */
    const uint8_t *build_id;
    size_t build_id_bytes; /* 0: not known, not compared */
};

/* Returns NULL when memory is short. Keeps the object files that it opened until symbols_free. */
struct symbols *symbols_new(void);
void symbols_free(struct symbols *symbols);

/* Fills in the frames of a return address, innermost first, and returns how many (1 to max, which
 * is not 0): the innermost function inlined there that is not in a header, what that was inlined
 * into, and so on to the function of the object file. The line of each is that of the call; frames
 * of the C library have none. Where
 * no function is known it is one frame, whose module is "PATH+0xOFFSET", with the reason in
 * parentheses if the file has changed, is gone, or is not opened. */
int symbols_find(struct symbols *symbols, const struct symbols_module *module, uint64_t address,
                 struct frame *frames, int max);

/* Reads "a1b2..." into at most `size` bytes. Returns how many; 0 if it is no such text. */
size_t build_id_parse(const char *text, uint8_t *build_id, size_t size);

#endif
