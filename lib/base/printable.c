/* printable.c: finds what of a text may not be printed. */
#include "lib/base/printable.h"

#include <string.h>

struct utf8_form {
    unsigned char mask, lead;
    uint32_t least;
};

static const struct utf8_form forms[] = {
    {0x80, 0, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};

/* First and last of what is not printed. Unicode 15, "Bidi_Control" and "White_Space". */
static const struct {
    uint32_t first, last;
} unprintable[] = {{0, 0x1f},        {0x7f, 0x9f},     {0x61c, 0x61c},
                   {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069},
                   {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f}};

/* The character, and its bytes; 0 bytes if there is none. */
static uint32_t utf8_decode(const char *text, size_t *bytes)
{
    const unsigned char *byte = (const unsigned char *)text;
    *bytes = 0;
    for (size_t length = 1; length <= 4; length++) {
        const struct utf8_form *form = &forms[length - 1];
        if ((byte[0] & form->mask) != form->lead)
            continue;
        uint32_t code = byte[0] & (unsigned char)~form->mask;
        for (size_t i = 1; i < length; i++) {
            if ((byte[i] & 0xc0) != 0x80)
                return 0;
            code = code << 6 | (byte[i] & 0x3f);
        }
        if (code < form->least || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
            return 0;
        *bytes = length;
        return code;
    }
    return 0;
}

size_t utf8_length(const char *text)
{
    size_t bytes;
    utf8_decode(text, &bytes);
    return bytes;
}

bool printable_next(const char *text, size_t *bytes)
{
    uint32_t code = utf8_decode(text, bytes);
    bool is_character = *bytes > 0;
    *bytes = is_character ? *bytes : 1;
    for (size_t i = 0; is_character && i < sizeof unprintable / sizeof unprintable[0]; i++)
        if (code >= unprintable[i].first && code <= unprintable[i].last)
            return false;
    return is_character;
}

void printable_put(const char *text, size_t bytes, FILE *out)
{
    size_t length;
    for (const char *end = text + bytes; text < end; text += length) {
        if (printable_next(text, &length))
            fwrite(text, 1, length, out);
        else
            putc('?', out);
    }
}

static void clean_but(char *text, const char *kept)
{
    size_t length;
    char *to = text;
    for (; *text; text += length) {
        bool prints = printable_next(text, &length) || strchr(kept, *text);
        if (prints)
            memmove(to, text, length);
        else
            *to = '?';
        to += prints ? length : 1;
    }
    *to = 0;
}

void printable_clean(char *text)
{
    clean_but(text, "");
}

void printable_clean_lines(char *text)
{
    clean_but(text, "\n\t");
}
