/* secrets.c: see secrets.h. */
#include "lib/base/secrets.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

/* Numbers of tokens have fewer digits (vocabularies below ten million); bearer tokens have more
 * characters than words of a sentence that speaks of them. */
enum { NUMBER_DIGITS = 7, BEARER_BYTES = 8, MASK_BYTES = 3 };

enum name_kind {
    NAME_OTHER,
    NAME_SHORT,   /* key, pass, auth: only where a value is assigned; "key: .." is said of stores */
    NAME_COUNTED, /* token, api_key: the value may be a number, which is no secret */
    NAME_SECRET,
    NAME_HEADER /* Authorization: the rest of the line */
};

struct span {
    const char *at, *end;
};

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
}

static bool is_quote(char c)
{
    return c == '"' || c == '\'' || c == '`';
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == 0;
}

static bool word_ends_with(struct span word, const char *end)
{
    size_t length = strlen(end);
    return (size_t)(word.end - word.at) >= length && !strncasecmp(word.end - length, end, length);
}

static bool word_is(struct span word, const char *text)
{
    return (size_t)(word.end - word.at) == strlen(text) && word_ends_with(word, text);
}

/* The part of a name that says what it is: "token" of --hub-token. */
static struct span last_part(struct span word)
{
    struct span part = word;
    for (const char *at = word.at; at < word.end; at++)
        if (*at == '_' || *at == '-' || *at == '.')
            part.at = at + 1;
    return part;
}

static bool is_key(struct span word, struct span part)
{
    static const char *const joined[] = {"apikey", "accesskey", "secretkey", "privatekey"};
    bool is_found = word_is(part, "key") && part.at > word.at && word.at[0] != '-';
    is_found |= word.at[0] == '-' && word_is(part, "key");
    is_found |= part.end - part.at > 3 && !memcmp(part.end - 3, "Key", 3);
    for (size_t i = 0; i < sizeof joined / sizeof *joined; i++)
        is_found |= word_ends_with(part, joined[i]);
    return is_found;
}

static enum name_kind kind_of(struct span word)
{
    static const char *const secrets[] = {"secret",     "password",    "passwd",
                                          "passphrase", "credentials", "credential"};
    struct span part = last_part(word);
    if (word_is(part, "authorization"))
        return NAME_HEADER;
    for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++)
        if (word_ends_with(part, secrets[i]))
            return NAME_SECRET;
    if (word_ends_with(part, "token") || is_key(word, part))
        return NAME_COUNTED;
    if (word_is(part, "key") || word_is(part, "pass") || word_is(part, "auth") ||
        (word_is(part, "pwd") && part.at > word.at))
        return NAME_SHORT;
    return NAME_OTHER;
}

/* What services' tokens begin with, and how many letters and digits stand behind that without
 * another character between, at least: shorter words are names. */
static const struct token_kind {
    const char *begin;
    size_t least;
} token_kinds[] = {
    {"hf_", 30},         /* Hugging Face, "User access tokens": 34 */
    {"sk-", 16},         /* OpenAI, Anthropic: "sk-proj-", "sk-ant-", then base64url */
    {"ghp_", 30},        /* GitHub, "About authentication to GitHub", token formats: 36 */
    {"gho_", 30},        /* the same, OAuth */
    {"ghu_", 30},        /* the same, an app's user */
    {"ghs_", 30},        /* the same, an installation */
    {"ghr_", 30},        /* the same, to refresh */
    {"github_pat_", 20}, /* the same, fine-grained: 22, "_", 59 */
    {"glpat-", 16},      /* GitLab, "Token overview": 20 or more */
    {"AKIA", 16},        /* AWS, "IAM identifiers", unique ids: 16 */
    {"ASIA", 16},        /* the same, temporary */
    {"AIza", 16},        /* Google Cloud, API keys: 35 of base64url */
    {"nvapi-", 16},      /* NVIDIA NGC, personal keys: 64 of base64url */
    {"xoxb-", 10},       /* Slack, "Token types", bot: numbers and 24 letters */
    {"xoxp-", 10},       /* the same, user */
    {"eyJ", 16},         /* RFC 7519: a header '{"' in base64url; that of HS256 has 20 in all */
};

static size_t longest_run(const char *at, const char *end)
{
    size_t longest = 0, run = 0;
    for (; at < end; at++) {
        run = *at == '_' || *at == '-' || *at == '.' ? 0 : run + 1;
        longest = run > longest ? run : longest;
    }
    return longest;
}

/* The word without the end of a sentence if it is a token by itself; else nothing. */
static struct span find_token(struct span word)
{
    while (word.end > word.at && word.end[-1] == '.')
        word.end--;
    for (size_t i = 0; i < sizeof token_kinds / sizeof *token_kinds; i++) {
        size_t bytes = strlen(token_kinds[i].begin);
        if ((size_t)(word.end - word.at) > bytes && !memcmp(word.at, token_kinds[i].begin, bytes) &&
            longest_run(word.at + bytes, word.end) >= token_kinds[i].least)
            return word;
    }
    return (struct span){word.at, word.at};
}

/* "InvalidToken: ..." is the type of an exception, and what follows its message. */
static bool is_type_name(struct span word)
{
    bool has_lower = false, has_inner_upper = false;
    for (const char *at = word.at; at < word.end; at++) {
        if (*at == '_' || *at == '-')
            return false;
        has_inner_upper |= has_lower && *at >= 'A' && *at <= 'Z';
        has_lower |= *at >= 'a' && *at <= 'z';
    }
    return has_inner_upper && last_part(word).at[0] >= 'A' && last_part(word).at[0] <= 'Z';
}

