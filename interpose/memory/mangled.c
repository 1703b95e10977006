/* mangled.c: reads the parameter list of a mangled name.
 *
 * A recursive descent over the grammar of the Itanium C++ ABI ("Name mangling", section 5.1), as
 * far as kernels' names need it. What counts is to keep the list of substitutions right, since S1_
 * may stand for "pointer to const float". Anything unknown makes the whole name unknown. */
#include "interpose/memory/mangled.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The thread that launches a kernel may have a stack of 16 KB (PTHREAD_STACK_MIN), which is in use:
 * a name that needs more than a quarter of it is left unread. */
enum { SUBSTITUTIONS = 128, STACK_BYTES = 4096 };

struct type {
    uint16_t pointers; /* a class that is an array of pointers: how many; 0 not known to be one */
    uint16_t value;    /* of a number that is a template argument */
    bool pointer : 1, to_const : 1; /* a pointer, and what it points to is const */
    bool is_const : 1;
    bool number : 1;   /* a builtin type */
    bool of_const : 1; /* a class whose template's first argument is a const type */
    bool is_view : 1;  /* a class, or its template, that has one pointer at its start */
};

struct name_reader {
    const char *at;
    struct type known[SUBSTITUTIONS]; /* S_, S0_, ... */
    struct type
        argument[SUBSTITUTIONS]; /* T_, T0_, ...: of the function's own template arguments */
    struct type nested;          /* what the last nested name stands for */
    int knowns, arguments;
    uintptr_t stack; /* where the reader's begins */
    bool view;       /* the last source name was that of a view */
    bool failed;
};

/* PyTorch's classes for a tensor: the address, then sizes and strides. Those of dimensions that the
 * tensor does not have are not initialized (TensorInfo.cuh, TensorAccessor.h). */
static const char *const views[] = {"10TensorInfo", "22PackedTensorAccessor32",
                                    "27GenericPackedTensorAccessor"};

static const struct type plain, number = {.number = true};

static struct type read_type(struct name_reader *r);
static struct type read_template_arguments(struct name_reader *r, bool keep);

static struct type fail_reading(struct name_reader *r)
{
    r->failed = true;
    return plain;
}

static struct type add_substitution(struct name_reader *r, struct type type)
{
    if (r->knowns == SUBSTITUTIONS)
        return fail_reading(r);
    r->known[r->knowns++] = type;
    return type;
}

