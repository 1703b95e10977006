/* kind_names.h: what other tools call operations and datatypes, from kinds.def and datatypes.def.
 */
#ifndef DDPCHECK_KIND_NAMES_H
#define DDPCHECK_KIND_NAMES_H

#include "lib/trace/kinds.h"

enum kind_source { KIND_FLIGHT, KIND_KINETO, KIND_WATCHDOG };

/* Which elements a source's number is of. */
enum kind_elements { KIND_OF_IN, KIND_OF_OUT, KIND_OF_SPLIT, KIND_OF_UNSAID };

struct kind_name {
    const char *name;
    uint16_t api; /* API_NONE: not an operation, as a wait or a set-up */
    uint8_t source, elements;
};

/* The source's entry for a name of `bytes` characters, NULL if there is none. */
const struct kind_name *kind_name_find(enum kind_source source, const char *name, size_t bytes);
/* The entry's place in the table, -1 for NULL; and the entry there, NULL if there is none. They
 * hold within one run of a program. */
int kind_name_place(const struct kind_name *name);
const struct kind_name *kind_name_at(int64_t place);
/* What the source calls a call, NULL if it has no name for it. */
const char *kind_name_of(enum kind_source source, unsigned api);

/* PyTorch's name of a datatype: "Float"; "" if it is unknown. */
const char *datatype_torch_name(unsigned datatype);
/* What NCCL is given for a scalar type of PyTorch's (getNcclDataType), TYPE_NONE if it is unknown;
 * *factor: how many elements NCCL counts for one of PyTorch's. */
uint8_t datatype_of_torch(const char *name, size_t bytes, unsigned *factor);

#endif
