/* log_line.c: finds NCCL's messages in the lines of a job's log. */
#include "lib/import/log_line.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { HEADER_MAX = 512 }; /* what may stand between the host's name and "NCCL": place, function */

static const struct level_name {
    const char *text; /* with the blanks around it */
    enum log_level level;
} level_names[] = {
    {" NCCL INFO ", LOG_INFO},
    {" NCCL WARN ", LOG_WARN},
    {" NCCL TRACE ", LOG_TRACE},
    {" NCCL CALL ", LOG_CALL},
};

static bool is_host_char(char c)
{
    return isalnum((unsigned char)c) || c == '.' || c == '-' || c == '_';
}

/* --- times and prefixes --- */

/* The number in `digits` characters; -1 if they are something else. */
static int fixed_number(const char *text, int digits)
{
    int number = 0;
    for (int i = 0; i < digits; i++) {
        if (!isdigit((unsigned char)text[i]))
            return -1;
        number = number * 10 + text[i] - '0';
    }
    return number;
}

static uint64_t fraction_ns(const char *text, size_t bytes, size_t *used)
{
    uint64_t ns = 0, unit = 100000000;
    size_t at = 1;
    if (!bytes || (*text != '.' && *text != ','))
        return 0;
    for (; at < bytes && isdigit((unsigned char)text[at]); at++, unit /= 10)
        ns += (uint64_t)(text[at] - '0') * unit;
    *used = at;
    return ns;
}

uint64_t log_prefix_time(const char *text, size_t bytes)
{
    enum { PLAIN = 19 }; /* "2026-11-21 14:03:22" */
    if (bytes < PLAIN || text[4] != '-' || text[7] != '-' || !memchr(" T_", text[10], 3) ||
        text[13] != ':' || text[16] != ':')
        return 0;
    struct tm parts = {.tm_year = fixed_number(text, 4) - 1900,
                       .tm_mon = fixed_number(text + 5, 2) - 1,
                       .tm_mday = fixed_number(text + 8, 2),
                       .tm_hour = fixed_number(text + 11, 2),
                       .tm_min = fixed_number(text + 14, 2),
                       .tm_sec = fixed_number(text + 17, 2)};
    if (parts.tm_year < 70 || parts.tm_mon < 0 || parts.tm_mon > 11 || parts.tm_mday < 1 ||
        parts.tm_hour < 0 || parts.tm_min < 0 || parts.tm_sec < 0)
        return 0;
    size_t used = 0;
    uint64_t fraction = fraction_ns(text + PLAIN, bytes - PLAIN, &used);
    const char *zone = text + PLAIN + used;
    int64_t seconds = (int64_t)timegm(&parts);
    if (bytes >= PLAIN + used + 6 && (*zone == '+' || *zone == '-') && zone[3] == ':' &&
        fixed_number(zone + 1, 2) >= 0 && fixed_number(zone + 4, 2) >= 0) {
        int offset = fixed_number(zone + 1, 2) * 3600 + fixed_number(zone + 4, 2) * 60;
        seconds -= *zone == '+' ? offset : -offset;
    }
    return seconds <= 0 ? 0 : (uint64_t)seconds * 1000000000 + fraction;
}

/* A number that ends at text[end]; *begin is where it begins. -1 if there is none. */
static int number_before(const char *text, size_t end, size_t *begin)
{
    size_t at = end;
    while (at && isdigit((unsigned char)text[at - 1]))
        at--;
    if (at == end || end - at > 9)
        return -1;
    *begin = at;
    return atoi(text + at);
}

int log_prefix_rank(const char *text, size_t bytes)
{
    size_t begin;
    const char *found = memmem(text, bytes, "[rank", 5);
    if (found && found + 7 < text + bytes && isdigit((unsigned char)found[5 + (found[5] == '=')]))
        return atoi(found + 5 + (found[5] == '='));
    found =
        memmem(text, bytes, "]<std", 5); /* "[1,0]<stdout>:", "[prterun-host-17@1,0]<stderr>:" */
    if (found) {
        int rank = number_before(text, (size_t)(found - text), &begin);
        return rank >= 0 && begin && text[begin - 1] == ',' ? rank : -1;
    }
    while (bytes && (isspace((unsigned char)*text) || *text == '>')) /* '>': a quotation */
        text++, bytes--;
    size_t digits = 0, bracket = bytes && *text == '[';
    while (bracket + digits < bytes && isdigit((unsigned char)text[bracket + digits]))
        digits++;
    if (!digits || digits > 9 || bracket + digits >= bytes ||
        text[bracket + digits] != (bracket ? ']' : ':'))
        return -1; /* "0: " of srun -l, "[0] " of MPICH */
    return atoi(text + bracket);
}

