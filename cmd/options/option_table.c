/* option_table.c: what the formats have in common. See option_table.h. */
#include "cmd/options/option_table.h"

#include <string.h>

#include "cmd/commands.h"

static const struct {
    const char *name;
    void (*print)(const struct command_options *options, FILE *out);
} formats[] = {
    {"man", option_table_man},
    {"bash", option_table_bash},
    {"zsh", option_table_zsh},
    {"fish", option_table_fish},
};

int option_table_print(const struct command_options *options, const char *format, FILE *out)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (strcmp(formats[i].name, format) == 0) {
            formats[i].print(options, out);
            return STATUS_CLEAN;
        }
    return options_usage_error(
        options, OPTION_TABLE_WORD "FORMAT is man, bash, zsh or fish, not '%s'", format);
}

const char *command_help(const char *command)
{
    static const struct {
        const char *name, *help;
    } commands[] = {
#define COMMAND(name, help) {#name, help},
#include "cmd/commands.def"
#undef COMMAND
    };
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(commands[i].name, command) == 0)
            return commands[i].help;
    return "";
}

const struct option_entry *option_table_entry(const struct command_options *options, int i)
{
    static const struct option_entry help = {"help",           'h', OPTION_FLAG, NULL,
                                             "show this help", NULL};
    int shown = 0;
    for (int at = 0; at < options->count; at++)
        if (options->entries[at].help && shown++ == i)
            return &options->entries[at];
    return i == shown ? &help : NULL;
}

static bool has_any_word(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strstr(text, *words))
            return true;
    return false;
}

/* The name of an argument says what it is: DIR, FILE, DATABASE, CODES. */
static enum value_kind kind_of_name(const char *name)
{
    static const char *const files[] = {"FILE", "PATH", "DATABASE", "DB", "TRACE", NULL};
    if (strstr(name, "PROGRAM"))
        return VALUE_PROGRAM;
    if (strstr(name, "CODE"))
        return VALUE_CODES;
    if (has_any_word(name, files))
        return VALUE_FILES;
    return strstr(name, "DIR") ? VALUE_FOLDERS : VALUE_OTHER;
}

enum value_kind value_kind_of_argument(const struct option_entry *entry)
{
    if (entry->kind == OPTION_FLAG)
        return VALUE_NONE;
    if (entry->kind == OPTION_CHOICE)
        return VALUE_WORDS;
    return entry->kind == OPTION_TEXT ? kind_of_name(entry->argument) : VALUE_OTHER;
}

enum value_kind value_kind_of_usage(const char *usage)
{
    if (!usage[0])
        return VALUE_NONE;
    if (strchr(usage, '|') &&
        strspn(usage, "abcdefghijklmnopqrstuvwxyz0123456789-|") == strlen(usage))
        return VALUE_WORDS;
    return kind_of_name(usage);
}

void put_escaped(const char *text, const char *special, const char *before, FILE *out)
{
    for (; *text; text++) {
        if (strchr(special, *text))
            fputs(before, out);
        putc(*text, out);
    }
}

void put_words(const char *words, const char *between, FILE *out)
{
    for (; *words; words++) {
        if (*words == '|')
            fputs(between, out);
        else
            putc(*words, out);
    }
}
