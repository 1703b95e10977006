/* option_table.h: a command's option table (options.h) written for other readers than people at
 * --help: manual pages and the completions of shells.
 *
 * `ddpcheck COMMAND --option-table=FORMAT` prints the command's part in a format; every command
 * that reads its options with options_parse answers it. completion.c joins the parts, so that a new
 * command or option needs no line anywhere. */
#ifndef DDPCHECK_OPTION_TABLE_H
#define DDPCHECK_OPTION_TABLE_H

#include <stddef.h>
#include <stdio.h>

#include "cmd/options/options.h"

#define OPTION_TABLE_WORD "--option-table="

/* Writes the command's part in format "man", "bash", "zsh" or "fish". Returns STATUS_CLEAN, or
 * STATUS_USAGE after a message about another format. */
int option_table_print(const struct command_options *options, const char *format, FILE *out);

/* What a shell can offer for the argument of an option or of a command. */
enum value_kind {
    VALUE_NONE,  /* there is none */
    VALUE_OTHER, /* numbers, names: nothing to offer */
    VALUE_WORDS, /* the words of "a|b|c" */
    VALUE_FILES,
    VALUE_FOLDERS,
    VALUE_CODES,  /* codes of findings */
    VALUE_PROGRAM /* a program and its arguments, after -- */
};
enum value_kind value_kind_of_argument(const struct option_entry *entry);
enum value_kind value_kind_of_usage(const char *usage); /* of command_options.arguments */

/* The command's line in `ddpcheck --help`; "" for a name that commands.def lacks. */
const char *command_help(const char *command);

/* The entries that --help shows, then --help itself: the entry with index `i`, NULL after the last.
 */
const struct option_entry *option_table_entry(const struct command_options *options, int i);

/* Writes text with each character of `special` behind `before`. */
void put_escaped(const char *text, const char *special, const char *before, FILE *out);
/* Writes the words of "a|b|c" with `between` between them. */
void put_words(const char *words, const char *between, FILE *out);

/* One writer per format. */
void option_table_man(const struct command_options *options, FILE *out);
void option_table_bash(const struct command_options *options, FILE *out);
void option_table_zsh(const struct command_options *options, FILE *out);
void option_table_fish(const struct command_options *options, FILE *out);

/* Words for --help's own entry and the usage line in roff, for the page of ddpcheck itself
 * (completion.c). */
void man_head(const char *page, const char *what, FILE *out);
void man_text(const char *text, FILE *out);

#endif
