/* architecture.h: the compute capability of the emulated devices, 90 for 9.0: what
 * DDPCHECK_EMU_ARCHITECTURE says ("8.0"), or else one that runs what the program brings. */
#ifndef DDPCHECK_EMU_ARCHITECTURE_H
#define DDPCHECK_EMU_ARCHITECTURE_H

/* Decided at the first call, and the same from then on. */
unsigned emu_architecture(void);
/* Device code that is registered, or no longer; NULL is none. The decision takes into account what
 * is registered then. */
void emu_architecture_add(const void *image);
void emu_architecture_remove(const void *image);

#endif
