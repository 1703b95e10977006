/* log_text.h: finds numbers and words in lines of a job's log. */
#ifndef DDPCHECK_IMPORT_LOG_TEXT_H
#define DDPCHECK_IMPORT_LOG_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The number behind `name` (in any case) and perhaps blanks, or -1. */
int64_t text_number_behind(const char *text, const char *name);
/* The same behind the first of the names that has one; `names` ends with NULL. */
int64_t text_number_behind_any(const char *text, const char *const *names);
/* Copies up to the first of the characters in `stop`. */
void text_copy_until(char *to, size_t bytes, const char *from, const char *stop);

/* The next cell of a row of a table from *at on, which is moved behind it: the text between blanks,
 * or between tags. NULL: no more. */
const char *text_next_cell(const char **at, bool is_html, size_t *bytes);

/* Who wrote a line, as far as what a launcher put before it says so. */
struct log_speaker {
    int rank;        /* -1: not known */
    uint32_t source; /* hash of Ray's "(Worker pid=4009, ip=...)"; 0: none */
};
/* No rank: the message says itself whose it is. */
#define LOG_NOBODY ((struct log_speaker){.rank = -1, .source = UINT32_MAX})
struct log_speaker log_speaker_of(const char *text, size_t bytes);
/* The name in it: "EngineCore_DP1" of "(EngineCore_DP1 pid=5607)"; "" if there is none. */
void log_speaker_name(const char *text, size_t bytes, char *to, size_t size);
/* The rank in a file's name ("rank_3.log", "job.rank3.err", "attempt_0/3/stderr.log"), or -1. */
int log_rank_of_path(const char *path);

#endif
