/* log_diag.c: NCCL's own diagnostics (2.31 and later; RCCL's, too), as `ncclras -D` prints them,
 * and as NCCL_RUN_RAS_DIAGNOSTICS and NCCL_RUN_DIAGNOSTICS do:
 *
 *     node042:12345 NCCL DIAG [INFO] NCCL environment: NCCL_DEBUG=INFO on rank(s) {0,1,2,3}
 *
 * [OK]: a check found nothing. [INFO]: a fault, a difference between ranks, or a check that could
 * not be made. Ranks are those of the communicator. Texts: NCCL's src/ras/diagnostics_*.cc and
 * src/diagnostics/p2p.cc. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/import/log_messages.h"
#include "lib/import/scan.h"

enum { VARIABLE_BYTES = 64 };

struct log_diag {
    uint64_t passed;                                      /* checks */
    int widest;                                           /* the largest communicator in it */
    char variable[VARIABLE_BYTES], values[MESSAGE_BYTES]; /* that differs, and what it is where */
};

static const char who_diag[] = "NCCL's diagnostics";
static const char todo_differs[] =
    "If that is not meant to be, give all ranks the same: a difference is a common cause of hangs "
    "and of slow jobs.";
static const char todo_ecc[] =
    "The GPU's memory is broken: take the node out, reset the GPU, and replace it if the error "
    "comes back (nvidia-smi -q -d ECC,ROW_REMAPPER; amd-smi metric --ecc).";
static const char todo_inactive[] =
    "A link between GPUs is down: take the node out and run diagnostics (nvidia-smi nvlink -s, "
    "dcgmi diag; amd-smi xgmi).";
static const char todo_p2p[] =
    "GPUs do not read what another one wrote: see ACS, IOMMU and virtualization on that node "
    "(NCCL's troubleshooting guide, GPU-to-GPU). NCCL_P2P_DISABLE=1 avoids the path meanwhile.";
static const char todo_p2p_failed[] =
    "GPUs can't use each other's memory: see CUDA IPC, what the container isolates, and "
    "CUDA_VISIBLE_DEVICES.";
static const char todo_incomplete[] =
    "A process did not answer: it exited, was stopped, or its node lost the network. Ask again "
    "(ncclras -D), and see what it does.";

/* What a line behind its tag has, in this order; SAID_NAMED here: nothing to report. */
static const struct diag_meaning {
    const char *template;
    int how; /* of log_messages_add */
    const char *todo;
} diag_meanings[] = {
    {"uncorrected volatile errors on rank(s)", SAID_ERROR, todo_ecc},
    {"corrected volatile errors at or above", SAID_NOTE, todo_ecc},
    {"inactive link(s) on rank(s)", SAID_WARNING, todo_inactive},
    {"p2p: write mismatch ", SAID_ERROR, todo_p2p},
    {"p2p: read mismatch ", SAID_ERROR, todo_p2p},
    {"p2p: {r:} failed srcRank", SAID_WARNING, todo_p2p_failed},
    {"p2p: destination buffer unavailable", SAID_WARNING, todo_p2p_failed},
    {"diagnostics incomplete, gathered ", SAID_WARNING, todo_incomplete},
    {"SXid {i:} detected {r:} reported Fatal", SAID_ERROR, todo_inactive},
    {"env var(s) differ across ranks", SAID_NAMED, ""}, /* said for each variable */
    {"mismatch", SAID_NOTE, todo_differs},
    {"inconsistent", SAID_NOTE, todo_differs},
};

/* The ranks in braces, a message for each, where they are the job's. */
static int add_of_ranks(struct log_job *job, const struct diag_meaning *meaning, const char *text)
{
    const struct log_diag *diag = job->state[LOG_DIAG];
    int64_t ranks = text_number_behind(text, "across ");
    const char *at = strchr(text, '{');
    int most = diag->widest > job->world ? diag->widest : job->world;
    if (!at || meaning->how == SAID_NOTE || ranks < most)
        return log_messages_add(job, LOG_NOBODY, meaning->how, who_diag, text, meaning->todo);
    int result = 1;
    for (at++; isdigit((unsigned char)*at) && result > 0; at += *at == ',') {
        struct log_speaker speaker = {.rank = (int)strtol(at, (char **)&at, 10)};
        result = log_messages_add(job, speaker, meaning->how, who_diag, text, meaning->todo);
    }
    return result;
}

