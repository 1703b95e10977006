/* option_table_fish.c: a command's lines of completion.c's script for fish. */
#include "cmd/options/option_table.h"

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
