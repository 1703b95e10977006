/* runtimes.h: the CUDA runtimes that one process can have side by side.
 *
 * A program of one CUDA version and a library of another each load their own libcudart. Their
 * symbols have versions, which are the libraries' names, so the shim has one wrapper and one real
 * function for each version: a call reaches the runtime that it was linked with. References without
 * a version (dlsym, libraries without versions) get the default wrapper. */
#ifndef DDPCHECK_RUNTIMES_H
#define DDPCHECK_RUNTIMES_H

/* RUNTIME(number, version of its symbols); the number is part of the wrappers' local names
 * (runtime_symbols.h). */
#define RUNTIMES                     \
    RUNTIME(0, "DDPCHECK_CUDART")    \
    RUNTIME(11, "libcudart.so.11.0") \
    RUNTIME(12, "libcudart.so.12")   \
    RUNTIME(13, "libcudart.so.13")

enum runtime {
#define RUNTIME(number, version) RUNTIME_##number,
    RUNTIMES
#undef RUNTIME
        RUNTIME_COUNT,
    RUNTIME_DEFAULT = RUNTIME_0
};

#endif
