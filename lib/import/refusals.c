/* refusals.c: what of the files could not be taken: counted, the first of each file and of all are
 * printed; and where a reader keeps its state. */
#include <stdarg.h>
#include <stdio.h>

#include "lib/import/sink.h"

enum { REFUSALS_OF_FILE = 3, REFUSALS_PRINTED_MAX = 30 };

void import_print(struct import *import, const char *message)
{
    import->options->say(import->options->context, message);
}

void import_refuse(struct import *import, const char *format, ...)
{
    struct error err;
    import->result.refused++;
    if (import->refused_here++ >= REFUSALS_OF_FILE ||
        import->refusals_printed == REFUSALS_PRINTED_MAX)
        return;
    import->refusals_printed++;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(err.text, sizeof err.text, format, arguments);
    va_end(arguments);
    import_print(import, err.text);
}

void refusals_end_file(struct import *import)
{
    char more[128];
    if (import->refused_here <= REFUSALS_OF_FILE ||
        import->refusals_printed >= REFUSALS_PRINTED_MAX)
        return;
    snprintf(more, sizeof more, "... and %llu more in that file",
             (unsigned long long)(import->refused_here - REFUSALS_OF_FILE));
    import_print(import, more);
}

void refusals_end(struct import *import)
{
    char rest[128];
    if (import->refusals_printed < REFUSALS_PRINTED_MAX ||
        import->result.refused == import->refusals_printed)
        return;
    snprintf(rest, sizeof rest, "... and %llu more, in all files",
             (unsigned long long)(import->result.refused - import->refusals_printed));
    import_print(import, rest);
}

void **import_state(struct import *import)
{
    return import->source_state;
}
