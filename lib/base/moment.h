/* moment.h: times as people read them. */
#ifndef DDPCHECK_BASE_MOMENT_H
#define DDPCHECK_BASE_MOMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "320 ms", "10.2 s", "12 min 3 s", "3 h 12 min". Returns text. */
char *moment_duration(uint64_t ns, char *text, size_t bytes);

/* Realtime as local wall clock, to the millisecond: "14:03:22.418", with the date before it if that
 * is not the day of `other_ns`; "unknown" if it is no time of day (moment_known). Returns text. */
char *moment_clock(uint64_t ns, uint64_t other_ns, char *text, size_t bytes);

/* "2026-11-21 14:03:32 UTC". Returns text. */
char *moment_date(uint64_t ns, char *text, size_t bytes);

/* Whether `ns` is a time of day: a log whose lines have no time is imported with numbers from 0 on
 * for times. */
bool moment_known(uint64_t ns);

/* "over 10.2 s until 2026-11-21 14:03:32 UTC", or that the day is not known: what "recorded" is
 * followed by. Returns text. */
char *moment_recorded(uint64_t begin_ns, uint64_t end_ns, char *text, size_t bytes);

/* "2026-11-21T14:03:22.418123456Z", for programs. Returns text. */
char *moment_iso(uint64_t ns, char *text, size_t bytes);

#endif