static int add_variable(struct log_job *job)
{
    struct log_diag *diag = job->state[LOG_DIAG];
    char what[MESSAGE_BYTES];
    if (!*diag->variable)
        return 0;
    snprintf(what, sizeof what, "%s differs between ranks: %.*s", diag->variable,
             (int)(sizeof what - sizeof diag->variable - 32), diag->values);
    *diag->variable = *diag->values = '\0';
    return log_messages_add(job, LOG_NOBODY, SAID_NOTE, who_diag, what, todo_differs);
}

/* "NCCL_DEBUG=INFO on rank(s) {0,1,2,3}", a line for each value, behind the variable's own. */
static bool variable_line(struct log_diag *diag, const char *text)
{
    struct scanned found;
    size_t used = strlen(diag->values);
    if (scan(text, "NCCL environment: mismatch across {i:} ranks in comm {w:} for {w:name}",
             &found)) {
        snprintf(diag->variable, sizeof diag->variable, "%.*s", (int)found.field[2].bytes,
                 found.field[2].text);
        return true;
    }
    if (!*diag->variable || !scan(text, "={r:value} on rank(s) {r:}", &found))
        return false;
    snprintf(diag->values + used, sizeof diag->values - used, "%s%.*s on ranks %.*s",
             used ? "; " : "", (int)found.field[0].bytes, found.field[0].text,
             (int)found.field[1].bytes, found.field[1].text);
    return true;
}

static int info_line(struct log_job *job, const char *text)
{
    struct scanned found;
    if (scan(text, "Xid {i:xid} detected", &found) && found.begin == text)
        return log_xid_add(job, (int)scanned_number(&found, "xid", -1), text);
    for (size_t i = 0; i < sizeof diag_meanings / sizeof *diag_meanings; i++)
        if (scan(text, diag_meanings[i].template, &found))
            return diag_meanings[i].how == SAID_NAMED ? 1
                                                      : add_of_ranks(job, &diag_meanings[i], text);
    return 1; /* a check that could not be made */
}

static int read_diag_line(struct log_job *job, const char *text, size_t bytes)
{
    static const char begin[] = "NCCL DIAG ", tag_ok[] = "[OK]", tag_info[] = "[INFO] ";
    struct log_diag *diag = job->state[LOG_DIAG];
    const char *line = scan_find(text, begin);
    (void)bytes;
    if (!line)
        return 0;
    line += strlen(begin);
    int64_t ranks = text_number_behind(line, " across ");
    bool is_info = !strncmp(line, tag_info, strlen(tag_info));
    if (ranks > diag->widest && ranks < INT32_MAX)
        diag->widest = (int)ranks;
    diag->passed += !strncmp(line, tag_ok, strlen(tag_ok));
    if (is_info && variable_line(diag, line + strlen(tag_info)))
        return 1;
    if (add_variable(job) < 0)
        return -1;
    return is_info ? info_line(job, line + strlen(tag_info)) : 1;
}

/* What they found nothing wrong with is worth knowing, too. */
static int end_diag(struct log_job *job)
{
    const struct log_diag *diag = job->state[LOG_DIAG];
    char what[MESSAGE_BYTES];
    if (add_variable(job) < 0)
        return -1;
    if (!diag->passed)
        return 0;
    snprintf(what, sizeof what, "%llu check%s of GPUs, driver, links and environment found nothing",
             (unsigned long long)diag->passed, diag->passed == 1 ? "" : "s");
    return log_messages_add(job, LOG_NOBODY, SAID_NOTE, who_diag, what, "") < 0 ? -1 : 0;
}

const struct log_reader log_diag = {sizeof(struct log_diag), read_diag_line, end_diag};
