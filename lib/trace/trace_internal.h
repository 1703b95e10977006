/* trace_internal.h: what the readers of a trace share (trace.h). Only trace*.c include it. */
#ifndef DDPCHECK_TRACE_INTERNAL_H
#define DDPCHECK_TRACE_INTERNAL_H

#include "lib/trace/merge.h"
#include "lib/trace/symbols.h"
#include "lib/trace/trace.h"
#include "lib/trace/trace_source.h"

enum { STRING_BUCKETS = 1024 };

struct trace_process {
    struct process_info info;
    int source, local; /* which database, and its number there */
};

/* A string that was handed out. */
struct trace_text {
    int process;
    uint64_t id;
    struct trace_text *next;
    char bytes[];
};

struct trace {
    struct trace_source *sources;
    int source_count;
    bool is_frugal;     /* descriptors are few: databases that are complete keep one each */
    struct merge heads; /* the next record of each source that has one */
    int asked;          /* sources from here on may have more: all at first, and after a refresh */
    int emptied; /* the source whose record was handed out last, may have more too; -1 none */
    struct trace_process **processes; /* pointers, so that handed-out infos stay where they are */
    int process_count;
    int adding; /* the source whose processes are being read */
    struct trace_text *strings[STRING_BUCKETS];
    struct symbols *symbols;
    bool is_own; /* the collector's that reads it: what it names was loaded here */
};

/* trace_clocks.c: once all processes there are were read: finds out how far the clocks of several
 * databases' hosts are off, and corrects the times of their processes. */
void trace_find_clocks(struct trace *trace);

#endif
