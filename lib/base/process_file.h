/* process_file.h: reads what the kernel says of a process. */
#ifndef DDPCHECK_PROCESS_FILE_H
#define DDPCHECK_PROCESS_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Reads /proc/PID/NAME into `text`, at most bytes - 1 of it, and ends it with a NUL; empty if it
 * can't be read. Returns how many bytes that are: some files have NULs inside. */
size_t process_file_read(pid_t pid, const char *name, char *text, size_t bytes);
/* /proc/PID/stat from the end of the program's name on, which may hold anything; NULL: there is
 * none. `text` has room for `bytes`. See proc_pid_stat(5). */
char *process_stat_read(pid_t pid, char *text, size_t bytes);

/* When it started, in ticks of the kernel, which distinguishes two processes with one number; 0:
 * not known. */
uint64_t process_start_ticks(pid_t pid);
/* The processor time of it and of its children that have ended, in ticks (sysconf(_SC_CLK_TCK) a
 * second); 0: not known. */
uint64_t process_processor_ticks(pid_t pid);
/* How long its first thread was ready to run and had no processor, in ns; 0: not known. See
 * sched-stats in the kernel's documentation. */
uint64_t process_run_delay_ns(pid_t pid);
/* How many bytes it made the kernel fetch from storage, by reading or by touching what is mapped;
 * 0: not known. See proc_pid_io(5). */
uint64_t process_fetched_bytes(pid_t pid);

/* Reads the kernel's identity since it was booted; leaves `text` as it is if it can't be read. */
void boot_id_read(char *text, size_t bytes);

#endif
