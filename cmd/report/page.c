/* page.c: wraps, indents and colours text for the terminal. */
#include "cmd/report/page.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lib/base/printable.h"

enum { WIDTH_USUAL = 80, WIDTH_LEAST = 40, WIDTH_MOST = 120 };

static const char *const style_code[] = {
    [STYLE_PLAIN] = "",           [STYLE_STRONG] = "\033[1m",     [STYLE_FAINT] = "\033[2m",
    [STYLE_ERROR] = "\033[1;31m", [STYLE_WARNING] = "\033[1;33m", [STYLE_NOTE] = "\033[1;36m",
    [STYLE_GOOD] = "\033[1;32m",
};

static int page_width(FILE *out)
{
    const char *columns = getenv("COLUMNS");
    int width = columns ? atoi(columns) : 0;
    struct winsize size;
    if (width <= 0 && isatty(fileno(out)) && !ioctl(fileno(out), TIOCGWINSZ, &size))
        width = size.ws_col;
    if (width <= 0)
        width = WIDTH_USUAL;
    if (width < WIDTH_LEAST)
        return WIDTH_LEAST;
    return width > WIDTH_MOST ? WIDTH_MOST : width;
}

void page_init(struct page *page, FILE *out, enum color_when color)
{
    *page = (struct page){
        .out = out, .width = page_width(out), .color = terminal_colored(color, fileno(out))};
}

/* Each character is one column: names and paths rarely hold wider ones. */
static int bytes_width(const char *text, size_t bytes)
{
    size_t length;
    int width = 0;
    for (const char *end = text + bytes; text < end; text += length) {
        printable_next(text, &length);
        width++;
    }
    return width;
}

int text_width(const char *text)
{
    return bytes_width(text, strlen(text));
}

void page_line(struct page *page)
{
    if (page->column > 0)
        putc('\n', page->out);
    page->column = page->start = 0;
}

void page_gap(struct page *page)
{
    page_line(page);
    putc('\n', page->out);
}

void page_column(struct page *page, int column)
{
    if (page->column > column)
        page_line(page);
    fprintf(page->out, "%*s", column - page->column, "");
    page->column = page->start = column;
}

static void put_styled(struct page *page, enum style style, const char *text, size_t bytes)
{
    bool styled = page->color && style != STYLE_PLAIN && bytes > 0;
    if (styled)
        fputs(style_code[style], page->out);
    printable_put(text, bytes, page->out);
    if (styled)
        fputs("\033[0m", page->out);
    page->column += bytes_width(text, bytes);
}

void page_text(struct page *page, enum style style, const char *text)
{
    put_styled(page, style, text, strlen(text));
}

/* A space goes before a word unless the line begins there or the word is `glued` to what is before
 * it. */
static void put_word(struct page *page, enum style style, const char *word, size_t bytes,
                     bool glued)
{
    bool begun = page->column > page->start;
    bool space = begun && !glued;
    if (begun && page->column + space + bytes_width(word, bytes) > page->width) {
        page_line(page);
        space = false;
    }
    if (page->column == 0)
        page_column(page, page->indent);
    if (space)
        page_text(page, STYLE_PLAIN, " ");
    put_styled(page, style, word, bytes);
}

void page_words(struct page *page, enum style style, const char *text)
{
    bool glued = *text != ' ';
    for (const char *word = text; *word;) {
        size_t blanks = strspn(word, " \n\t");
        word += blanks;
        size_t bytes = strcspn(word, " \n\t");
        if (bytes > 0)
            put_word(page, style, word, bytes, glued && word == text);
        word += bytes;
    }
}

void page_format(struct page *page, enum style style, const char *format, ...)
{
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    page_words(page, style, text);
}

void page_sentence(struct page *page, enum style style, const char *text)
{
    size_t bytes = strlen(text), letters = strspn(text, "abcdefghijklmnopqrstuvwxyz");
    bool is_word = letters > 0 && strchr(" ,'-", text[letters]);
    char first[2] = {is_word ? (char)(text[0] - 'a' + 'A') : text[0], '\0'};
    if (!bytes)
        return;
    char *sentence;
    if (asprintf(&sentence, "%s%s%s", first, text + 1, strchr(".!?:", text[bytes - 1]) ? "" : ".") <
        0)
        return page_words(page, style, text);
    page_words(page, style, sentence);
    free(sentence);
}

/* The next line of *rest and its bytes without the newline, or NULL. */
static const char *next_line(const char **rest, size_t *bytes)
{
    const char *line = *rest;
    if (!line || !*line)
        return NULL;
    *bytes = strcspn(line, "\n");
    *rest = line + *bytes + (line[*bytes] == '\n');
    return line;
}

void page_paragraphs(struct page *page, const char *text)
{
    size_t bytes;
    bool ended = false;
    for (const char *line; (line = next_line(&text, &bytes));) {
        if (bytes == 0) {
            page_line(page);
            ended = true;
            continue;
        }
        if (ended)
            page_gap(page);
        ended = false;
        bool listed = *line == ' ' || *line == '\t';
        if (listed) {
            page_column(page, page->indent);
            put_styled(page, STYLE_PLAIN, line, bytes);
            page_line(page);
            continue;
        }
        for (size_t at = 0; at < bytes;) {
            size_t word = strcspn(line + at, " \n");
            if (word > 0)
                put_word(page, STYLE_PLAIN, line + at, word, false);
            at += word + 1;
        }
    }
    page_line(page);
}

void page_listing(struct page *page, enum style style, const char *text)
{
    size_t bytes;
    for (const char *line; (line = next_line(&text, &bytes));) {
        if (bytes == 0) {
            page_line(page);
            putc('\n', page->out);
            continue;
        }
        page_column(page, page->indent);
        put_styled(page, style, line, bytes);
        page_line(page);
    }
}
