/* nvtx_marks.c: parses NVTX marks that announce the versions of tensors. */
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
static bool skip_word(const char **text, const char *word)
{
    size_t bytes = strlen(word);
    if (strncmp(*text, word, bytes))
        return false;
    *text += bytes;
    return true;
}

static int digit_value(char c, unsigned base)
{
    int value = -1;
    if (c >= '0' && c <= '9')
        value = c - '0';
    else if (c >= 'a' && c <= 'f')
        value = c - 'a' + 10;
    else if (c >= 'A' && c <= 'F')
        value = c - 'A' + 10;
    return value >= 0 && (unsigned)value < base ? value : -1;
}

static bool parse_mark_number(const char **text, uint64_t *value)
{
    unsigned base = skip_word(text, "0x") || skip_word(text, "0X") ? 16 : 10;
    const char *first = *text;
    *value = 0;
    for (int digit; (digit = digit_value(**text, base)) >= 0; ++*text)
        if (__builtin_mul_overflow(*value, (uint64_t)base, value) ||
            __builtin_add_overflow(*value, (uint64_t)digit, value))
            return false;
    return *text > first;
}

bool tensor_mark_parse(const char *text, struct tensor_mark *mark)
{
    if (!text || !skip_word(&text, "ddpcheck:"))
        return false;
    *mark =
        (struct tensor_mark){.version = RECORD_NO_VERSION, .saved = RECORD_NO_VERSION, .name = ""};
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs && !mark->api; i++)
        if (skip_word(&text, verbs[i].word))
            mark->api = verbs[i].api;
    if (!mark->api || *text != ' ')
        return false;
    bool has_tensor = false;
    for (;;) {
        while (*text == ' ')
            text++;
        if (skip_word(&text, "name=")) {
            mark->name = text;
            mark->name_bytes = strnlen(text, NAME_BYTES);
            return has_tensor;
        }
        uint64_t *value = NULL;
        if (skip_word(&text, "tensor=")) {
            value = &mark->tensor;
            has_tensor = true;
        } else if (skip_word(&text, "version=")) {
            value = &mark->version;
        } else if (skip_word(&text, "saved=")) {
            value = &mark->saved;
        }
        if (value ? !parse_mark_number(&text, value) : *text != 0)
            return false;
        if (!*text)
            return has_tensor;
    }
}
