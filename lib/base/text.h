/* text.h: building sentences piece by piece. */
#ifndef DDPCHECK_TEXT_H
#define DDPCHECK_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero-initialised is empty. */
struct text {
    char *data;
    size_t len, capacity;
    bool failed; /* memory was short: what was added since is missing */
};

void text_add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The string, which the caller owns now; NULL if memory was short. `text` is empty afterwards. */
char *text_take(struct text *text);
/* Takes off what was added since it had this length. */
void text_cut(struct text *text, size_t len);
void text_free(struct text *text);

/* FNV-1a over bytes, to be chained; start with HASH_START. */
#define HASH_START UINT64_C(14695981039346656037)
uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t count);
uint64_t hash_text(uint64_t hash, const char *string);

/* "comm 5ae7". Returns buffer, of at least 16 bytes. */
char *comm_name(uint64_t comm, char buffer[16]);

/* The end of the name, without as many of its leading namespaces as make it longer than that. */
char *text_drop_namespaces(char *name, size_t most);

/* The identifier inside a kernel's mangled name (Itanium C++ ABI, 5.1): "ns::conv2d" of
 * "_ZN2ns6conv2dEPKf", and of "void ns::conv2d<4>(float*)". Arguments and parameters are left out,
 * and namespaces as text_drop_namespaces() does if there is no room; other names are copied.
 * Returns name. */
char *text_kernel_name(const char *symbol, char *name, size_t bytes);

#endif
