/* reader.c: libddpcheck-trace is objects of lib/ behind reader.map; a library needs a source of its
 * own. */
#include "lib/trace/trace.h"

_Static_assert(sizeof(struct record) == RECORD_BYTES, "users were compiled with this size");
