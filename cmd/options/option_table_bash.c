/* option_table_bash.c: a command's branch of the function in completion.c's script for bash. */
#include "cmd/options/option_table.h"

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
