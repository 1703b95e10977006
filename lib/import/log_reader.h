/* log_reader.h: a reader of one kind of lines of a job's log, and the numbers of all. */
#ifndef DDPCHECK_IMPORT_LOG_READER_H
#define DDPCHECK_IMPORT_LOG_READER_H

#include <stddef.h>

struct log_job;

struct log_reader {
    size_t state_bytes; /* of what it keeps while a job's files are read; zero at first */
    /* Takes the line (text[bytes] is NUL). Returns 1 if it said something, 0 if it is for others,
     * -1 when memory is short. */
    int (*line)(struct log_job *job, const char *text, size_t bytes);
    /* Imports what was kept, and frees what the state owns. Returns 0, or -1 when memory or the
     * import's disk is short. NULL: there is nothing. Called also after another one's failed. */
    int (*end)(struct log_job *job);
};

enum log_reader_number {
#define LOG_READER(number, reader) LOG_##number,
#include "lib/import/log_readers.def"
#undef LOG_READER
    LOG_READERS
};

#define LOG_READER(number, reader) extern const struct log_reader reader;
#include "lib/import/log_readers.def"
#undef LOG_READER

#endif
