/* text.c: writes text of the job by the rules of each export format. */
#include "cmd/export/text.h"

#include <ctype.h>
#include <string.h>

size_t utf8_length(const char *text)
{
    static const struct {
        unsigned char mask, lead;
        unsigned least;
    } form[] = {{0x80, 0, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    const unsigned char *byte = (const unsigned char *)text;
    for (size_t length = 1; length <= 4; length++) {
        if ((byte[0] & form[length - 1].mask) != form[length - 1].lead)
            continue;
        unsigned code = byte[0] & (unsigned char)~form[length - 1].mask;
        for (size_t i = 1; i < length; i++) {
            if ((byte[i] & 0xc0) != 0x80)
                return 0;
            code = code << 6 | (byte[i] & 0x3f);
        }
        return code < form[length - 1].least || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)
                   ? 0
                   : length;
    }
    return 0;
}

void text_json(const char *text, FILE *out)
{
    static const char named[] = "\b\t\n\f\r\"\\", name[] = "btnfr\"\\";
    putc('"', out);
    while (*text) {
        size_t length = utf8_length(text);
        unsigned char c = (unsigned char)*text;
        const char *is_named = strchr(named, c);
        if (is_named)
            fprintf(out, "\\%c", name[is_named - named]);
        else if (c < 0x20 || c == 0x7f || c == '<')
            fprintf(out, "\\u%04x", c);
        else if (length)
            fwrite(text, 1, length, out);
        else
            putc('?', out);
        text += length ? length : 1;
    }
    putc('"', out);
}

void text_xml(const char *text, FILE *out)
{
    while (*text) {
        size_t length = utf8_length(text);
        unsigned char c = (unsigned char)*text;
        bool no_character = length == 3 && c == 0xef && (unsigned char)text[1] == 0xbf &&
                            (unsigned char)text[2] >= 0xbe;
        if (c == '&' || c == '<' || c == '>' || c == '"')
            fputs(c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : "&quot;", out);
        else if (!length || no_character || (c < 0x20 && c != '\n' && c != '\t'))
            putc('?', out);
        else
            fwrite(text, 1, length, out);
        text += length ? length : 1;
    }
}

void text_csv(const char *text, FILE *out)
{
    if (!text[strcspn(text, ",\"\r\n")]) {
        fputs(text, out);
        return;
    }
    putc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            putc('"', out);
        putc(*text, out);
    }
    putc('"', out);
}

void text_uri(const char *path, char *uri, size_t bytes)
{
    size_t used = 0;
    for (; *path && used + 4 < bytes; path++) {
        if (isalnum((unsigned char)*path) || strchr("-._~/", *path))
            uri[used++] = *path;
        else
            used += (size_t)sprintf(uri + used, "%%%02X", (unsigned char)*path);
    }
    uri[used] = '\0';
}
