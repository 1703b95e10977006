/* symbols.c: the functions that lib/nats declares are those of libnats's header. */
#include <nats/nats.h>

#include "lib/nats/nats_library.h"

#define NATS_SYMBOL(result, name, parameters)                                                  \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&name),                             \
                                                __typeof__(((struct nats_library *)0)->name)), \
                   "nats_symbols.def: " #name " differs from nats.h");
#include "lib/nats/nats_symbols.def"
#undef NATS_SYMBOL
_Static_assert(NATS_NOT_YET_CONNECTED == 31 && NATS_OK == 0, "nats_library.h: a status differs");
