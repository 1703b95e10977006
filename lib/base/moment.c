/* moment.c: formats times for people. */
#include "lib/base/moment.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { MINUTE = 60, HOUR = 3600, DAY = 86400 };
static const uint64_t MILLISECOND_NS = 1000000, SECOND_NS = 1000000000;

char *moment_duration(uint64_t ns, char *text, size_t bytes)
{
    uint64_t seconds = ns / SECOND_NS;
    if (ns < 10 * MILLISECOND_NS)
        snprintf(text, bytes, "%.1f ms", (double)ns / 1e6);
    else if (ns < SECOND_NS)
        snprintf(text, bytes, "%" PRIu64 " ms", ns / MILLISECOND_NS);
    else if (seconds < 2 * MINUTE)
        snprintf(text, bytes, "%" PRIu64 ".%" PRIu64 " s", seconds,
                 ns % SECOND_NS / (100 * MILLISECOND_NS));
    else if (seconds < 2 * HOUR)
        snprintf(text, bytes, "%" PRIu64 " min %" PRIu64 " s", seconds / MINUTE, seconds % MINUTE);
    else if (seconds < 2 * DAY)
        snprintf(text, bytes, "%" PRIu64 " h %" PRIu64 " min", seconds / HOUR,
                 seconds % HOUR / MINUTE);
    else
        snprintf(text, bytes, "%" PRIu64 " days %" PRIu64 " h", seconds / DAY,
                 seconds % DAY / HOUR);
    return text;
}

static struct tm local(uint64_t ns)
{
    time_t seconds = (time_t)(ns / SECOND_NS);
    struct tm broken;
    localtime_r(&seconds, &broken);
    return broken;
}

bool moment_known(uint64_t ns)
{
    const uint64_t september_2001 = 1000000000 * SECOND_NS;
    return ns >= september_2001;
}

char *moment_clock(uint64_t ns, uint64_t other_ns, char *text, size_t bytes)
{
    if (!moment_known(ns)) {
        snprintf(text, bytes, "unknown");
        return text;
    }
    struct tm then = local(ns), other = local(other_ns);
    bool same_day = then.tm_yday == other.tm_yday && then.tm_year == other.tm_year;
    char clock[48];
    strftime(clock, sizeof clock, same_day ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &then);
    snprintf(text, bytes, "%s.%03" PRIu64, clock, ns % SECOND_NS / MILLISECOND_NS);
    return text;
}

char *moment_date(uint64_t ns, char *text, size_t bytes)
{
    struct tm then = local(ns);
    strftime(text, bytes, "%Y-%m-%d %H:%M:%S %Z", &then);
    return text;
}

char *moment_recorded(uint64_t begin_ns, uint64_t end_ns, char *text, size_t bytes)
{
    char duration[64], date[64];
    if (!moment_known(end_ns) && end_ns - begin_ns < MILLISECOND_NS)
        snprintf(text, bytes, "at an unknown time");
    else if (!moment_known(end_ns))
        snprintf(text, bytes, "over %s on an unknown day",
                 moment_duration(end_ns - begin_ns, duration, sizeof duration));
    else
        snprintf(text, bytes, "over %s until %s",
                 moment_duration(end_ns - begin_ns, duration, sizeof duration),
                 moment_date(end_ns, date, sizeof date));
    return text;
}

char *moment_iso(uint64_t ns, char *text, size_t bytes)
{
    time_t seconds = (time_t)(ns / SECOND_NS);
    struct tm then;
    char clock[48];
    gmtime_r(&seconds, &then);
    strftime(clock, sizeof clock, "%Y-%m-%dT%H:%M:%S", &then);
    snprintf(text, bytes, "%s.%09" PRIu64 "Z", clock, ns % SECOND_NS);
    return text;
}
