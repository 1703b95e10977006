#include "interpose/plugin/nvtx_marks.h"

#include <string.h>

enum { NAME_BYTES = 128 };

static const struct {
    const char *word;
    enum api api;
} verbs[] = {
    {"save", API_ddpcheck_save},
    {"modify", API_ddpcheck_modify},
    {"use", API_ddpcheck_use},
};

/* Steps over `word` if the text begins with it. */
static bool skip(const char **text, const char *word)
{
    size_t bytes = strlen(word);
    if (strncmp(*text, word, bytes))
        return false;
    *text += bytes;
    return true;
}

static int digit_of(char c, unsigned base)
{
    int value = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
    return value >= 0 && (unsigned)value < base ? value : -1;
}

static bool number(const char **text, uint64_t *value)
{
    unsigned base = skip(text, "0x") || skip(text, "0X") ? 16 : 10;
    const char *first = *text;
    *value = 0;
    for (int digit; (digit = digit_of(**text, base)) >= 0; ++*text)
        if (__builtin_mul_overflow(*value, (uint64_t)base, value) ||
            __builtin_add_overflow(*value, (uint64_t)digit, value))
            return false;
    return *text > first;
}

bool tensor_mark_parse(const char *text, struct tensor_mark *mark)
{
    if (!text || !skip(&text, "ddpcheck:"))
        return false;
    *mark =
        (struct tensor_mark){.version = RECORD_NO_VERSION, .saved = RECORD_NO_VERSION, .name = ""};
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs && !mark->api; i++)
        if (skip(&text, verbs[i].word))
            mark->api = verbs[i].api;
    if (!mark->api || *text != ' ')
        return false;
    bool has_tensor = false;
    for (;;) {
        while (*text == ' ')
            text++;
        if (skip(&text, "name=")) {
            mark->name = text;
            mark->name_bytes = strnlen(text, NAME_BYTES);
            return has_tensor;
        }
        if (skip(&text, "tensor=")) {
            if (!(has_tensor = number(&text, &mark->tensor)))
                return false;
        } else if (skip(&text, "version=") ? !number(&text, &mark->version)
                   : skip(&text, "saved=") ? !number(&text, &mark->saved)
                                           : *text != 0) {
            return false;
        }
        if (!*text)
            return has_tensor;
    }
}
