/* log_torch.c: parses the messages of PyTorch's NCCL watchdog. */
#include "lib/import/log_torch.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/import/log_line.h"
#include "lib/import/log_text.h"
#include "lib/trace/kind_names.h"
#include "lib/import/scan.h"

/* "[PG ID 0 PG GUID 0(default_pg) Rank 1]", "[PG 1 Rank 0]", "[Rank 1]". */
static void who(const char *text, struct watchdog_line *line)
{
    const char *guid = scan_find(text, "PG GUID "), *id = scan_find(text, "[PG ID "),
               *old = scan_find(text, "[PG ");
    if (guid)
        text_copy_until(line->group, sizeof line->group, guid + 8, " ]");
    else if (id || old)
        text_copy_until(line->group, sizeof line->group, id ? id + 7 : old + 4, " ]");
    const char *rank = scan_find(text, " Rank ");
    if (!rank || !isdigit((unsigned char)rank[6]))
        rank = scan_find(text, "[Rank ");
    if (rank && isdigit((unsigned char)rank[6]))
        line->rank = atoi(rank + 6);
}

int torch_job_rank(const char *text, int otherwise)
{
    static const char of_job[] = "(default_pg) Rank ", alone[] = "[Rank ";
    const char *found = strstr(text, of_job), *old = strstr(text, alone);
    if (found && isdigit((unsigned char)found[sizeof of_job - 1]))
        return atoi(found + sizeof of_job - 1);
    bool counts = otherwise < 0 && old && isdigit((unsigned char)old[sizeof alone - 1]);
    return counts ? atoi(old + sizeof alone - 1) : otherwise;
}

struct watchdog_line watchdog_line_new(void)
{
    return (struct watchdog_line){.rank = -1,
                                  .seq = -1,
                                  .numel_in = -1,
                                  .numel_out = -1,
                                  .timeout_ms = -1,
                                  .ran_ms = -1,
                                  .last_enqueued = -1,
                                  .last_completed = -1,
                                  .last_started = -1,
                                  .found_by = -1,
                                  .datatype = TYPE_NONE};
}

/* The number in "last enqueued NCCL work: 12", "last enqueued work: 12"; -1. Other libraries'
 * watchdogs put XCCL or HCCL there. */
