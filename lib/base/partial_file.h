/* partial_file.h: a file that is being written, which is removed if a signal ends the command, with
 * its journal if it is a database.
 *
 * One at a time in a process. SIGINT, SIGTERM and SIGHUP are taken while there is one, unless the
 * process has changed what they do. */
#ifndef DDPCHECK_PARTIAL_FILE_H
#define DDPCHECK_PARTIAL_FILE_H

/* From now on the file goes with the process, also if it is made only after this. Its path is
 * copied; one that is too long is not removed. */
void partial_file_begin(const char *path);
/* It is complete, or was removed. Nothing happens if there is none. */
void partial_file_end(void);

#endif
