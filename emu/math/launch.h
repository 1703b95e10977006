/* launch.h: what a math library launches, seen from outside as on a GPU: a kernel with a name and
 * with pointers, through the driver's entry point, where a shim may stand. It computes nothing. */
#ifndef DDPCHECK_EMU_MATH_LAUNCH_H
#define DDPCHECK_EMU_MATH_LAUNCH_H

#include <stddef.h>

enum { MATH_TOUCHES_MAX = 24 };

/* The memory that a call works on: `letters` has an r (reads) or a w (writes) for each. */
struct math_touches {
    int count;
    char letters[MATH_TOUCHES_MAX + 1];
    void *pointers[MATH_TOUCHES_MAX];
};

void math_add_touch(struct math_touches *touches, char letter, void *pointer);

/* Launches a kernel that is called `name`. A stream that is none any more is taken for the default
 * stream. */
void math_launch(const char *name, const struct math_touches *touches, void *stream);

/* A handle of a library, and its stream. Any other pointer has the default stream. */
void *math_handle_create(void);
void math_handle_destroy(void *handle);
void math_handle_set_stream(void *handle, void *stream);
void *math_handle_stream(void *handle);

#endif
