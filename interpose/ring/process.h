/* process.h: who this process is: its rank by the launcher's environment, host, program, versions.
 */
#ifndef DDPCHECK_PROCESS_H
#define DDPCHECK_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/trace/ring.h"

/* Fills in everything; what can't be known is -1 or empty. Reads the environment now, because
 * launchers such as Ray set it after the process began. */
void process_describe(struct process_info *info);

/* The launcher's variables give this process a rank, and it is nothing that this rank started,
 * which inherits them. By one thread at a time. */
bool process_is_rank(void);
/* The same without a doubt, by variables that only ranks have: no launcher on each host. */
bool process_is_only_rank(void);
/* This process is a rank: says so to what it starts, by the environment. While it is loaded. */
void process_mark_rank(void);

/* What names the namespace in which getpid() counts; 0 if it can't be read. */
uint64_t process_pid_namespace(void);

/* Field 22 of /proc/self/stat, 0 if it can't be read. */
uint64_t process_start_ticks(void);

#endif
