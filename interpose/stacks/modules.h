/* modules.h: emits which file is mapped where (notice_module), so that the collector can turn
 * return addresses into names long after the process is gone. */
#ifndef DDPCHECK_MODULES_H
#define DDPCHECK_MODULES_H

#include "interpose/shim/thread.h"

/* Emits every executable mapping that was not emitted yet. Takes the loader's lock. */
void modules_record(struct shim_thread *thread);

/* The same for a process that ends, in which somebody may hold any lock: without one, as far as
 * /proc/self/maps shows the mappings. */
void modules_record_in_crash(struct shim_thread *thread);

/* Makes sure that the mapping of `address` was emitted. */
void modules_cover(struct shim_thread *thread, uint64_t address);

/* Whether the mapping of `address` was emitted; whether both lie in one such mapping. */
bool modules_have(uint64_t address);
bool modules_are_same(uint64_t address, uint64_t other);

/* Where the .eh_frame_hdr of the module around `address` lies; 0: not known. */
uint64_t modules_frame_table(uint64_t address);

/* In the child of a fork. */
void modules_forked(void);

#endif
