/* text.c: builds sentences piece by piece, hashes texts, and names communicators and kernels. */
#include "lib/base/text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/base/invariant.h"

enum { KERNEL_NAME_MOST = 1024 };

void text_add(struct text *text, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int need = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    bool has_room = need >= 0 &&
                    ARRAY_RESERVE(text->data, text->capacity, text->len + (size_t)need + 1);
    text->failed |= need >= 0 && !has_room;
    if (has_room)
        text->len +=
            (size_t)vsnprintf(text->data + text->len, text->capacity - text->len, format, again);
    va_end(again);
    invariant(!text->data || text->len < text->capacity, "a text ends inside of its room");
}

char *text_take(struct text *text)
{
    char *data = text->data;
    if (text->failed) {
        free(data);
        data = NULL;
    } else if (!data) {
        data = strdup("");
    }
    *text = (struct text){0};
    return data;
}

void text_cut(struct text *text, size_t len)
{
    if (len < text->len) {
        text->len = len;
        text->data[len] = '\0';
    }
}

void text_free(struct text *text)
{
    free(text->data);
    *text = (struct text){0};
}

uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ byte[i]) * UINT64_C(1099511628211);
    return hash;
}

uint64_t hash_text(uint64_t hash, const char *string)
{
    return hash_bytes(hash, string, strlen(string) + 1);
}

char *comm_name(uint64_t comm, char buffer[16])
{
    snprintf(buffer, 16, "comm %04x", (unsigned)(comm >> 48));
    return buffer;
}

char *text_drop_namespaces(char *name, size_t most)
{
    for (char *next; strlen(name) > most && (next = strstr(name, "::"));)
        name = next + 2;
    return name;
}

/* "void at::fill<float>(int)": at::fill. */
static void cut_demangled(char *name)
{
    static const char result[] = "void ", unnamed[] = "(anonymous namespace)::";
    const char *from = name + (strncmp(name, result, sizeof result - 1) ? 0 : sizeof result - 1);
    char *to = name, before = ' ';
    int nested = 0;
    for (; *from; before = *from++) {
        bool follows = isalnum((unsigned char)before) || before == '_' || before == '>';
        if (!strncmp(from, unnamed, sizeof unnamed - 1))
            from += sizeof unnamed - 2;
        else if (*from == '<' && (nested || follows))
            nested++;
        else if (*from == '>' && nested)
            nested--;
        else if (*from == '(' && follows && !nested)
            break;
        else if (!nested)
            *to++ = *from;
    }
    *to = '\0';
}

static void cut_mangled(const char *mangled, char *name, size_t bytes)
{
    const char *at = mangled + 2;
    size_t used = 0;
    bool is_nested = *at == 'N';
    at += is_nested;
    while (*at >= '1' && *at <= '9') {
        char *identifier;
        unsigned long length = strtoul(at, &identifier, 10);
        bool has_name = strncmp(identifier, "_GLOBAL__N_", 11) != 0; /* a namespace may have none */
        if (length > strlen(identifier) || (has_name && used + length + 3 > bytes))
            break;
        if (has_name)
            used += (size_t)snprintf(name + used, bytes - used, "%s%.*s", used ? "::" : "",
                                     (int)length, identifier);
        at = identifier + length;
        if (!is_nested) /* what follows is a parameter's type */
            break;
    }
}

char *text_kernel_name(const char *symbol, char *name, size_t bytes)
{
    char whole[KERNEL_NAME_MOST];
    snprintf(whole, sizeof whole, "%s", symbol);
    if (strncmp(symbol, "_Z", 2))
        cut_demangled(whole);
    else
        cut_mangled(symbol, whole, sizeof whole);
    snprintf(name, bytes, "%s", text_drop_namespaces(whole, bytes - 1));
    return name;
}