static int64_t number_of_last(const char *text, const char *what)
{
    const char *found = strcasestr(text, what);
    if (!found)
        return -1;
    found += strlen(what);
    size_t letters = strspn(found, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    if (letters)
        found += letters + (found[letters] == ' ');
    return strncmp(found, "work:", 5) ? -1 : text_number_behind(found, "work:");
}

/* "Work" and the library's name: "WorkNCCL(", "WorkXCCL(", "WorkHCCL(". */
static const char *find_timed_out_work(const char *text)
{
    static const char begin[] = "Watchdog caught collective operation timeout: Work";
    const char *work = strstr(text, begin);
    if (!work)
        return NULL;
    size_t letters = strspn(work + sizeof begin - 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    return letters && work[sizeof begin - 1 + letters] == '(' ? work : NULL;
}

/* "Received a dump signal due to a collective timeout from this local rank", "from  rank 7", and
 * "Observed flight recorder dump signal from another rank". */
static void parse_signal(const char *text, struct watchdog_line *line)
{
    const char *received = scan_find(text, "dump signal due to a collective timeout from ");
    line->is_signal = received || scan_find(text, "Observed flight recorder dump signal");
    if (!received)
        return;
    received = strstr(received, " from ") + strlen(" from ");
    line->found_here = !strncmp(received, "this local", 10);
    line->found_by = line->found_here ? -1 : (int)text_number_behind(received, "rank");
    /* The first that is not completed is the one that it hangs in. */
    if (line->has_last && line->last_enqueued > line->last_completed && line->last_completed >= 0)
        line->seq = line->last_completed + 1;
}

bool watchdog_parse(const char *text, size_t bytes, struct watchdog_line *line)
{
    static const char *const seq[] = {
        "SeqNum=", "detected by watchdog at work:", "Timeout at NCCL work:",
        "watchdog at work sequence id:", NULL};
    *line = watchdog_line_new();
    const char *work = find_timed_out_work(text);
    bool has_last = strcasestr(text, "last enqueued ") && strcasestr(text, "last completed ");
    bool may_signal = scan_find(text, "dump signal") != NULL;
    if (work && !strchr(work, ')')) /* its end is missing: numbers may be cut */
        work = NULL;
    if (!work && !has_last && !may_signal)
        return false;
    line->seq = text_number_behind_any(text, seq);
    line->last_enqueued = number_of_last(text, "last enqueued ");
    line->last_completed = number_of_last(text, "last completed ");
    line->last_started = number_of_last(text, "last started ");
    line->has_last = has_last && line->last_enqueued >= 0;
    if (!work && !line->has_last && !may_signal)
        return false;
    if (work) {
        const char *op = strstr(work, "OpType=");
        if (op)
            text_copy_until(line->op, sizeof line->op, op + 7, ",) ");
        line->numel_in = text_number_behind(work, "NumelIn=");
        line->numel_out = text_number_behind(work, "NumelOut=");
        line->timeout_ms = text_number_behind(work, "Timeout(ms)=");
        line->ran_ms = text_number_behind(work, " ran for ");
    }
    who(text, line);
    if (line->rank < 0)
        line->rank = log_prefix_rank(text, bytes);
    if (may_signal)
        parse_signal(text, line);
    return line->rank >= 0 && (line->seq >= 0 || line->has_last || line->is_signal);
}

static bool two_digits(const char *text, char behind, int *value)
{
    if (!isdigit((unsigned char)text[0]) || !isdigit((unsigned char)text[1]) || text[2] != behind)
        return false;
    *value = (text[0] - '0') * 10 + text[1] - '0';
    return true;
}

static uint64_t time_of_year(struct tm *parts, int year, uint64_t fraction)
{
    parts->tm_year = year - 1900;
    struct tm copy = *parts;
    time_t seconds = timegm(&copy);
    return seconds > 0 ? (uint64_t)seconds * 1000000000 + fraction : 0;
}

uint64_t torch_line_time(const char *text, uint64_t dated_ns, uint64_t written_ns)
{
    static const uint64_t day_ns = 86400 * UINT64_C(1000000000);
    const char *at = scan_find(text, "ProcessGroup");
    while (at && at > text && *at != '[')
        at--;
    if (!at || *at != '[' || !strchr("EWIF", at[1]) || !isdigit((unsigned char)at[2]))
        return 0;
    char *end;
    long date = strtol(at + 2, &end, 10);
    struct tm parts = {.tm_mon = (int)(date / 100) - 1, .tm_mday = (int)(date % 100)};
    if (date < 101 || date > 1231 || *end != ' ' || !two_digits(end + 1, ':', &parts.tm_hour) ||
        !two_digits(end + 4, ':', &parts.tm_min) || !two_digits(end + 7, '.', &parts.tm_sec))
        return 0;
    uint64_t fraction = 0, unit = 100000000;
    for (const char *digit = end + 10; isdigit((unsigned char)*digit); digit++, unit /= 10)
        fraction += (uint64_t)(*digit - '0') * unit;
    time_t now = (time_t)((dated_ns ? dated_ns : written_ns) / 1000000000);
    struct tm today;
    gmtime_r(&now, &today);
    int year = today.tm_year + 1900;
    uint64_t time_ns = time_of_year(&parts, year, fraction), half_ns = 183 * day_ns;
    if (dated_ns && time_ns + half_ns < dated_ns)
        return time_of_year(&parts, year + 1, fraction);
    uint64_t latest_ns = dated_ns ? dated_ns + half_ns : written_ns + day_ns;
    return time_ns <= latest_ns ? time_ns : time_of_year(&parts, year - 1, fraction);
}

uint16_t watchdog_api(const struct watchdog_line *line, int64_t *count)
{
    const struct kind_name *operation = kind_name_find(KIND_WATCHDOG, line->op, strlen(line->op));
    *count = -1;
    if (!operation)
        return API_NONE;
    if (operation->elements != KIND_OF_UNSAID)
        *count = operation->elements == KIND_OF_IN ? line->numel_in : line->numel_out;
    return operation->api;
}