static bool take_char(struct name_reader *r, char c)
{
    if (*r->at != c)
        return false;
    r->at++;
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void skip_counted_name(struct name_reader *r)
{
    size_t length = 0;
    while (is_digit(*r->at) && length < 100000)
        length = length * 10 + (size_t)(*r->at++ - '0');
    if (!length || strnlen(r->at, length) < length)
        fail_reading(r);
    else
        r->at += length;
}

static void skip_source_name(struct name_reader *r)
{
    r->view = false;
    for (size_t i = 0; i < sizeof views / sizeof *views; i++)
        r->view |= !strncmp(r->at, views[i], strlen(views[i]));
    skip_counted_name(r);
    while (!r->failed && take_char(r, 'B')) /* ABI tag */
        skip_counted_name(r);
}

/* "_" is 0, "0_" is 1, ... in the given base. Returns -1 if it is none. */
static int read_sequence(struct name_reader *r, int base)
{
    int value = 0;
    if (take_char(r, '_'))
        return 0;
    while (*r->at && *r->at != '_' && value < SUBSTITUTIONS) {
        char c = *r->at++;
        int digit = is_digit(c) ? c - '0' : base == 36 && c >= 'A' && c <= 'Z' ? c - 'A' + 10 : -1;
        if (digit < 0)
            return -1;
        value = value * base + digit;
    }
    return take_char(r, '_') ? value + 1 : -1;
}

/* After the S. Sets *named if a name follows that is not part of the list (std::). */
static struct type read_substitution(struct name_reader *r, bool *std)
{
    *std = false;
    if (take_char(r, 't')) {
        *std = true;
        return plain;
    }
    if (*r->at && strchr("absiod", *r->at)) {
        r->at++;
        return plain;
    }
    int index = read_sequence(r, 36);
    return index < 0 || index >= r->knowns ? fail_reading(r) : r->known[index];
}

/* One part of a name: source name, constructor, operator. */
static void read_unqualified(struct name_reader *r)
{
    take_char(r, 'L');
    if (is_digit(*r->at))
        skip_source_name(r);
    else if (*r->at >= 'a' && *r->at <= 'z' && r->at[1] >= 'a' && r->at[1] <= 'z' &&
             strncmp(r->at, "cv", 2))
        r->at += 2;
    else
        fail_reading(r);
}

/* N ... E. Of a function's name the whole is no substitution, of a type's it is. Returns whether
 * the last part has template arguments. */
static bool read_nested(struct name_reader *r, bool function)
{
    bool templated = false, first = true, std;
    struct type last = plain;
    while (*r->at && strchr("rVKRO", *r->at))
        r->at++;
    while (!r->failed && !take_char(r, 'E')) {
        bool listed = false, of_view = last.is_view;
        templated = false;
        last = plain;
        if (first && take_char(r, 'S')) {
            last.is_view = read_substitution(r, &std).is_view;
            listed = true;
        } else if (*r->at == 'I' && !first) {
            last = read_template_arguments(r, function);
            last.is_view = of_view;
            templated = true;
        } else if (*r->at == 'T') {
            read_type(r);
            listed = true;
        } else {
            read_unqualified(r);
            last.is_view = r->view;
        }
        if (!listed && !(function && *r->at == 'E'))
            add_substitution(r, last);
        first = false;
    }
    r->nested = last;
    return templated;
}

static struct type read_literal(struct name_reader *r)
{
    if (*r->at == '_') /* the address of a function or object */
        return fail_reading(r);
    struct type type = read_type(r);
    for (; *r->at && *r->at != 'E'; r->at++)
        if (is_digit(*r->at) && type.value < SUBSTITUTIONS)
            type.value = (uint16_t)(type.value * 10 + (*r->at - '0'));
    return take_char(r, 'E') ? type : fail_reading(r);
}

/* TensorInfo<const float, int>, TensorAccessor<Sizes, const float, ...> and what has it as its
 * first argument. */
static bool is_of_const(const struct type *arguments, int count)
{
    for (int i = 0; i < count && i < 2; i++)
        if (!arguments[i].pointer && (arguments[i].is_const || arguments[i].of_const))
            return true;
    return false;
}

/* A class of a pointer's type and a number is an array: std::array, at::detail::Array, ... */
static struct type class_of(const struct type *arguments, int count)
{
    bool is_array = count == 2 && arguments[0].pointer && arguments[1].number;
    return (struct type){.pointers = is_array ? arguments[1].value : 0,
                         .of_const = is_of_const(arguments, count)};
}

/* X ... E, of one of the function's own template arguments: std::conditional<B, ...>. */
static void read_expression(struct name_reader *r)
{
    if (!take_char(r, 'T') || read_sequence(r, 10) < 0 || !take_char(r, 'E'))
        fail_reading(r);
}

/* I ... E. `keep`: these are the arguments that T_ refers to. Returns the class that a template
 * gives with them. */
static struct type read_template_arguments(struct name_reader *r, bool keep)
{
    struct type first[2]; /* a class is known by these */
    int count = 0, packs = 0;
    if (!take_char(r, 'I'))
        fail_reading(r);
    while (!r->failed && (packs || *r->at != 'E')) {
        struct type type = plain;
        if (packs && take_char(r, 'E')) {
            packs--;
            continue;
        }
        if (take_char(r, 'J'))
            packs++;
        else if (take_char(r, 'L'))
            type = read_literal(r);
        else if (take_char(r, 'X'))
            read_expression(r);
        else
            type = read_type(r);
        if (count == SUBSTITUTIONS)
            return fail_reading(r);
        if (count < (int)(sizeof first / sizeof *first))
            first[count] = type;
        if (keep)
            r->argument[count] = type;
        count++;
    }
    if (r->failed || !take_char(r, 'E'))
        return fail_reading(r);
    if (keep)
        r->arguments = count;
    return class_of(first, count);
}

static struct type read_class(struct name_reader *r)
{
    if (*r->at == 'N') {
        r->at++;
        read_nested(r, false);
        return r->nested;
    }
    skip_source_name(r);
    add_substitution(r, plain);
    return *r->at == 'I' ? add_substitution(r, read_template_arguments(r, false)) : plain;
}

static struct type read_substituted(struct name_reader *r)
{
    bool std;
    struct type type = read_substitution(r, &std);
    if (std)
        return read_class(r);
    return *r->at == 'I' ? add_substitution(r, read_template_arguments(r, false)) : type;
}

/* Types made of another type: pointers, references, qualified ones, arrays, function types. */
static struct type read_compound(struct name_reader *r, char c)
{
    struct type type = plain, inner;
    switch (c) {
    case 'P':
        inner = read_type(r);
        return add_substitution(r, (struct type){.pointer = true, .to_const = inner.is_const});
    case 'K':
    case 'V':
    case 'r':
        type = read_type(r);
        type.is_const |= c == 'K';
        return add_substitution(r, type);
    case 'A':
        while (is_digit(*r->at))
            r->at++;
        if (!take_char(r, '_'))
            return fail_reading(r);
        inner = read_type(r);
        return add_substitution(r, (struct type){.is_const = inner.is_const});
    case 'F':
        while (!r->failed && !take_char(r, 'E'))
            read_type(r);
        return add_substitution(r, plain);
    case 'M':
        read_type(r);
        /* fall through */
    default: /* R, O, C, G */
        read_type(r);
        return add_substitution(r, plain);
    }
}

/* D followed by a letter: builtin types of two letters. */
static struct type read_extended(struct name_reader *r)
{
    if (*r->at == 'F') { /* DF16_, DF16b: half and bfloat16 */
        r->at++;
        while (is_digit(*r->at))
            r->at++;
        return take_char(r, '_') || take_char(r, 'b') ? number : fail_reading(r);
    }
    if (!*r->at || !strchr("hdefiusanc", *r->at))
        return fail_reading(r);
    r->at++;
    return number;
}

static struct type read_any(struct name_reader *r)
{
    char c = *r->at;
    if (is_digit(c) || c == 'N')
        return read_class(r);
    if (c)
        r->at++;
    if (c && strchr("vwbcahstijlmxynofdegz", c))
        return number;
    if (c && strchr("PKVrAFMROCG", c))
        return read_compound(r, c);
    if (c == 'S')
        return read_substituted(r);
    if (c == 'D')
        return read_extended(r);
    if (c == 'u') {
        skip_source_name(r);
        return add_substitution(r, plain);
    }
    if (c == 'T') {
        int index = read_sequence(r, 10);
        return index < 0 || index >= r->arguments
                   ? (r->arguments ? fail_reading(r) : add_substitution(r, plain))
                   : add_substitution(r, r->argument[index]);
    }
    return fail_reading(r);
}

static struct type read_type(struct name_reader *r)
{
    bool is_deep = r->stack - (uintptr_t)__builtin_frame_address(0) > STACK_BYTES;
    return r->failed || is_deep ? fail_reading(r) : read_any(r);
}

/* The function's name. Returns whether it ends in template arguments: then a return type follows.
 */
static bool read_mangled_name(struct name_reader *r)
{
    if (take_char(r, 'N'))
        return read_nested(r, true);
    if (!strncmp(r->at, "St", 2))
        r->at += 2;
    read_unqualified(r);
    if (*r->at != 'I')
        return false;
    add_substitution(r, plain);
    read_template_arguments(r, true);
    return true;
}

int mangled_parameters(const char *name, struct mangled_parameter *parameters, int max)
{
    struct name_reader r = {.at = name, .stack = (uintptr_t)__builtin_frame_address(0)};
    if (strncmp(name, "_Z", 2))
        return -1;
    r.at += 2;
    if (read_mangled_name(&r))
        read_type(&r);
    int count = 0;
    if (*r.at == 'v' && !r.at[1])
        r.at++;
    while (!r.failed && *r.at && *r.at != '.') {
        struct type type = read_type(&r);
        if (count == max)
            return -1;
        parameters[count].kind = type.number ? MANGLED_NUMBER : MANGLED_CLASS;
        if (type.pointer)
            parameters[count].kind = type.to_const ? MANGLED_READS : MANGLED_WRITES;
        parameters[count].is_view = type.is_view;
        parameters[count].of_const = type.of_const;
        parameters[count++].pointers = type.pointers;
    }
    return r.failed ? -1 : count;
}
