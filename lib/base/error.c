/* error.c: formats error messages. */
#include "lib/base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/printable.h"

int error_set(struct error *err, const char *format, ...)
{
    if (!err)
        return -1;
    va_list args;
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    printable_clean(err->text);
    return -1;
}

int error_memory(struct error *err, const char *format, ...)
{
    if (!err)
        return -1;
    va_list args;
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    struct error what = *err;
    return error_set(err, "%.*s: " OUT_OF_MEMORY,
                     (int)(sizeof err->text - sizeof OUT_OF_MEMORY) - 2, what.text);
}

int error_unreadable(struct error *err, const char *what, const char *name, int number)
{
    return error_set(err, "can't read %s%s: %s%s", what, name, strerror(number),
                     number == EACCES ? "; run this as the user who recorded it" : "");
}

int error_prefix(struct error *err, const char *format, ...)
{
    if (!err)
        return -1;
    struct error old = *err;
    va_list args;
    va_start(args, format);
    int used = vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    size_t at = used < 0 ? 0 : (size_t)used;
    if (at < sizeof err->text)
        snprintf(err->text + at, sizeof err->text - at, ": %s", old.text);
    printable_clean(err->text);
    return -1;
}
