/* ddpcheck.h: what a program can declare to ddpcheck. For programs; they need no file of ddpcheck
 * but this one to compile, link and run.
 *
 *     ddpcheck_hash("parameters", parameters, bytes, comm, stream);
 *
 * declares that here, on this stream, all members of `comm` hold the same bytes under this name.
 * Call it on every member, for the same names equally often, where replicas must be equal: for
 * example after each step of the optimizer. Under `ddpcheck run --hash` a kernel on the stream
 * hashes the buffer, the hashes of the n-th call for a name are compared, and DC503 reports since
 * when they differ. Without --hash, or without ddpcheck, it does nothing and costs a comparison.
 * `comm` may be NULL: the largest communicator that the process has on the current device.
 *
 * From Python: ctypes.CDLL(None).ddpcheck_hash, where there is one:
 *
 *     hash = getattr(ctypes.CDLL(None), "ddpcheck_hash", None)
 *     if hash:
 *         hash(b"parameters", ctypes.c_void_p(p.data_ptr()), ctypes.c_size_t(p.nbytes), None,
 *              ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
 */
#ifndef DDPCHECK_H
#define DDPCHECK_H

#include <dlfcn.h>
#include <stddef.h>

struct ncclComm;
struct CUstream_st;

/* Returns 1 if the buffer is being hashed, else 0: there is no ddpcheck, no --hash, the stream is
 * being captured, or the buffer is not memory of the communicator's device. Never waits. */
static inline int ddpcheck_hash(const char *name, const void *data, size_t bytes,
                                struct ncclComm *comm, struct CUstream_st *stream)
{
    typedef int function(const char *, const void *, size_t, struct ncclComm *,
                         struct CUstream_st *);
    static function *found;
    static int searched;
    if (!__atomic_load_n(&searched, __ATOMIC_ACQUIRE)) {
        /* of libddpcheck.so, where it is preloaded; several threads may search at once and find the
         * same */
        __atomic_store_n(&found, (function *)dlsym(NULL, "ddpcheck_hash"), __ATOMIC_RELAXED);
        __atomic_store_n(&searched, 1, __ATOMIC_RELEASE);
    }
    function *hash = __atomic_load_n(&found, __ATOMIC_RELAXED);
    return hash ? hash(name, data, bytes, comm, stream) : 0;
}

#endif
