/* page.h: prints text for people on a stream: words wrapped to the width of the page, under an
 * indentation, with colour where it is wanted. Widths are those of UTF-8 text on a terminal. */
#ifndef DDPCHECK_PAGE_H
#define DDPCHECK_PAGE_H

#include <stdbool.h>
#include <stdio.h>

#include "lib/base/terminal.h"

enum style {
    STYLE_PLAIN,
    STYLE_STRONG,
    STYLE_FAINT,
    STYLE_ERROR,
    STYLE_WARNING,
    STYLE_NOTE,
    STYLE_GOOD
};

struct page {
    FILE *out;
    int width; /* columns */
    bool color;
    int indent; /* where continued lines begin */
    int column; /* where the next character goes; 0: the line is empty */
    int start;  /* where the text at hand began on this line */
};

/* A page on `out`. The width is $COLUMNS', else the terminal's, else 80. */
void page_init(struct page *page, FILE *out, enum color_when color);

/* Ends the line unless it is empty. */
void page_line(struct page *page);
/* Ends the line and leaves one empty. */
void page_gap(struct page *page);

/* Goes on to `column` on this line; if the line is already past it, on a new one. */
void page_column(struct page *page, int column);

/* Words separated by blanks, wrapped; a word longer than a line stands alone. They go on right
 * where the line is, after a blank if `text` begins with one; new lines begin at page->indent. */
void page_words(struct page *page, enum style style, const char *text);
void page_format(struct page *page, enum style style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Words as a sentence: the first letter a capital, unless the word is a name, and a full stop at
 * the end. */
void page_sentence(struct page *page, enum style style, const char *text);

/* Text as it is, not wrapped. */
void page_text(struct page *page, enum style style, const char *text);

/* Paragraphs: lines are joined and wrapped; an empty line ends one; a line that begins with blanks
 * is printed as it is. */
void page_paragraphs(struct page *page, const char *text);
/* A listing: each line as it is, under page->indent. */
void page_listing(struct page *page, enum style style, const char *text);

/* Columns that `text` takes. */
int text_width(const char *text);

#endif
