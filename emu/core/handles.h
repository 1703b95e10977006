/* handles.h: which of the pointers that programs hold are live objects of ours.
 *
 * A handle is the object's address. Programs pass stale and foreign ones; looking them up here
 * detects that without touching the memory. Thread-safe. */
#ifndef DDPCHECK_EMU_HANDLES_H
#define DDPCHECK_EMU_HANDLES_H

enum handle_kind {
    HANDLE_NONE,
    HANDLE_STREAM,
    HANDLE_EVENT,
    HANDLE_GRAPH,
    HANDLE_GRAPH_EXEC,
    HANDLE_POOL,
    HANDLE_KERNEL,
    HANDLE_HOST_FUNCTION, /* the host stub of a kernel; what goes with it is the kernel */
    HANDLE_VARIABLE,      /* the host shadow of a device variable; with it goes the variable */
    HANDLE_CONTEXT,
    HANDLE_MODULE,
    HANDLE_PHYSICAL, /* memory of cuMemCreate */
};

/* Returns 0 or cudaErrorMemoryAllocation. */
int emu_handles_add(void *object, enum handle_kind kind);
/* The same for an address that is not ours, with an object of ours that goes with it. */
int emu_handles_add_with(const void *address, enum handle_kind kind, void *object);
/* The object itself, or what goes with the address; NULL if it is not of this kind. */
void *emu_handles_get(const void *address, enum handle_kind kind);
/* True if it was there: of two threads that destroy one object, only one may go on. */
int emu_handles_remove(const void *object, enum handle_kind kind);
enum handle_kind emu_handles_kind(const void *object);

#endif
