/* unread.c: names files of tools that are not read, and gathers what is passed over. */
#include "lib/import/unread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/import/input.h"
#include "lib/import/sink.h"

enum { NAMES_SHOWN = 3, NAMES_BYTES = 256 };

struct unread_kind {
    const char *what;
    uint64_t count;
    char names[NAMES_BYTES]; /* of the first; what does not fit is cut */
};

/* By how the file begins, by a text among its first bytes, or by the end of its name. A log may
 * have the texts as well: it is one if its reader finds something in it. */
enum mark { BEGINS, HAS, NAMED };
static const struct foreign {
    enum mark mark;
    const char *text;
    const char *what;
} foreign[] = {
    {BEGINS, "\xff\xfe", "UTF-16 text; convert it first: iconv -f UTF-16 -t UTF-8"},
    {BEGINS, "\xfe\xff", "UTF-16 text; convert it first: iconv -f UTF-16 -t UTF-8"},
    {HAS, "\"GROUP_API\"",
     "a timeline of NCCL's example profiler, which is not read; the logs of "
     "NCCL Inspector are"},
    {HAS, "nccl_bus_bandwidth_gbs",
     "NCCL Inspector's metrics for Prometheus, with no single "
     "operation; import Inspector's logs"},
#define NSYS                                                                                      \
    "of Nsight Systems, which does not say which rank and communicator an operation belongs to; " \
    "record with torch.profiler, or with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,COLL"
    {NAMED, ".nsys-rep", "a report " NSYS},
    {NAMED, ".qdrep", "a report " NSYS},
    {HAS, "CUPTI_ACTIVITY_KIND_", "an export " NSYS},
    {HAS, "NVTX_EVENTS", "an export " NSYS},
#undef NSYS
    {NAMED, ".ncu-rep", "a report of Nsight Compute, which is about kernels, not about ranks"},
#define ROCPROF                                                                                   \
    "of rocprof, which does not say which rank and communicator an operation belongs to; record " \
    "with torch.profiler, or with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,COLL"
    {HAS, "rocpd_", "a database " ROCPROF},
    {HAS, "\"Kind\",\"Agent_Id\"", "a table " ROCPROF},
    {HAS, "\"Domain\",\"Function\",\"Process_Id\"", "a table " ROCPROF},
    {HAS, "\"Index\",\"KernelName\"", "a table " ROCPROF},
    {NAMED, ".pftrace", "a Perfetto trace " ROCPROF},
#undef ROCPROF
    {NAMED, ".xplane.pb",
     "a profile of XLA, which does not say what a rank waits for; record with "
     "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,COLL"},
    {HAS, "|base_timestamp=",
     "a clog of torchcomms, which is not read; record with its "
     "FlightRecorderHook, and import the dumps"},
    {BEGINS, "SQLite format 3", "a database; 'ddpcheck report' reads it if it is a trace"},
};

static bool has_mark(const struct import_head *head, const struct foreign *kind)
{
    size_t bytes = strlen(kind->text), path_bytes = strlen(head->path);
    switch (kind->mark) {
    case BEGINS:
        return head->count >= bytes && !memcmp(head->bytes, kind->text, bytes);
    case HAS:
        return memmem(head->bytes, head->count, kind->text, bytes);
    default:
        return path_bytes >= bytes && !strcmp(head->path + path_bytes - bytes, kind->text);
    }
}

const char *unread_what(const struct import_input *input)
{
    struct import_head head;
    input_head(input, &head);
    if (!head.count)
        return "empty";
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (has_mark(&head, &foreign[i]))
            return foreign[i].what;
    return "in no format that can be imported, and has no line of NCCL, PyTorch or a launcher";
}

int unread_add(struct import *import, const char *what, const char *path)
{
    size_t i = 0;
    while (i < import->unread_count && import->unread[i].what != what)
        i++;
    if (i == import->unread_count) {
        if (!ARRAY_ADD(import->unread, import->unread_count))
            return -1;
        import->unread[import->unread_count++] = (struct unread_kind){.what = what};
    }
    struct unread_kind *unread = &import->unread[i];
    size_t used = strlen(unread->names);
    if (unread->count++ < NAMES_SHOWN)
        snprintf(unread->names + used, sizeof unread->names - used, "%s%s", used ? ", " : "", path);
    return 0;
}

void unread_print(struct import *import)
{
    for (size_t i = 0; i < import->unread_count; i++) {
        const struct unread_kind *unread = &import->unread[i];
        struct error text;
        if (unread->count == 1)
            error_set(&text, "%s: it is %s", unread->names, unread->what);
        else
            error_set(&text, "%llu files are passed over (%s%s): each is %s",
                      (unsigned long long)unread->count, unread->names,
                      unread->count > NAMES_SHOWN ? ", ..." : "", unread->what);
        import_print(import, text.text);
    }
    free(import->unread);
    import->unread = NULL;
    import->unread_count = 0;
}
