/* image_ptx.c: finds the kernels of PTX text and the layout of their parameters ("PTX ISA", Kernel
 * Function Parameters). */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "emu/core/image_parts.h"

static bool is_ptx_letter(char letter)
{
    return isalnum((unsigned char)letter) || letter == '_' || letter == '$' || letter == '%';
}

static const char *skip_ptx_space(const char *text)
{
    return text + strspn(text, " \t\r\n");
}

static bool is_ptx_word(const char *text, const char *word)
{
    return !strncmp(text, word, strlen(word)) && !is_ptx_letter(text[strlen(word)]);
}

/* ".u64" has 8 bytes: scalar types end in their number of bits. 0: no type of a parameter. */
static size_t ptx_type_bytes(const char *word)
{
    enum { BITS_PER_BYTE = 8 };
    size_t letters;

    if (*word != '.')
        return 0;
    letters = 1 + strspn(word + 1, "bufs");
    return letters == 2 ? strtoul(word + letters, NULL, 10) / BITS_PER_BYTE : 0;
}

/* One parameter: ".param .align 8 .b8 name[24]", ".param .u64 .ptr .global .align 16 name". What
 * follows .ptr is about the memory that it points to. */
static bool read_ptx_parameter(const char **text, struct emu_parameter *parameter,
                               size_t *alignment)
{
    const char *at = skip_ptx_space(*text);
    size_t elements = 1, bytes = 0;

    if (!is_ptx_word(at, ".param"))
        return false;
    *alignment = 0;
    for (at++; *at && *at != ',' && *at != ')'; at++) {
        if (!bytes && is_ptx_word(at, ".align"))
            *alignment = strtoul(at + strlen(".align"), NULL, 10);
        else if (!bytes)
            bytes = ptx_type_bytes(at);
        else if (*at == '[')
            elements = strtoul(at + 1, NULL, 10);
    }
    if (!bytes || !elements)
        return false;
    *alignment = *alignment ? *alignment : bytes;
    parameter->bytes = bytes * elements;
    parameter->pointer = false;
    *text = at;
    return !(*alignment & (*alignment - 1)) && parameter->bytes <= EMU_MAX_PARAMETER_BYTES;
}

/* What follows a kernel's name: "(.param ..., .param ...)", or nothing if it takes none. */
static int read_ptx_parameters(const char *text, struct emu_parameter *parameters)
{
    size_t offset = 0, alignment;
    int count = 0;

    text = skip_ptx_space(text);
    if (*text != '(' || *skip_ptx_space(text + 1) == ')')
        return 0;
    do {
        text++;
        if (count == EMU_MAX_PARAMETERS ||
            !read_ptx_parameter(&text, &parameters[count], &alignment))
            return EMU_PARAMETERS_UNKNOWN;
        offset = (offset + alignment - 1) & ~(alignment - 1);
        parameters[count].offset = offset;
        offset += parameters[count++].bytes;
    } while (*text == ',');
    return count;
}

/* ".entry NAME(...)", wherever comments do not hide it. */
bool image_read_ptx(struct image_visit *visit, const char *text)
{
    struct emu_image_kernel kernel;

    if (!strstr(text, ".version"))
        return false;
    while ((text = strpbrk(text, "./")) && !visit->stopped) {
        if (!strncmp(text, "//", 2)) {
            text += strcspn(text, "\n");
            continue;
        }
        if (!strncmp(text, "/*", 2)) {
            text = strstr(text, "*/");
            if (!text)
                break;
        }
        if (!is_ptx_word(text, ".entry")) {
            text++;
            continue;
        }
        kernel.length = 0;
        kernel.name = skip_ptx_space(text + strlen(".entry"));
        while (is_ptx_letter(kernel.name[kernel.length]))
            kernel.length++;
        text = kernel.name + kernel.length;
        kernel.count = read_ptx_parameters(text, kernel.parameters);
        image_visit_kernel(visit, &kernel);
    }
    return true;
}
