/* log_reports.c: reports of PyTorch's about all ranks: the check of TORCH_DISTRIBUTED_DEBUG=DETAIL,
 * the desync report of TORCH_NCCL_DESYNC_DEBUG, and the monitored barrier; and what the watchdog
 * says since 2.15, which names no operation. */
#include "lib/import/log_reports.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/rankset.h"
#include "lib/import/log_messages.h"
#include "lib/import/scan.h"
#include "lib/trace/kind_names.h"

static struct watchdog_line new_report(enum watchdog_source source, int rank, int64_t seq)
{
    struct watchdog_line line = watchdog_line_new();
    line.source = source;
    line.rank = rank;
    line.seq = seq;
    return line;
}

/* A rank of a report about others: the line's own prefix names the writer, not the rank reported
 * on. */
static int add_report(struct log_job *job, const struct watchdog_line *line)
{
    return log_job_reported(job, line) ? -1 : 1;
}

/* --- TORCH_DISTRIBUTED_DEBUG=DETAIL --- */

/* "[359, 1, 1435, 16]": how many elements; -1 if it is something else. */
static int64_t elements_of_shape(const char *text)
{
    int64_t elements = 1;
    for (text++; *text && *text != ']';) {
        char *end;
        long long size = strtoll(text, &end, 10);
        if (end == text || size < 0 || size > (int64_t)1 << 40 ||
            (size && elements > ((int64_t)1 << 50) / size))
            return -1;
        elements *= size;
        text = end + strspn(end, ", ");
    }
    return *text == ']' ? elements : -1;
}

/* An older fingerprint has the name of the operation alone. */
bool log_fingerprint_parse(const char *text, struct watchdog_line *line)
{
    char type[32];
    const char *print = scan_find(text, "ollective: ");
    int64_t rank = text_number_behind(text, "ank ");
    const char *op = scan_find(text, "OpType="), *shape = scan_find(text, "TensorShape="),
               *types = scan_find(text, "TensorDtypes=");
    if (rank < 0 || rank > 1 << 20 || !print)
        return false;
    op = op ? op + 7 : print + strlen("ollective: ");
    *line = new_report(FROM_FINGERPRINT, (int)rank, text_number_behind(text, "SequenceNumber="));
    snprintf(line->group, sizeof line->group, "checked by TORCH_DISTRIBUTED_DEBUG=DETAIL");
    text_copy_until(line->op, sizeof line->op, op, ",.) ");
    if (shape && shape[12] == '[')
        line->numel_in = line->numel_out = elements_of_shape(shape + 12);
    if (types) {
        text_copy_until(type, sizeof type, types + 13, " ,)");
        unsigned factor = 1;
        line->datatype = datatype_of_torch(type, strlen(type), &factor);
    }
    return true;
}

static int read_fingerprint_line(struct log_job *job, const char *text, size_t bytes)
{
    (void)bytes;
    struct watchdog_line first, second;
    char left[1024];
    const char *found = scan_find(text, "Detected mismatch between collectives on ranks");
    const char *but = found ? strstr(found, "but Rank ") : NULL;
    const char *rank = found ? strstr(found, "Rank ") : NULL;
    if (!but || !rank || rank > but)
        return 0;
    size_t length = (size_t)(but - rank);
    snprintf(left, sizeof left, "%.*s", (int)(length < sizeof left ? length : sizeof left - 1),
             rank);
    if (!log_fingerprint_parse(left, &first) || !log_fingerprint_parse(but + 4, &second))
        return 0;
    int64_t seq = first.seq >= 0 && first.seq < (int64_t)1 << 40 ? first.seq : 0;
    const char *why = strstr(but, "Collectives differ in");
    char what[MESSAGE_BYTES];
    snprintf(what, sizeof what, "ranks %d and %d make different collectives: %s and %s%s%s",
             first.rank, second.rank, first.op, second.op, why ? ". " : "", why ? why : "");
    first.seq = second.seq = seq + 1; /* it counts from 0 */
    int result = add_report(job, &first);
    if (result > 0)
        result = add_report(job, &second);
    if (result > 0)
        result = log_messages_add(job, (struct log_speaker){.rank = first.rank}, SAID_TIMEOUT,
                                  "PyTorch", what,
                                  "Find where these ranks part: a condition on the rank, data of "
                                  "other sizes, another order.");
    return result;
}

const struct log_reader log_fingerprint = {0, read_fingerprint_line, NULL};

/* --- the desync report --- */

struct log_desync {
    int64_t seq; /* of the report's heading */
};

/* The ranks in "[0, 2-3] joined ..." before `behind`. */
static bool ranks_before(const char *text, const char *behind, struct rankset *ranks)
{
    char list[512];
    size_t used = 0;
    const char *close = behind, *open;
    while (close > text && *close != ']')
        close--;
    for (open = close; open > text && *open != '[';)
        open--;
    if (*open != '[' || *close != ']')
        return false;
    for (const char *at = open + 1; at < close && used + 1 < sizeof list; at++)
        if (*at != ' ')
            list[used++] = *at;
    list[used] = '\0';
    return used && !rankset_parse(ranks, list);
}

