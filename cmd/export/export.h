/* export.h: what the writers of all formats are given, and the table of formats (formats.def).
 *
 * The formats of findings print what the report knows. Those of operations read the trace a second
 * time, as a stream (timeline.h), so that their memory follows what is in flight, not the length of
 * the job. */
#ifndef DDPCHECK_EXPORT_H
#define DDPCHECK_EXPORT_H

#include <stdio.h>

#include "cmd/report/not_checked.h"
#include "cmd/report/report_model.h"
#include "lib/base/error.h"

struct export
{
    struct report *report;    /* the findings that were chosen, members, processes */
    const char *const *paths; /* the traces, to be read again */
    int path_count;
    struct not_checked *not_checked; /* what an importer's source can't show: not found does not
                                        mean fine */
    int not_checked_count;
    const char *src_prefix; /* "FROM=TO,...": where sources lie for the reader of the export; NULL
                               as recorded */
    bool is_live;           /* a server shows the page: its scripts are files beside it */
    FILE *out;
};

/* Fills in the report, its paths and what was not checked. Returns 0 (export_end it), or -1 with
 * err. */
int export_begin(struct export *export, struct report *report, const char *const *paths, int count,
                 struct error *err);
void export_end(struct export *export);

/* Each writes a whole document to export->out. Returns 0, or -1 with err; errors of the stream
 * itself show when the output is committed, and need not be checked on the way. */
#define EXPORT(name, extensions, what) \
    int export_##name(const struct export *export, struct error *err);
#include "cmd/export/formats.def"
#undef EXPORT

struct export_format {
    const char *name;       /* as --format takes it */
    const char *extensions; /* of files that are of this format, ".json .sarif"; the first that fits
                               is taken */
    const char *what;       /* for --help */
    int (*write)(const struct export *export, struct error *err);
};

/* Ended by a NULL name. */
extern const struct export_format export_formats[];
/* NULL if there is none of the name. */
const struct export_format *export_format_find(const char *name);

#endif
