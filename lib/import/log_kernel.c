/* log_kernel.c: what the kernel logs about GPUs and what connects them: NVIDIA's Xid and SXid, a
 * GPU that fell off the bus.
 *
 * Which Xid is the hardware's, the program's or only follows from another one: NVIDIA's "XID
 * Errors" guide. */
#include <stdio.h>
#include <string.h>

#include "lib/import/log_messages.h"
#include "lib/import/scan.h"

enum { BUS_BYTES = 48 };

struct log_kernel {
    bool has_fallen;     /* an Xid said so: the driver says it again in other words */
    char bus[BUS_BYTES]; /* of the GPU that the message is about which the driver has begun */
};

static const char todo_xid[] =
    "The GPU or its driver failed: NVIDIA's list of Xid errors says whether to restart the job, "
    "reset the GPU or replace it. Take the node out and run diagnostics (dcgmi diag).";
static const char todo_xid_memory[] =
    "The GPU's memory is broken: take the node out, reset the GPU, and replace it if the error "
    "comes back (nvidia-smi -q -d ECC,ROW_REMAPPER). No change of the program helps.";
static const char todo_xid_link[] =
    "A link between GPUs failed: take the node out and run diagnostics (dcgmi diag, nvidia-smi "
    "nvlink -e). No change of the program helps.";
static const char todo_xid_program[] =
    "As a rule the program's: a kernel that used memory which is not its own. Run it with "
    "compute-sanitizer. If other programs have it on this GPU, too, it is the GPU.";
static const char todo_xid_follows[] = "It follows from another error: see what came before.";

static const struct xid_meaning {
    int first, last;
    int how; /* of log_messages_add */
    const char *says, *todo;
} xid_meanings[] = {
    {13, 13, SAID_ERROR, "exception of the graphics engine", todo_xid_program},
    {31, 31, SAID_ERROR, "page fault of the GPU", todo_xid_program},
    {43, 43, LOG_SAID_ENDED, "the GPU stopped processing", todo_xid_program},
    {45, 45, SAID_NOTE, "work was cleaned up", todo_xid_follows},
    {48, 48, SAID_ERROR, "double bit ECC error", todo_xid_memory},
    {63, 63, SAID_NOTE, "a row of memory was remapped", todo_xid_memory},
    {64, 64, SAID_ERROR, "a row of memory could not be remapped", todo_xid_memory},
    {74, 74, SAID_ERROR, "NVLink error", todo_xid_link},
    {79, 79, SAID_ERROR, "the GPU has fallen off the bus", todo_xid},
    {92, 92, SAID_WARNING, "many single bit ECC errors", todo_xid_memory},
    {94, 94, SAID_ERROR, "contained ECC error", todo_xid_memory},
    {95, 95, SAID_ERROR, "uncontained ECC error", todo_xid_memory},
    {119, 120, SAID_ERROR, "the GPU's own processor (GSP) does not answer", todo_xid},
    {140, 140, SAID_ERROR, "unrecovered ECC error", todo_xid_memory},
    {144, 150, SAID_ERROR, "NVLink error", todo_xid_link},
    {154, 154, LOG_SAID_ENDED, "what brings the GPU back", todo_xid},
    {0, INT32_MAX, SAID_ERROR, "", todo_xid}, /* the last: all others */
};

static int add_driver_message(struct log_job *job, int how, const char *what, const char *todo)
{
    return log_messages_add(job, LOG_NOBODY, how, "the driver", what, todo);
}

int log_xid_add(struct log_job *job, int xid, const char *text)
{
    char what[MESSAGE_BYTES];
    const struct xid_meaning *meaning = xid_meanings;
    while (xid < meaning->first || xid > meaning->last)
        meaning++;
    bool nonfatal = meaning->first == 144 && strstr(text, "Nonfatal");
    snprintf(what, sizeof what, "%s%s%s", text, *meaning->says ? ": " : "", meaning->says);
    return add_driver_message(job, nonfatal ? SAID_NOTE : meaning->how, what, meaning->todo);
}

static int read_kernel_line(struct log_job *job, const char *text, size_t bytes)
{
    struct log_kernel *kernel = job->state[LOG_KERNEL];
    struct scanned found;
    char what[MESSAGE_BYTES];
    (void)bytes;
    if (scan(text, "SXid ({r:switch}): {i:sxid},", &found)) {
        bool is_fatal = !strcasestr(found.end, "non-fatal") && strcasestr(found.end, "fatal");
        snprintf(what, sizeof what, "NVSwitch %s", found.begin);
        return add_driver_message(job, is_fatal ? SAID_ERROR : SAID_NOTE, what, todo_xid_link);
    }
    const char *driver = scan_find(text, "NVRM: ");
    if (!driver)
        return 0;
    if (scan(driver, "Xid ({r:gpu}): {i:xid}", &found)) {
        kernel->has_fallen |= scanned_number(&found, "xid", -1) == 79;
        return log_xid_add(job, (int)scanned_number(&found, "xid", -1), found.begin);
    }
    if (scan(driver, "NVRM: The NVIDIA GPU {w:bus}", &found))
        snprintf(kernel->bus, sizeof kernel->bus, "%.*s", (int)(found.end - driver) - 21,
                 driver + 21);
    if (scan(driver, "NVRM: GPU {w:bus} GPU has fallen off the bus", &found))
        return add_driver_message(job, kernel->has_fallen ? SAID_NOTE : SAID_ERROR, found.begin,
                                  todo_xid);
    if (strstr(driver, "fallen off the bus")) {
        snprintf(what, sizeof what, "the GPU%s%s has fallen off the bus (as Xid 79)",
                 *kernel->bus ? " " : "", kernel->bus);
        *kernel->bus = '\0';
        return add_driver_message(job, SAID_ERROR, what, todo_xid);
    }
    return scan(driver, "NVRM: {r:}RmInitAdapter failed!", &found)
               ? add_driver_message(job, SAID_ERROR, found.begin, todo_xid)
               : 0;
}

const struct log_reader log_kernel = {sizeof(struct log_kernel), read_kernel_line, NULL};
