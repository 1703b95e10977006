/* html.h: the parts of the page that `ddpcheck export --format html` writes (html.c). Each writes a
 * <section>. */
#ifndef DDPCHECK_EXPORT_HTML_H
#define DDPCHECK_EXPORT_HTML_H

#include "cmd/export/comms.h"
#include "cmd/export/export.h"
#include "lib/trace/site.h"

struct html {
    const struct export *export;
    struct export_names names;
    FILE *out;
};

/* What was found, worst first, each with its ranks, places and fix; what the codes mean. */
void html_findings(const struct html *html);

/* A square for each process, by host. Nothing for a single one. Returns 0, or -1 where memory is
 * short. */
int html_map(const struct html *html);

/* Who waits for whom, as a tree. Nothing where nobody waits, or where there are databases of
 * several hosts: each knows its own waits alone. Returns 0, or -1 with err. */
int html_waits(const struct html *html, struct error *err);

/* A cell for each rank of each communicator, and where the ranks are, in words. */
void html_ranks(const struct html *html);

/* Which rank the others wait for, by iteration: a picture. Nothing where that is not known. Returns
 * 0, or -1 where memory is short. */
int html_speed(const struct html *html);

/* Where threads were when the job hung. Nothing if it was not asked. */
void html_stacks(const struct html *html);

/* When operations ran, a row for each process: as a picture, and the last ones in detail for the
 * script. Returns 0, or -1 with err. */
int html_timeline(const struct html *html, struct error *err);

/* Text between tags, or in an attribute. */
void html_text(const struct html *html, const char *text);
void html_format(const struct html *html, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A path, broken behind a "/" alone; it is whole again afterwards. */
void html_path(const struct html *html, char *path);
/* A set of ranks, "0-516,518-1023", that breaks at its commas alone. */
void html_rank_ranges(const struct html *html, const char *ranks);
/* Paragraphs; a line that begins with blanks is a listing. */
void html_paragraphs(const struct html *html, const char *text);

/* The lines of source around the frame's, if the process ran on this host since it was booted and
 * the file was not changed after it. */
void html_source(const struct html *html, int process, const struct frame *frame);

/* A list of a call's frames, behind a line to open it if there are several. */
void html_frames(const struct html *html, const struct shown_frames *frames);

/* The scripts of a page that a server shows (struct export, is_live): page.js, and live.js, which
 * keeps it up to date. */
const char *html_script(bool is_live);
/* The page that a server shows as long as there is nothing to read, for this reason. */
void html_waiting(FILE *out, const char *why);

#endif
