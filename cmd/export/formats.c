/* formats.c: the table of all export formats, made from formats.def. */
#include "cmd/export/export.h"

#include <string.h>

const struct export_format export_formats[] = {
#define EXPORT(name, extensions, what) {#name, extensions, what, export_##name},
#include "cmd/export/formats.def"
#undef EXPORT
    {0},
};

const struct export_format *export_format_find(const char *name)
{
    for (const struct export_format *format = export_formats; format->name; format++)
        if (!strcmp(format->name, name))
            return format;
    return NULL;
}
