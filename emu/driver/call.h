/* call.h: the frame of every driver API function, as emu/cudart/call.h is for the runtime.
 *
 * Functions are named by their symbol, version suffix included: what cuda.h makes of the plain
 * name. The errors of the two APIs share their numbers, so what the machine returns is passed on.
 *
 * DRIVER_CALL needs an initialised driver, CONTEXT_CALL also a current context on a device that has
 * not failed. STREAM_CALL(symbol, ptsz symbol, ..) defines the variant with a per-thread default
 * stream too; the handle is called `stream`. */
#ifndef DDPCHECK_EMU_DRIVER_CALL_H
#define DDPCHECK_EMU_DRIVER_CALL_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

#include "emu/core.h"
#include "emu/core/device.h"

/* What forbids the call, or 0. */
int driver_enter(bool context);
bool driver_stream(CUstream handle, struct emu_stream **stream, int *error);

#define DRIVER_FRAME(symbol, context, parameters, arguments) \
    static int symbol##_body parameters;                     \
    CUresult symbol parameters;                              \
    CUresult symbol parameters                               \
    {                                                        \
        int refused = driver_enter(context);                 \
        return refused ? refused : symbol##_body arguments;  \
    }                                                        \
    static int symbol##_body parameters

#define DRIVER_CALL(symbol, parameters, arguments) \
    DRIVER_FRAME(symbol, false, parameters, arguments)
#define CONTEXT_CALL(symbol, parameters, arguments) \
    DRIVER_FRAME(symbol, true, parameters, arguments)

#define STREAM_CALL(symbol, ptsz_symbol, parameters, arguments) \
    static int symbol##_body parameters;                        \
    CUresult ptsz_symbol parameters;                            \
    CUresult ptsz_symbol parameters                             \
    {                                                           \
        int refused = driver_enter(true);                       \
        if (!stream)                                            \
            stream = CU_STREAM_PER_THREAD;                      \
        return refused ? refused : symbol##_body arguments;     \
    }                                                           \
    CONTEXT_CALL(symbol, parameters, arguments)

/* Another symbol for a function that this file defines, both as text: cuda.h makes macros of names.
 */
#define DRIVER_ALIAS(older, symbol) \
    __asm__(".globl " older "\n.type " older ", @function\n.set " older ", " symbol)

#endif
