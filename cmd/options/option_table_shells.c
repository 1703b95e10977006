/* option_table_shells.c: a command's part of completion.c's scripts for zsh (one call of
 * _arguments), bash and fish. */
#include "cmd/options/option_table.h"

/* Text inside a specification, which stands in single quotes. */
static void put_zsh_text(const char *text, FILE *out)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", out);
        else if (*text == '[' || *text == ']' || *text == ':' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else
            putc(*text, out);
    }
}

static void put_action(enum value_kind kind, const char *words, FILE *out)
{
    static const char *const actions[] = {
        [VALUE_NONE] = "",
        [VALUE_OTHER] = " ",
        [VALUE_FILES] = "_files",
        [VALUE_FOLDERS] = "_files -/",
        [VALUE_CODES] = "_ddpcheck_codes",
        [VALUE_PROGRAM] = "{_normal -p ddpcheck}",
    };
    if (kind == VALUE_WORDS) {
        putc('(', out);
        put_words(words, " ", out);
        putc(')', out);
    } else {
        fputs(actions[kind], out);
    }
}

static void put_zsh_option(const struct option_entry *entry, FILE *out)
{
    enum value_kind kind = value_kind_of_argument(entry);
    bool takes_argument = kind != VALUE_NONE;
    fputs(" \\\n            ", out);
    if (entry->short_name)
        fprintf(out, "'(-%c --%s)'{-%c%s,--%s%s}'[", entry->short_name, entry->name,
                entry->short_name, takes_argument ? "+" : "", entry->name,
                takes_argument ? "=" : "");
    else
        fprintf(out, "'--%s%s[", entry->name, takes_argument ? "=" : "");
    put_zsh_text(entry->help, out);
    putc(']', out);
    if (takes_argument) {
        putc(':', out);
        put_zsh_text(kind == VALUE_WORDS ? entry->name : entry->argument, out);
        putc(':', out);
        put_action(kind, entry->argument, out);
    }
    putc('\'', out);
}

void option_table_zsh(const struct command_options *options, FILE *out)
{
    const struct option_entry *entry;
    fprintf(out, "    %s)\n        _arguments -s -S", options->command);
    for (int i = 0; (entry = option_table_entry(options, i)); i++)
        put_zsh_option(entry, out);
    enum value_kind kind = value_kind_of_usage(options->arguments);
    if (kind != VALUE_NONE) {
        fprintf(out, " \\\n            '*:%s", kind == VALUE_PROGRAM ? "::" : "");
        put_zsh_text(options->arguments, out);
        putc(':', out);
        put_action(kind, options->arguments, out);
        putc('\'', out);
    }
    fputs(" ;;\n", out);
}

/* --- bash --- */

static void put_names(const struct option_entry *entry, const char *between, FILE *out)
{
    if (entry->short_name)
        fprintf(out, "-%c%s", entry->short_name, between);
    fprintf(out, "--%s", entry->name);
}

static void put_bash_value(enum value_kind kind, const char *words, FILE *out)
{
    static const char *const names[] = {
        [VALUE_NONE] = "none",       [VALUE_OTHER] = "none",      [VALUE_WORDS] = "words",
        [VALUE_FILES] = "files",     [VALUE_FOLDERS] = "folders", [VALUE_CODES] = "codes",
        [VALUE_PROGRAM] = "program",
    };
    fprintf(out, "value=%s", names[kind]);
    if (kind == VALUE_WORDS) {
        fputs(" words='", out);
        put_words(words, " ", out);
        putc('\'', out);
    }
}

void option_table_bash(const struct command_options *options, FILE *out)
{
    const struct option_entry *entry;
    fprintf(out, "    %s)\n        options='", options->command);
    for (int i = 0; (entry = option_table_entry(options, i)); i++) {
        if (i > 0)
            putc(' ', out);
        put_names(entry, " ", out);
    }
    fputs("'\n        ", out);
    put_bash_value(value_kind_of_usage(options->arguments), options->arguments, out);
    fputs("\n        case $previous in\n", out);
    for (int i = 0; (entry = option_table_entry(options, i)); i++) {
        enum value_kind kind = value_kind_of_argument(entry);
        if (kind == VALUE_NONE)
            continue;
        fputs("            ", out);
        put_names(entry, "|", out);
        fputs(") argument=1 ", out);
        put_bash_value(kind, entry->argument, out);
        fputs(" ;;\n", out);
    }
    fputs("        esac ;;\n", out);
}

/* --- fish --- */

static void put_values(enum value_kind kind, const char *words, FILE *out)
{
    switch (kind) {
    case VALUE_WORDS:
        fputs(" -f -a '", out);
        put_words(words, " ", out);
        putc('\'', out);
        break;
    case VALUE_CODES:
        fputs(" -f -a '(__ddpcheck_codes)'", out);
        break;
    case VALUE_FOLDERS:
        fputs(" -f -a '(__fish_complete_directories (commandline -ct))'", out);
        break;
    case VALUE_PROGRAM:
        fputs(" -f -a '(__ddpcheck_program)'", out);
        break;
    case VALUE_NONE:
    case VALUE_OTHER:
        fputs(" -f", out);
        break;
    case VALUE_FILES:
        fputs(" -F", out);
        break;
    }
}

void option_table_fish(const struct command_options *options, FILE *out)
{
    const struct option_entry *entry;
    for (int i = 0; (entry = option_table_entry(options, i)); i++) {
        enum value_kind kind = value_kind_of_argument(entry);
        fprintf(out, "complete -c ddpcheck -n '__ddpcheck_options_of %s'", options->command);
        if (entry->short_name)
            fprintf(out, " -s %c", entry->short_name);
        fprintf(out, " -l %s", entry->name);
        if (kind != VALUE_NONE) {
            fputs(" -r", out);
            put_values(kind, entry->argument, out);
        }
        fputs(" -d '", out);
        put_escaped(entry->help, "'\\", "\\", out);
        fputs("'\n", out);
    }
    fprintf(out, "complete -c ddpcheck -n '__ddpcheck_command_is %s'", options->command);
    put_values(value_kind_of_usage(options->arguments), options->arguments, out);
    putc('\n', out);
}
