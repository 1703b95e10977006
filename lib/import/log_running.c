/* log_running.c: the calls that TORCH_DISTRIBUTED_DEBUG=DETAIL prints with TORCH_CPP_LOG_LEVEL
 * INFO, a line for each collective of each rank:
 *
 *     [I ProcessGroupWrapper.cpp:587] [Rank 3] Running collective:
 *     CollectiveFingerPrint(SequenceNumber=19, OpType=ALLREDUCE, TensorShape=[1024], ...
 *
 * The line does not name the process group. If a rank's numbers do not rise, or two processes call
 * themselves by one rank, these are several groups, which must not be compared: a note says so. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/import/log_messages.h"
#include "lib/import/log_reports.h"
#include "lib/import/scan.h"

enum { CALLS_MAX = 1 << 22 };

struct running_call {
    int64_t seq, count;
    uint64_t time_ns;
    int rank;
    int speaker; /* the launcher's rank; -1 */
    uint16_t api;
    uint8_t datatype;
};

struct log_running {
    struct running_call *call;
    size_t count, capacity;
};

static int read_running_line(struct log_job *job, const char *text, size_t bytes)
{
    struct log_running *running = job->state[LOG_RUNNING];
    struct watchdog_line line;
    struct scanned found;
    if (!scan(text, "[Rank {i:rank}] Running collective: ", &found) ||
        !log_fingerprint_parse(found.begin, &line) || line.seq < 0)
        return 0;
    struct running_call call = {
        .seq = line.seq,
        .rank = line.rank,
        .speaker = log_speaker_of(text, bytes).rank,
        .datatype = line.datatype,
        .time_ns = torch_line_time(text, log_job_dated(job), job->modified_ns),
    };
    call.api = watchdog_api(&line, &call.count);
    if (running->count == CALLS_MAX)
        return 1;
    if (!ARRAY_RESERVE(running->call, running->capacity, running->count + 1))
        return -1;
    running->call[running->count++] = call;
    return 1;
}

static int compare_running(const void *left, const void *right)
{
    const struct running_call *a = left, *b = right;
    int order = (a->rank > b->rank) - (a->rank < b->rank);
    return order ? order : (a->seq > b->seq) - (a->seq < b->seq);
}

/* Before the calls are sorted. */
static bool is_same_group(const struct log_running *running)
{
    int highest = 0;
    for (size_t i = 0; i < running->count; i++)
        highest = running->call[i].rank > highest ? running->call[i].rank : highest;
    struct running_call *last = calloc((size_t)highest + 1, sizeof *last);
    bool is_one = last != NULL;
    for (size_t i = 0; i < running->count && is_one; i++) {
        const struct running_call *call = &running->call[i];
        is_one = call->speaker < 0 || call->speaker == call->rank;
        is_one &= last[call->rank].api == 0 || call->seq > last[call->rank].seq;
        last[call->rank] = *call;
        last[call->rank].api = 1;
    }
    free(last);
    return is_one;
}

static int import_running(struct log_job *job, const struct running_call *call, int process,
                          int member, bool is_last)
{
    struct import_call reported = import_call_new(member, call->api);
    reported.number = (uint64_t)call->seq;
    reported.count = call->count >= 0 ? (uint64_t)call->count : IMPORT_UNKNOWN;
    reported.datatype = call->datatype;
    reported.time_ns = call->time_ns;
    reported.state = IMPORT_ISSUED;
    if (call->api && import_call(job->import, &reported))
        return -1;
    uint64_t until_ns = call->time_ns > job->torch_ns ? call->time_ns : job->torch_ns;
    return is_last ? import_known_until(job->import, process, until_ns) : 0;
}

static int running_member(struct log_job *job, int rank, int *process)
{
    struct import_process reported = import_process_new();
    struct import_member member = import_member_new();
    reported.rank = rank;
    reported.key = "fingerprint";
    reported.file = job->path;
    reported.title = "what PyTorch printed";
    reported.lacks = LACKS_MESSAGES & ~(uint32_t)LACKS_DATATYPE;
    *process = import_process(job->import, &reported);
    member.comm = "checked by TORCH_DISTRIBUTED_DEBUG=DETAIL";
    member.rank = rank;
    return *process < 0 ? -1 : import_member(job->import, *process, &member);
}

static int import_group(struct log_job *job, const struct log_running *running)
{
    int process = -1, member = -1, result = 0;
    for (int pass = 0; pass < 2; pass++) /* all members come before the first call */
        for (size_t i = 0; i < running->count && !result; i++) {
            const struct running_call *call = &running->call[i];
            bool is_last = i + 1 == running->count || call[1].rank != call->rank;
            if (!i || call[-1].rank != call->rank)
                member = running_member(job, call->rank, &process);
            result = member < 0 ? -1 : 0;
            if (!result && pass)
                result = import_running(job, call, process, member, is_last);
        }
    return result;
}

static int end_running(struct log_job *job)
{
    struct log_running *running = job->state[LOG_RUNNING];
    bool is_one = is_same_group(running);
    int result = 0;
    if (running->count)
        qsort(running->call, running->count, sizeof *running->call, compare_running);
    if (running->count && is_one)
        result = import_group(job, running);
    else if (running->count)
        result = log_messages_add(job, LOG_NOBODY, SAID_NOTE, "PyTorch",
                                  "'Running collective' lines are of several process groups, which "
                                  "they do not name: ranks can't be compared",
                                  "") < 0
                     ? -1
                     : 0;
    free(running->call);
    return result;
}

const struct log_reader log_running = {sizeof(struct log_running), read_running_line, end_running};
