/* text.c: writes text of the job by the rules of each export format. */
#include "cmd/export/text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

void text_json(const char *text, FILE *out)
{
    static const char named[] = "\t\n\"\\", name[] = "tn\"\\";
    putc('"', out);
    while (*text) {
        size_t length;
        bool prints = printable_next(text, &length);
        unsigned char c = (unsigned char)*text;
        const char *is_named = strchr(named, c);
        if (is_named)
            fprintf(out, "\\%c", name[is_named - named]);
        else if (c == '<')
            fputs("\\u003c", out);
        else if (prints)
            fwrite(text, 1, length, out);
        else
            putc('?', out);
        text += length;
    }
    putc('"', out);
}

void text_xml(const char *text, FILE *out)
{
    while (*text) {
        size_t length;
        bool prints = printable_next(text, &length);
        unsigned char c = (unsigned char)*text;
        bool no_character = length == 3 && c == 0xef && (unsigned char)text[1] == 0xbf &&
                            (unsigned char)text[2] >= 0xbe;
        if (c == '&' || c == '<' || c == '>' || c == '"')
            fputs(c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : "&quot;", out);
        else if (no_character || (!prints && c != '\n' && c != '\t'))
            putc('?', out);
        else
            fwrite(text, 1, length, out);
        text += length;
    }
}

/* Spreadsheets run a cell that begins so, unless it is a number. */
static bool is_formula(const char *text)
{
    char *end;
    if (!*text || !strchr("=+-@\t\r", *text))
        return false;
    strtod(text, &end);
    return end == text || *end;
}

void text_csv(const char *text, FILE *out)
{
    bool formula = is_formula(text);
    if (!formula && !text[strcspn(text, ",\"\r\n")]) {
        fputs(text, out);
        return;
    }
    fputs(formula ? "\"'" : "\"", out);
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
