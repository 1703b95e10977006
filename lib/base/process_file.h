/* process_file.h: reads what the kernel says of a process. */
#ifndef DDPCHECK_PROCESS_FILE_H
#define DDPCHECK_PROCESS_FILE_H

#include <stddef.h>
#include <sys/types.h>

/* Reads /proc/PID/NAME into `text`, at most bytes - 1 of it, and ends it with a NUL; empty if it
 * can't be read. Returns how many bytes that are: some files have NULs inside. */
size_t process_file_read(pid_t pid, const char *name, char *text, size_t bytes);
/* /proc/PID/stat from the end of the program's name on, which may hold anything; NULL: there is
 * none. `text` has room for `bytes`. See proc_pid_stat(5). */
const char *process_stat_read(pid_t pid, char *text, size_t bytes);

#endif
