/* formats.c: the table of all export formats, made from formats.def. */
#include "cmd/export/export.h"

const struct export_format export_formats[] = {
#define EXPORT(name, extensions, what) {#name, extensions, what, export_##name},
#include "cmd/export/formats.def"
#undef EXPORT
    {0},
};
