/* mangled.h: what a function's mangled name (Itanium C++ ABI) reveals of its parameters. */
#ifndef DDPCHECK_MANGLED_H
#define DDPCHECK_MANGLED_H

#include <stdbool.h>

enum mangled_kind {
    MANGLED_NUMBER, /* of any type; no pointer lies in it */
    MANGLED_CLASS,  /* passed by value: pointers may lie in it */
    MANGLED_READS,  /* pointer to const */
    MANGLED_WRITES, /* pointer to something that may be written */
    MANGLED_UNKNOWN /* never returned; for callers who know nothing */
};

struct mangled_parameter {
    enum mangled_kind kind;
    unsigned pointers; /* MANGLED_CLASS: its size, if it is an array of pointers (std::array<float
                        *, 2>: 2); 0 not known */
    bool of_const; /* MANGLED_CLASS: a template for a const type, as TensorInfo<const float, int> */
    bool is_view;  /* MANGLED_CLASS: its first word is its only pointer */
};

/* Finds the kinds of the parameters. Returns how many there are (at most `max`), or -1 if the name
 * is not mangled, has more, or is made in a way that this reader does not know. */
int mangled_parameters(const char *name, struct mangled_parameter *parameters, int max);

#endif