static int desync_ranks(struct log_job *job, const struct rankset *ranks, int64_t seq,
                        bool finished, const char *op)
{
    int result = 1;
    for (int rank = rankset_next(ranks, 0); rank >= 0 && result > 0;
         rank = rankset_next(ranks, rank + 1)) {
        struct watchdog_line line = new_report(FROM_DESYNC_REPORT, rank, finished ? -1 : seq);
        line.has_last = true;
        line.last_enqueued = seq;
        line.last_completed = finished ? seq : seq - 1;
        snprintf(line.op, sizeof line.op, "%s", finished ? "" : op);
        result = add_report(job, &line);
    }
    return result;
}

static int read_desync_line(struct log_job *job, const char *text, size_t bytes)
{
    struct log_desync *desync = job->state[LOG_DESYNC];
    (void)bytes;
    static const struct desync_text {
        const char *text;
        bool finished;
    } texts[] = {
        {"] finished collective #", true},
        {"] joined but didn't finish collective #", false},
    };
    struct rankset ranks = {0};
    int result = 0;
    for (size_t i = 0; !result && i < sizeof texts / sizeof *texts; i++) {
        const char *found = strstr(text, texts[i].text);
        int64_t seq = found ? text_number_behind(found, "#") : -1;
        if (seq < 0 || seq > (int64_t)1 << 40 || !ranks_before(text, found, &ranks))
            continue;
        result = desync_ranks(job, &ranks, seq, texts[i].finished, "");
    }
    const char *number = scan_find(text, "#"), *started = scan_find(text, "] started ");
    if (!result && number && strstr(number, " started ranks:")) {
        desync->seq = text_number_behind(number, "#");
        result = 1;
    } else if (!result && started && desync->seq > 0 && ranks_before(text, started, &ranks)) {
        char op[32];
        text_copy_until(op, sizeof op, started + strlen("] started "), " \r\n");
        result = desync_ranks(job, &ranks, desync->seq, false, op);
    }
    rankset_free(&ranks);
    return result;
}

const struct log_reader log_desync = {sizeof(struct log_desync), read_desync_line, NULL};

/* --- the monitored barrier --- */

enum { BARRIER_RANKS_MOST = 1 << 20 };

struct log_barrier {
    struct rankset missing; /* as all lines say */
    int64_t ms;
};

/* "Rank 1 failed to pass ...", "Ranks 4, 5 failed to pass ...". */
static int read_barrier_line(struct log_job *job, const char *text, size_t bytes)
{
    struct log_barrier *barrier = job->state[LOG_BARRIER];
    (void)bytes;
    const char *found = scan_find(text, "failed to pass monitoredBarrier");
    const char *ranks = found ? strcasestr(text, "rank") : NULL;
    if (!found)
        return 0;
    for (const char *next = ranks; next && next < found; next = strcasestr(next + 1, "rank"))
        ranks = next; /* the last before it */
    for (; ranks && ranks < found; ranks++) {
        char *end = (char *)ranks + 1;
        unsigned long rank = isdigit((unsigned char)*ranks) ? strtoul(ranks, &end, 10)
                                                            : BARRIER_RANKS_MOST;
        if (rank < BARRIER_RANKS_MOST && rankset_add(&barrier->missing, (int)rank))
            return -1;
        ranks = end - 1;
    }
    barrier->ms = text_number_behind(found, " in ");
    return 1;
}

static int end_barrier(struct log_job *job)
{
    struct log_barrier *barrier = job->state[LOG_BARRIER];
    char what[MESSAGE_BYTES], ranks[512];
    bool is_one = rankset_count(&barrier->missing) == 1;
    int result = 0;
    snprintf(what, sizeof what, "%s %s did not come to monitored_barrier() in %lld ms",
             is_one ? "rank" : "ranks", rankset_text(&barrier->missing, ranks, sizeof ranks),
             (long long)barrier->ms);
    if (rankset_count(&barrier->missing))
        result = log_messages_add(job, LOG_NOBODY, SAID_ERROR, "PyTorch", what,
                                  "See what these ranks did instead: their own logs, and their "
                                  "stacks when it happens again (ddpcheck attach).");
    rankset_free(&barrier->missing);
    return result < 0 ? -1 : 0;
}

const struct log_reader log_barrier = {sizeof(struct log_barrier), read_barrier_line, end_barrier};

/* --- the watchdog of PyTorch 2.15 */

/* "[TC][rank=1][name=0] Operation timed out after 60356 ms" */
static int read_timeout_line(struct log_job *job, const char *text, size_t bytes)
{
    (void)bytes;
    struct scanned line;
    enum { TITLE_MAX = 64 };
    char what[MESSAGE_BYTES];
    if (!scan(text, "[rank={i:rank}][name={r:group}] Operation timed out after {i:ms} ms", &line))
        return 0;
    const struct scanned_field *group = &line.field[1];
    snprintf(what, sizeof what, "an operation of process group %.*s timed out after %.1f s",
             group->bytes < TITLE_MAX ? (int)group->bytes : TITLE_MAX, group->text,
             (double)scanned_number(&line, "ms", 0) / 1000);
    const struct log_speaker speaker = {.rank = (int)scanned_number(&line, "rank", -1)};
    return log_messages_add(job, speaker, SAID_ERROR, "PyTorch", what,
                            "Import the Flight Recorder dumps that PyTorch wrote then: they name "
                            "the operation and the ranks that did not call it.");
}

const struct log_reader log_timeout = {0, read_timeout_line, NULL};
