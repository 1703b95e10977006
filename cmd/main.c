/* ddpcheck: finds the command in the table and runs it. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "cmd/commands.h"
#include "cmd/export/export.h"
#include "cmd/options/completion.h"
#include "cmd/options/option_table.h"
#include "cmd/options/options.h"

struct command_entry {
    const char *name;
    int (*function)(int argc, char **argv);
    const char *help;
};

static const struct command_entry commands[] = {
#define COMMAND(name, help) {#name, command_##name, help},
#include "cmd/commands.def"
#undef COMMAND
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void print_help(FILE *out)
{
    fputs("Usage: ddpcheck [--version|--help] COMMAND [options]\n\n"
          "Finds out why a multi-GPU training job hangs, crashes or silently learns\n"
          "the wrong thing.\n\n"
          "Commands:\n",
          out);
    for (int i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-11s %s\n", commands[i].name, commands[i].help);
    fputs("\nTo begin: 'ddpcheck demo' (no GPU needed),\n"
          "then 'ddpcheck run -- PROGRAM' and 'ddpcheck report'.\n"
          "'ddpcheck help COMMAND' describes each. Exit status: 0 clean, 1 findings,\n"
          "2 usage error or unreadable input, 3 incomplete trace;\n"
          "'run' returns the program's own.\n",
          out);
}

static const struct command_entry *find_command(const char *name)
{
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static int unknown_command(const char *name)
{
    const char *names[COMMANDS + 1] = {NULL};
    for (int i = 0; i < COMMANDS; i++)
        names[i] = commands[i].name;
    const char *nearest = options_nearest(name, names);
    if (export_format_find(name)) { /* ddpcheck html trace */
        fprintf(stderr, "ddpcheck: '%s' is a format, no command: ddpcheck export -f %s\n", name,
                name);
        return STATUS_USAGE;
    }
    fprintf(stderr, "ddpcheck: error: no command '%s'%s%s%s. See 'ddpcheck --help'.\n", name,
            nearest ? " (did you mean '" : "", nearest ? nearest : "", nearest ? "'?)" : "");
    return STATUS_USAGE;
}

/* A full disk shows only when the last buffer is written. A command that saw it has said so. */
static int finish_output(int status)
{
    bool was_seen = ferror(stdout) && status == STATUS_USAGE;
    if ((fflush(stdout) == 0 && !ferror(stdout)) || was_seen)
        return status;
    fprintf(stderr, "ddpcheck: can't write the output: %s\n", strerror(errno));
    return STATUS_USAGE;
}

int main(int argc, char **argv)
{
    prctl(PR_SET_NAME, "ddpcheck"); /* ps and top: what runs /proc/self/exe is "exe" there */
    signal(SIGPIPE, SIG_DFL);       /* `ddpcheck report | head` ends quietly */
    if (argc < 2) {
        print_help(stderr);
        return STATUS_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "version") == 0) {
        printf("ddpcheck %s\n", DDPCHECK_VERSION);
        return finish_output(STATUS_CLEAN);
    }
    bool is_help = strcmp(argv[1], "help") == 0;
    if (is_help && argc > 2 && argv[2][0] != '-') { /* help COMMAND: COMMAND --help */
        static char option[] = "--help";
        argv[1] = argv[2];
        argv[2] = option;
        argc = 3;
        argv[argc] = NULL;
    } else if (is_help || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_help(stdout);
        return finish_output(STATUS_CLEAN);
    }
    if (strcmp(argv[1], OPTION_TABLE_WORD "man") == 0) {
        completion_print_manual();
        return finish_output(STATUS_CLEAN);
    }
    const struct command_entry *command = find_command(argv[1]);
    if (!command)
        return unknown_command(argv[1]);
    return finish_output(command->function(argc - 1, argv + 1));
}
