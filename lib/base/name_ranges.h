/* name_ranges.h: prints names that differ in a number (of hosts, of databases) in one line, as
 * Slurm writes them: "n[0001-2048], login1". */
#ifndef DDPCHECK_NAME_RANGES_H
#define DDPCHECK_NAME_RANGES_H

/* Sorts the names, numbers in them by value, and drops those that are there twice. Returns how many
 * are left. */
int names_sort(const char **name, int count);
/* The names, sorted as above, as ranges; the caller frees it. Up to two of a kind are written out;
 * after NAME_KINDS_MAX kinds only their number is. NULL when memory is short. */
enum { NAME_KINDS_MAX = 8 };
char *name_ranges(const char *const *name, int count);

#endif
