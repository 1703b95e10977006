/* cxx_name.c: demangles the names of C++ functions and shortens them. */
#include "lib/trace/cxx_name.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/text.h"

enum { LONG_NAME = 48 }; /* columns from which arguments are left out */

/* A symbol of 250 characters can stand for gigabytes: what it refers back to is written again, and
 * may itself refer back. The demangler gets those that stand for 1 MB at most. */
enum { EXPANSION_BITS = 20, PACK_BITS = 8 };

/* As <cxxabi.h> declares it: text from malloc, or NULL. */
typedef char *demangler(const char *mangled, char *buffer, size_t *length, int *status);

static demangler *demangle;

/* Loaded, not linked: ddpcheck runs without a C++ library, too. */
static void load_demangler(void)
{
    void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
    if (library)
        *(void **)&demangle = dlsym(library, "__cxa_demangle");
}

bool cxx_name_is(const char *symbol)
{
    return !strncmp(symbol, "_Z", 2);
}

/* "{lambda(int)#1}", "<A, B>", "(int)": how deep in brackets a character is; angle brackets count
 * outside parentheses only, within which they may be operators. */
struct nesting {
    int round, angle;
    char before;
};

static void nesting_add(struct nesting *nesting, char added)
{
    if (added == '(' || added == '{')
        nesting->round++;
    else if (added == ')' || added == '}')
        nesting->round--;
    else if (nesting->round == 0 && added == '<')
        nesting->angle++;
    else if (nesting->round == 0 && added == '>' && nesting->before != '-')
        nesting->angle--;
    nesting->before = added;
}

static bool is_outside(const struct nesting *nesting)
{
    return nesting->round == 0 && nesting->angle == 0;
}

/* "operator<", "operator()": what follows are no brackets. NULL if there is no operator. */
static char *find_operator(char *name)
{
    char *found = strstr(name, "operator");
    bool begins = found && (found == name || found[-1] == ':' || found[-1] == ' ');
    return begins ? found : NULL;
}

/* Cuts " [clone .part.0]", the parameters and " const" behind them. */
static void cut_parameters(char *name)
{
    char *clone = strstr(name, " [clone "), *last;
    int depth = 0;
    if (clone)
        *clone = '\0';
    if (!(last = strrchr(name, ')')))
        return;
    char *begin = last;
    for (; begin > name; begin--) {
        depth += *begin == ')';
        depth -= *begin == '(';
        if (depth == 0)
            break;
    }
    if (strncmp(begin, "(anonymous namespace)", strlen("(anonymous namespace)")) != 0)
        *begin = '\0';
}

/* Where the name begins behind the return type, which those of templates have. */
static char *skip_return_type(char *name)
{
    struct nesting nesting = {0};
    const char *operator_at = find_operator(name);
    char *begin = name;
    for (char *at = name; *at && at != operator_at; at++) {
        nesting_add(&nesting, *at);
        if (*at == ' ' && is_outside(&nesting))
            begin = at + 1;
    }
    return begin;
}

/* The bracket that closes the one that `at` begins with, or the end. */
static const char *find_closing(const char *at)
{
    struct nesting nesting = {0};
    for (; *at; at++) {
        nesting_add(&nesting, *at);
        if (is_outside(&nesting))
            break;
    }
    return at;
}

/* What stands for the arguments that begin here; NULL if none do. */
static const char *short_arguments(const char *at)
{
    bool is_anonymous = !strncmp(at, "(anonymous namespace)", strlen("(anonymous namespace)"));
    if (*at == '(' && !is_anonymous)
        return "()";
    return *at == '<' ? "<...>" : NULL;
}

/* "f<std::vector<int> >(int)::{lambda(int)#1}" becomes "f<...>()::{lambda()#1}". */
static void cut_arguments(char *name)
{
    const char *operator_at = find_operator(name), *at = name;
    char *to = name;
    while (*at && at != operator_at) {
        const char *shorter = short_arguments(at), *end = shorter ? find_closing(at) : at;
        if (shorter && *end && end + 1 - at >= (long)strlen(shorter)) {
            memcpy(to, shorter, strlen(shorter));
            to += strlen(shorter);
            at = end + 1;
        } else {
            *to++ = *at++;
        }
    }
    memmove(to, at, strlen(at) + 1);
}

bool cxx_name_is_standard(const char *symbol)
{
    static const char *const beginnings[] = {"_ZSt", "_ZNSt", "_ZNKSt", "_ZN9__gnu_cxx"};
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (!strncmp(symbol, beginnings[i], strlen(beginnings[i])))
            return true;
    return false;
}

/* Logarithm to base 2, rounded up, of the longest text that a symbol may stand for: each reference
 * ("S1_", "T_") at most doubles what is before it, and a pack ("Dp", "sp") repeats its pattern.
 * Parts of identifiers that look like these count, too. */
static int count_expansion_bits(const char *symbol)
{
    int bits = 0;
    for (size_t length = strlen(symbol); length; length /= 2)
        bits++;
    for (const char *at = symbol; *at; at++) {
        if ((*at == 'S' || *at == 'T') &&
            at[1 + strspn(at + 1, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")] == '_')
            bits++;
        if ((*at == 'D' || *at == 's') && at[1] == 'p')
            bits += PACK_BITS;
    }
    return bits;
}

/* NULL: not demangled; too long, or there is no library for it. */
static char *demangle_with_library(const char *mangled)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int status = 0;
    pthread_once(&once, load_demangler);
    bool is_bounded = count_expansion_bits(mangled) <= EXPANSION_BITS;
    return demangle && is_bounded ? demangle(mangled, NULL, NULL, &status) : NULL;
}

char *cxx_name_of_type(const char *mangled, char *text, size_t bytes)
{
    char *name = demangle_with_library(mangled);
    snprintf(text, bytes, "%s", name ? name : mangled);
    free(name);
    return text;
}

char *cxx_name(const char *symbol, char *text, size_t bytes)
{
    char *name = cxx_name_is(symbol) ? demangle_with_library(symbol) : NULL;
    if (!name)
        return text_kernel_name(symbol, text, bytes);
    cut_parameters(name);
    char *begin = skip_return_type(name);
    if (strlen(begin) > LONG_NAME)
        cut_arguments(begin);
    snprintf(text, bytes, "%s", begin);
    free(name);
    return text;
}

const char *cxx_name_last(const char *name)
{
    struct nesting nesting = {0};
    const char *last = name;
    for (const char *at = name; *at; at++) {
        nesting_add(&nesting, *at);
        if (is_outside(&nesting) && at[0] == ':' && at[1] == ':')
            last = at + 2;
    }
    return last;
}
