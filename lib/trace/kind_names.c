/* kind_names.c: finds operations and datatypes by the names that other tools give them. */
#include "lib/trace/kind_names.h"

static const struct kind_name kind_names[] = {
#define KIND_NAME(source, name, api, elements) {name, API_##api, KIND_##source, KIND_OF_##elements},
#include "lib/trace/kinds.def"
};

enum { KIND_NAMES = sizeof kind_names / sizeof *kind_names };

const struct kind_name *kind_name_find(enum kind_source source, const char *name, size_t bytes)
{
    for (size_t i = 0; i < KIND_NAMES; i++)
        if (kind_names[i].source == source && strlen(kind_names[i].name) == bytes &&
            !memcmp(kind_names[i].name, name, bytes))
            return &kind_names[i];
    return NULL;
}

int kind_name_place(const struct kind_name *name)
{
    return name ? (int)(name - kind_names) : -1;
}

const struct kind_name *kind_name_at(int64_t place)
{
    return place >= 0 && place < KIND_NAMES ? &kind_names[place] : NULL;
}

const char *kind_name_of(enum kind_source source, unsigned api)
{
    for (size_t i = 0; i < KIND_NAMES; i++)
        if (kind_names[i].source == source && kind_names[i].api == kind_same_as(api))
            return kind_names[i].name;
    return NULL;
}

static const struct torch_type {
    const char *name;
    uint8_t datatype, factor;
} torch_types[] = {
#define DATATYPE(number, name, bytes, nccl, torch) {torch, TYPE_##number, 1},
#include "lib/trace/datatypes.def"
#undef DATATYPE
    {"Bool", TYPE_UINT8, 1},
    {"ComplexFloat", TYPE_FLOAT32, 2},
    {"ComplexDouble", TYPE_FLOAT64, 2},
/* As Python prints them, in dumps that people and tests made. */
#define DATATYPE(number, name, bytes, nccl, torch) {name, TYPE_##number, 1},
#include "lib/trace/datatypes.def"
#undef DATATYPE
};

const char *datatype_torch_name(unsigned datatype)
{
    return datatype < TYPE_COUNT ? torch_types[datatype].name : "";
}

uint8_t datatype_of_torch(const char *name, size_t bytes, unsigned *factor)
{
    *factor = 1;
    for (size_t i = 0; i < sizeof torch_types / sizeof *torch_types; i++)
        if (strlen(torch_types[i].name) == bytes && !memcmp(torch_types[i].name, name, bytes)) {
            *factor = torch_types[i].factor;
            return torch_types[i].datatype;
        }
    return TYPE_NONE;
}