static const char *skip(const char *at, const char *end, const char *characters)
{
    while (at < end && *at && strchr(characters, *at))
        at++;
    return at;
}

/* Where the value of the name begins; NULL: there is none. */
static const char *find_value(struct span word, enum name_kind kind, const char *end)
{
    const char *at = word.end;
    bool is_option = word.at[0] == '-';
    if (at < end && is_quote(*at))
        at++;
    const char *next = skip(at, end, " \t");
    if (next < end && *next == '=' && !(next + 1 < end && next[1] == '='))
        return skip(next + 1, end, " \t");
    if (next < end && *next == ':' && !(end - next > 2 && next[1] == '/' && next[2] == '/'))
        return kind == NAME_SHORT || is_type_name(word) ? NULL : skip(next + 1, end, " \t");
    if (!is_option || at == end)
        return NULL;
    if (*at == 0)
        return at + 1 < end && at[1] != '-' ? at + 1 : NULL;
    next = skip(at, end, ", \t"); /* of a command that an exception prints, maybe as a list */
    bool is_argument = next > at && next < end && *next != '-' &&
                       !(is_quote(*next) && next + 1 < end && next[1] == '-');
    return is_argument ? next : NULL;
}

static struct span span_of_value(struct span word, enum name_kind kind, const char *at,
                                 const char *end, bool has_arguments)
{
    struct span value = {at, at};
    if (at < end && is_quote(*at)) {
        value.at = at + 1;
        value.end = memchr(at + 1, *at, (size_t)(end - at - 1));
        if (!value.end)
            value.end = end;
        return value;
    }
    bool is_argument = has_arguments && word.at[0] == '-';
    while (value.end < end && *value.end) {
        char c = *value.end;
        bool ends = kind == NAME_HEADER ? c == '\n' || is_quote(c)
                                        : is_space(c) || is_quote(c) || c == '&';
        if (ends && !is_argument)
            break;
        value.end++;
    }
    while (!is_argument && value.end > value.at && strchr(",;.)]}", value.end[-1]))
        value.end--;
    return value;
}

static bool is_secret(struct span value, enum name_kind kind)
{
    static const char *const constants[] = {"true", "false", "none", "null"};
    size_t bytes = (size_t)(value.end - value.at), digits = 0;
    if (!bytes || *value.at == '*')
        return false;
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (word_is(value, constants[i]))
            return false;
    while (digits < bytes && value.at[digits] >= '0' && value.at[digits] <= '9')
        digits++;
    return !(kind != NAME_SECRET && digits == bytes && digits <= NUMBER_DIGITS);
}

/* What follows the name at `at` and is a secret; empty: nothing. */
static struct span find_secret(struct span word, const char *end, bool has_arguments)
{
    struct span nothing = {word.end, word.end};
    if (word_is(word, "bearer") && word.end < end && *word.end == ' ') {
        struct span value = span_of_value(word, NAME_SECRET, word.end + 1, end, false);
        return value.end - value.at >= BEARER_BYTES ? value : nothing;
    }
    enum name_kind kind = kind_of(word);
    const char *at = kind == NAME_OTHER ? NULL : find_value(word, kind, end);
    if (!at || at > end)
        return nothing;
    struct span value = span_of_value(word, kind, at, end, has_arguments);
    return is_secret(value, kind) ? value : nothing;
}

/* user:password of scheme://user:password@host. */
static struct span find_user(const char *at, const char *end)
{
    struct span user = {at, at};
    for (const char *c = at; c < end && !is_space(*c) && !is_quote(*c) && !strchr("/?#<>", *c); c++)
        if (*c == '@')
            user.end = c;
    if (user.end > user.at && *user.at == '*')
        user.end = user.at;
    return user;
}

/* The next name, or "://", from `at` on, and the secret behind it; *next: where to go on. */
static struct span find_next_secret(const char *at, const char *end, bool has_arguments,
                                    const char **next)
{
    struct span secret = {at, at};
    *next = at + 1;
    if (end - at > 3 && !memcmp(at, "://", 3)) {
        secret = find_user(at + 3, end);
        *next = secret.end > secret.at ? secret.end : at + 3;
    } else if (is_name_byte(*at)) {
        struct span word = {at, at};
        while (word.end < end && is_name_byte(*word.end))
            word.end++;
        secret = find_token(word);
        if (secret.end == secret.at)
            secret = find_secret(word, end, has_arguments);
        *next = secret.end > secret.at ? secret.end : word.end;
    }
    return secret;
}

size_t secrets_mask(char *text, size_t bytes)
{
    const char *end = text + bytes;
    bool has_arguments = bytes && memchr(text, 0, bytes);
    char *to = text;
    for (const char *at = text, *next; at < end; at = next) {
        struct span secret = find_next_secret(at, end, has_arguments, &next);
        size_t masked = (size_t)(secret.end - secret.at);
        size_t before = (size_t)((masked ? secret.at : next) - at);
        memmove(to, at, before);
        to += before;
        masked = masked < MASK_BYTES ? masked : MASK_BYTES;
        memset(to, '*', masked);
        to += masked;
    }
    return (size_t)(to - text);
}

void secrets_mask_command(char *text, size_t bytes)
{
    bytes = secrets_mask(text, bytes);
    while (bytes && !text[bytes - 1])
        bytes--;
    for (size_t i = 0; i < bytes; i++)
        if (!text[i])
            text[i] = ' ';
    text[bytes] = 0;
}
