/* commands.h: one function per command, one table of them (commands.def).
 *
 * argv[0] is the command's name, argv[argc] is NULL. Each function returns the exit status; it has
 * printed its own messages to stderr, each once and beginning with "ddpcheck: ". */
#ifndef DDPCHECK_COMMANDS_H
#define DDPCHECK_COMMANDS_H

enum exit_status {
    STATUS_CLEAN = 0,
    STATUS_FINDINGS = 1,
    STATUS_USAGE = 2,     /* usage error, or input or output that can't be read or written */
    STATUS_INCOMPLETE = 3 /* no finding, but the trace lacks ranks or its end */
};

#define COMMAND(name, help) int command_##name(int argc, char **argv);
#include "cmd/commands.def"
#undef COMMAND

#endif
