/* pytorch.h: twins of PyTorch's own kernels (pytorch.c lists them and says why). */
#ifndef DDPCHECK_EMU_PYTORCH_H
#define DDPCHECK_EMU_PYTORCH_H

#include <stddef.h>

struct twin;

/* The twin of a concatenation by its mangled name, or NULL. */
const struct twin *emu_pytorch_find_cat(const char *mangled);
/* The twin of a reduction by its mangled name and the bytes of its parameter, or NULL. */
const struct twin *emu_pytorch_find_reduction(const char *mangled, size_t bytes);
/* The bytes from `pointer` to the end of its allocation; 0 if it is in none. */
size_t emu_room_behind(const void *pointer);

#endif
