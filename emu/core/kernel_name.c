/* kernel_name.c: finds a kernel's plain name in its mangled C++ name. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "emu/core/kernel.h"

/* Reads the Itanium C++ ABI's <source-name> "<length><identifier>" at *text and moves past it. */
static bool read_source_name(const char **text, const char **name, size_t *length)
{
    char *end;
    unsigned long count;

    if (!isdigit((unsigned char)**text))
        return false;
    count = strtoul(*text, &end, 10);
    if (count > strlen(end))
        return false;
    *name = end;
    *length = count;
    *text = end + count;
    return true;
}

/* _Z14conv2d_forward..., _ZL3foo... (internal linkage), _ZN5space3fooE...: the last identifier. */
char *emu_kernel_base_name(const char *mangled)
{
    const char *at = mangled, *name = mangled;
    size_t length = strlen(mangled);
    bool nested;

    if (strncmp(mangled, "_Z", 2))
        return strdup(mangled); /* extern "C" */
    at += 2;
    nested = *at == 'N';
    at += nested || *at == 'L';
    while (read_source_name(&at, &name, &length) && nested)
        at += *at == 'L';
    return strndup(name, length);
}

/* Bytes of one letter's parameter, and its alignment; moves past it. False if it is no letter. A
 * struct in brackets is taken as aligned to 4 bytes: its size alone does not show it, and kernels
 * pass structs of int32_t and float. */
static bool read_letter(const char **letters, struct emu_parameter *parameter, size_t *alignment)
{
    char letter = *(*letters)++;
    char *end;

    parameter->pointer = letter == 'p' || letter == 'P';
    switch (letter) {
    case 'p':
    case 'P':
    case 'l':
    case 'd':
        parameter->bytes = *alignment = 8;
        return true;
    case 'i':
    case 'f':
        parameter->bytes = *alignment = 4;
        return true;
    case '[':
        parameter->bytes = strtoul(*letters, &end, 10);
        *alignment = 4;
        *letters = end + 1;
        return *end == ']' && parameter->bytes && parameter->bytes <= EMU_MAX_PARAMETER_BYTES;
    default:
        return false;
    }
}

int emu_kernel_lay_out(const char *letters, struct emu_parameter *parameters)
{
    size_t offset = 0, alignment;
    int count = 0;

    while (*letters) {
        if (count == EMU_MAX_PARAMETERS || !read_letter(&letters, &parameters[count], &alignment))
            return -1;
        offset = (offset + alignment - 1) & ~(alignment - 1);
        parameters[count].offset = offset;
        offset += parameters[count++].bytes;
    }
    return count;
}
