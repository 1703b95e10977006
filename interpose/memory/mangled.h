/* mangled.h: what a function's mangled name (Itanium C++ ABI) reveals of its parameters. */
#ifndef DDPCHECK_MANGLED_H
#define DDPCHECK_MANGLED_H

enum mangled_kind {
    MANGLED_VALUE,  /* a number, a class: no pointer itself */
    MANGLED_READS,  /* pointer to const */
    MANGLED_WRITES, /* pointer to something that may be written */
    MANGLED_UNKNOWN /* never returned; for callers who know nothing */
};

/* Finds the kinds of the parameters. Returns how many there are (at most `max`), or -1 if the name
 * is not mangled, has more, or is made in a way that this reader does not know. */
int mangled_parameters(const char *name, enum mangled_kind *kinds, int max);

#endif
