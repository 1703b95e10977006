/* uncalled.c: records where the ranks are of a job that waits for something before its first NCCL
 * call, when it is ended for that. */
#include "collector/uncalled.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/candidates.h"
#include "collector/collector.h"
#include "collector/dormant.h"
#include "lib/base/process_file.h"
#include "lib/base/secrets.h"

enum { RECORDS_MOST = 64 }; /* of one rank, and the notice that the job is being ended */

void uncalled_fill_host(struct process_info *info)
{
    info->uid = getuid();
    boot_id_read(info->boot_id, sizeof info->boot_id);
    if (gethostname(info->host, sizeof info->host - 1) < 0)
        info->host[0] = 0;
}

/* What the shim would say of the process if it had started. */
static struct process_info describe_candidate(const struct candidate *candidate)
{
    char path[64];
    struct process_info info = {
        .pid = candidate->pid,
        .rank = candidate->rank,
        .local_rank = -1,
        .world_size = candidate->world_size,
        .restart = -1,
        .start_ticks = process_start_ticks(candidate->pid),
        .realtime_ns = realtime_now_ns(),
        .monotonic_ns = monotonic_now_ns(),
    };
    uncalled_fill_host(&info);
    strcpy(info.launcher, candidate->rank >= 0 ? "env" : "none");
    snprintf(path, sizeof path, "/proc/%d/exe", candidate->pid);
    if (readlink(path, info.program, sizeof info.program - 1) < 0)
        info.program[0] = 0;
    size_t bytes = process_file_read(candidate->pid, "cmdline", info.command, sizeof info.command);
    secrets_mask_command(info.command, bytes);
    return info;
}

/* Where launchers number the ranks, each is one process. Else it can't be known which processes are
 * ranks, and all that have loaded CUDA, NCCL or PyTorch are taken. */
static bool is_lost_rank(struct candidates *candidates, struct candidate *candidate, bool has_ranks)
{
    return has_ranks
               ? candidate->rank >= 0 && candidate == candidate_of(candidates, candidate->rank)
               : candidate_sign(candidate) == HAS_LIBRARY;
}

static bool has_ranks(struct candidates *candidates)
{
    for (int i = 0; i < candidates->count; i++)
        if (candidates->item[i].rank >= 0 && candidate_sign(&candidates->item[i]) != NO_SIGN)
            return true;
    return false;
}

static int record_one(struct collector *collector, const struct candidate *candidate,
                      struct error *err)
{
    char place[CANDIDATE_PLACE_BYTES];
    struct process_info info = describe_candidate(candidate);
    int process = collector_add_process(collector, &info, err);
    if (process < 0)
        return -1;
    const struct dormant_notice notice = {candidate->rank, candidate->pid,
                                          candidate_place(candidate->pid, place)};
    return dormant_add(collector, process, &notice, monotonic_now_ns())
               ? 0
               : error_set(err, "there is no room for another rank");
}

static int record_all(struct collector *collector, struct candidates *candidates, struct error *err)
{
    int recorded = 0;
    bool numbered = has_ranks(candidates);
    for (int i = 0; i < candidates->count && batch_room(collector->batch) >= RECORDS_MOST; i++) {
        if (!is_lost_rank(candidates, &candidates->item[i], numbered))
            continue;
        if ((!collector->store && collector_open(collector, NULL, err) < 0) ||
            record_one(collector, &candidates->item[i], err) < 0)
            return -1;
        recorded++;
    }
    return recorded;
}

int collector_record_uncalled(struct collector *collector, struct error *err)
{
    struct record record = {.api = API_notice_ending, .device = RECORD_NO_DEVICE};
    record.ending.signal = collector->job_end.ending.signal;
    record.ending.silence_ns = collector->job_end.ending.silence_ns;
    struct candidates *candidates = record.ending.silence_ns ? malloc(sizeof *candidates) : NULL;
    if (!candidates)
        return 0;
    candidates_find(candidates, collector->options.directory);
    int recorded = record_all(collector, candidates, err);
    free(candidates);
    record.time_ns = monotonic_now_ns();
    if (recorded > 0)
        batch_add(collector->batch, 0, &record);
    return recorded;
}
