/* option_table_man.c: a command's manual page, in the man macros that groff and mandoc share. */
#include <string.h>

#include "cmd/options/option_table.h"

/* A line of roff: backslashes and hyphens are themselves, a leading dot or quote is no request. */
static void put_line(const char *text, size_t length, FILE *out)
{
    if (length > 0 && (text[0] == '.' || text[0] == '\''))
        fputs("\\&", out);
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\\')
            fputs("\\e", out);
        else if (text[i] == '-')
            fputs("\\-", out);
        else
            putc(text[i], out);
    }
}

static void set_filled(bool *filled, bool wanted, FILE *out)
{
    if (*filled != wanted)
        fputs(wanted ? ".fi\n" : ".nf\n", out);
    *filled = wanted;
}

void man_text(const char *text, FILE *out)
{
    bool filled = true, empty = false;
    while (*text) {
        size_t length = strcspn(text, "\n");
        if (length == 0) {
            empty = true;
        } else {
            bool prose = text[0] != ' '; /* an indented line is an example or a table */
            set_filled(&filled, prose, out);
            if (empty)
                fputs(prose ? ".PP\n" : ".sp\n", out);
            empty = false;
            put_line(text, length, out);
            putc('\n', out);
        }
        text += length + (text[length] != 0);
    }
    set_filled(&filled, true, out);
}

void man_head(const char *page, const char *what, FILE *out)
{
    fputs(".\\\" Made from ddpcheck's option tables (cmd/options/option_table_man.c).\n.TH ", out);
    for (const char *letter = page; *letter; letter++)
        putc(*letter >= 'a' && *letter <= 'z' ? *letter - 'a' + 'A' : *letter, out);
    fprintf(out, " 1 \"\" \"ddpcheck %s\" \"ddpcheck\"\n.SH NAME\n", DDPCHECK_VERSION);
    put_line(page, strlen(page), out);
    fputs(" \\- ", out);
    put_line(what, strlen(what), out);
    putc('\n', out);
}

static void put_man_option(const struct option_entry *entry, FILE *out)
{
    fputs(".TP\n", out);
    if (entry->short_name)
        fprintf(out, "\\fB\\-%c\\fR, ", entry->short_name);
    fputs("\\fB\\-\\-", out);
    put_line(entry->name, strlen(entry->name), out);
    fputs("\\fR", out);
    if (entry->argument) {
        fputs(" \\fI", out);
        put_line(entry->argument, strlen(entry->argument), out);
        fputs("\\fR", out);
    }
    putc('\n', out);
    put_line(entry->help, strlen(entry->help), out);
    putc('\n', out);
}

void option_table_man(const struct command_options *options, FILE *out)
{
    char page[64];
    snprintf(page, sizeof page, "ddpcheck-%s", options->command);
    man_head(page, command_help(options->command), out);
    fprintf(out, ".SH SYNOPSIS\n.B ddpcheck %s\n[\\fIoptions\\fR]", options->command);
    if (options->arguments[0]) {
        putc(' ', out);
        put_line(options->arguments, strlen(options->arguments), out);
    }
    fputs("\n.SH DESCRIPTION\n", out);
    man_text(options->summary, out);
    fputs(".SH OPTIONS\n", out);
    const struct option_entry *entry;
    for (int i = 0; (entry = option_table_entry(options, i)); i++)
        put_man_option(entry, out);
    if (options->details) {
        fputs(".SH NOTES\n", out);
        man_text(options->details, out);
    }
    fputs(".SH SEE ALSO\n.BR ddpcheck (1)\n", out);
}
