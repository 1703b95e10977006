/* frame_tables.h: finds the call frame information of an address in the modules that were emitted.
 *
 * A library that answers this (libgcc, the loader) may take a lock, which somebody may hold who
 * waits for the thread that crashes. The modules' own tables are read by peek() instead. */
#ifndef DDPCHECK_FRAME_TABLES_H
#define DDPCHECK_FRAME_TABLES_H

#include <stdint.h>

/* Where the description (FDE) lies whose function may be the one around `address`; *function is
 * where that begins. 0: there is none. */
uint64_t frame_tables_find(uint64_t address, uint64_t *function);

#endif
