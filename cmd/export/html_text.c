/* html_text.c: texts, paths and call stacks as HTML, for all parts of the page. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/export/html.h"
#include "cmd/export/place.h"
#include "cmd/export/text.h"

enum { TEXT_BYTES = 1024 };

void html_text(const struct html *html, const char *text)
{
    text_xml(text, html->out);
}

void html_rank_ranges(const struct html *html, const char *ranks)
{
    while (*ranks) {
        int length = (int)strcspn(ranks, ",");
        bool more = ranks[length] == ',';
        fprintf(html->out, "<span class=range>%.*s%s</span>%s", length, ranks, more ? "," : "",
                more ? "<wbr>" : "");
        ranks += length + more;
    }
}

void html_format(const struct html *html, const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    html_text(html, text);
}

void html_paragraphs(const struct html *html, const char *text)
{
    const char *open = NULL;
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        const char *wanted = length == 0 ? NULL : *line == ' ' ? "pre" : "p";
        if (open && open != wanted)
            fprintf(html->out, "</%s>", open);
        if (wanted && open != wanted)
            fprintf(html->out, "<%s>", wanted);
        open = wanted;
        if (wanted) {
            char *copy = strndup(line, length);
            html_text(html, copy ? copy : "");
            free(copy);
            putc('\n', html->out);
        }
        line += length + (line[length] == '\n');
    }
    if (open)
        fprintf(html->out, "</%s>", open);
}

void html_path(const struct html *html, char *path)
{
    for (char *part = path; *part;) {
        size_t bytes = strcspn(part, "/");
        bytes += part[bytes] == '/';
        char after = part[bytes];
        part[bytes] = '\0';
        html_text(html, part);
        part[bytes] = after;
        part += bytes;
        if (*part && part > path + 1)
            fputs("<wbr>", html->out);
    }
}

static void put_frame(const struct html *html, const struct frame *frame)
{
    char function[sizeof frame->function + 32], path[PATH_MAX];
    fputs("<code>", html->out);
    html_text(html, frame_function(frame, function, sizeof function));
    fputs("</code>", html->out);
    if (*frame->file) {
        fputs(" <span class=place>", html->out);
        html_path(html, place_path(html->export, frame->file, path));
        if (frame->line > 0)
            fprintf(html->out, ":%d", frame->line);
        fputs("</span>", html->out);
    }
}

void html_frames(const struct html *html, const struct shown_frames *frames)
{
    const struct frame *frame = frames->frame;
    if (frames->count == 1) {
        fputs("<div class=frames>", html->out);
        put_frame(html, frame);
        fputs("</div>", html->out);
    } else if (frames->count > 1) {
        fputs("<details class=frames><summary>", html->out);
        put_frame(html, &frame[frames->shown < 0 ? 0 : frames->shown]);
        fprintf(html->out, " <span class=more>%d frames</span></summary><ol>", frames->count);
        for (int i = 0; i < frames->count; i++) {
            fputs("<li>", html->out);
            put_frame(html, &frame[i]);
        }
        fputs("</ol></details>", html->out);
    }
}
