/* symbols.c: the functions that lib/nats declares are those of libnats's header. */
#include <nats/nats.h>

#include "lib/nats/nats_library.h"

#define NATS_SYMBOL(result, name, parameters)                                                  \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&name),                             \
                                                __typeof__(((struct nats_library *)0)->name)), \
                   "nats_symbols.def: " #name " differs from nats.h");
#include "lib/nats/nats_symbols.def"
#undef NATS_SYMBOL
_Static_assert(NATS_OK == 0 && NATS_SECURE_CONNECTION_WANTED == 8 &&
                   NATS_SECURE_CONNECTION_REQUIRED == 9 && NATS_CONNECTION_AUTH_FAILED == 11 &&
                   NATS_SSL_ERROR == 29,
               "nats_library.h: a status differs");
