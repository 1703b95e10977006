/* option_table_zsh.c: a command's branch of the function in completion.c's script for zsh: one call
 * of _arguments. */
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