/* Of what stands before the host's name: perhaps a time, perhaps more than one prefix. */
static uint64_t time_in(const char *text, size_t bytes)
{
    for (size_t at = 0; at + 19 <= bytes; at++)
        if (isdigit((unsigned char)text[at]) && (!at || !isalnum((unsigned char)text[at - 1]))) {
            uint64_t time_ns = log_prefix_time(text + at, bytes - at);
            if (time_ns)
                return time_ns;
        }
    return 0;
}

/* --- the header --- */

/* "host:pid:tid" that ends at text[end]; not before text[least]. */
static bool identity_before(const char *text, size_t least, size_t end, struct log_line *line,
                            size_t *begin)
{
    size_t tid_at, pid_at;
    line->tid = number_before(text, end, &tid_at);
    if (line->tid < 0 || tid_at <= least || text[tid_at - 1] != ':')
        return false;
    line->pid = number_before(text, tid_at - 1, &pid_at);
    if (line->pid < 0 || pid_at <= least || text[pid_at - 1] != ':')
        return false;
    size_t host_end = pid_at - 1, host_at = host_end;
    while (host_at > least && is_host_char(text[host_at - 1]))
        host_at--;
    size_t bytes = host_end - host_at;
    if (!bytes)
        return false;
    if (bytes >= sizeof line->host)
        host_at = host_end - (bytes = sizeof line->host - 1);
    memcpy(line->host, text + host_at, bytes);
    line->host[bytes] = '\0';
    *begin = host_at;
    return true;
}

/* "[3] init.cc:1247 " between identity and level: device, and the place behind it. */
static bool parse_device(const char *text, size_t bytes, struct log_line *line)
{
    size_t at = 0;
    while (at < bytes && text[at] == ' ')
        at++;
    line->device = -1;
    line->place_bytes = 0;
    if (at == bytes)
        return line->level == LOG_CALL;
    char *end;
    if (text[at] != '[')
        return false;
    long device = strtol(text + at + 1, &end, 10);
    if (end == text + at + 1 || *end != ']' || device < -1 || device > 4096)
        return false;
    line->device = (int)device;
    at = (size_t)(end + 1 - text);
    while (at < bytes && text[at] == ' ')
        at++;
    line->place = text + at;
    line->place_bytes = bytes - at;
    return true;
}

/* The header that the level name at text[level_at] belongs to, not before text[least]. *begin: the
 * host's name. */
static bool header_before(const char *text, size_t least, size_t level_at, struct log_line *line,
                          size_t *begin)
{
    size_t lowest = level_at > least + HEADER_MAX ? level_at - HEADER_MAX : least;
    for (size_t end = level_at; end > lowest; end--)
        if ((end == level_at || text[end] == ' ') && isdigit((unsigned char)text[end - 1]) &&
            identity_before(text, least, end, line, begin) &&
            parse_device(text + end, level_at - end, line))
            return true;
    return false;
}

/* The nearest level name at or behind `from`; NULL if there is none. */
static const struct level_name *level_from(const char *text, size_t bytes, size_t from, size_t *at)
{
    const char *found = text + from;
    while (from < bytes && (found = memmem(found, (size_t)(text + bytes - found), " NCCL ", 6))) {
        for (size_t i = 0; i < sizeof level_names / sizeof *level_names; i++) {
            size_t length = strlen(level_names[i].text);
            if ((size_t)(text + bytes - found) >= length &&
                !memcmp(found, level_names[i].text, length)) {
                *at = (size_t)(found - text);
                return &level_names[i];
            }
        }
        found++;
    }
    return NULL;
}

/* Like log_line_next, without the end of the message. *level_end: behind the level's name. */
static bool find_header(const char *text, size_t bytes, size_t from, struct log_line *line,
                        size_t *begin, size_t *level_end)
{
    size_t at = from;
    const struct level_name *name;
    for (size_t search = from; (name = level_from(text, bytes, search, &at)); search = at + 1) {
        *line = (struct log_line){.level = name->level, .rank = -1};
        if (!header_before(text, from, at, line, begin))
            continue;
        *level_end = at + strlen(name->text);
        return true;
    }
    return false;
}

bool log_line_next(const char *text, size_t bytes, size_t *offset, struct log_line *line)
{
    size_t begin, message, next, next_message;
    struct log_line other;
    if (*offset >= bytes || !find_header(text, bytes, *offset, line, &begin, &message))
        return false;
    line->rank = log_prefix_rank(text + *offset, begin - *offset);
    line->time_ns = time_in(text + *offset, begin - *offset);
    line->cut = find_header(text, bytes, message, &other, &next, &next_message);
    size_t end = line->cut ? next : bytes;
    *offset = end;
    while (end > message && isspace((unsigned char)text[end - 1]))
        end--;
    line->message = text + message;
    line->message_bytes = end - message;
    return true;
}
