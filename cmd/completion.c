/* ddpcheck completion: the completions of shells; and the manual page of ddpcheck itself. Every
 * command writes its own part from its option table (option_table.h), here they are joined. */
#include "cmd/options/completion.h"

#include <stdio.h>
#include <string.h>

#include "cmd/commands.h"
#include "cmd/options/option_table.h"
#include "cmd/options/options.h"

struct completed_command {
    const char *name, *help;
    int (*function)(int argc, char **argv);
};

static const struct completed_command commands[] = {
#define COMMAND(name, help) {#name, help, command_##name},
#include "cmd/commands.def"
#undef COMMAND
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

/* Lets each command write its part to stdout. */
static int print_parts(const char *format)
{
    char name[32], word[32];
    int status = STATUS_CLEAN;
    snprintf(word, sizeof word, OPTION_TABLE_WORD "%s", format);
    for (int i = 0; i < COMMANDS && status == STATUS_CLEAN; i++) {
        snprintf(name, sizeof name, "%s", commands[i].name);
        char *argv[] = {name, word, NULL};
        status = commands[i].function(2, argv);
    }
    return status;
}

static void print_names(const char *before)
{
    for (int i = 0; i < COMMANDS; i++)
        printf("%s%s", i > 0 ? before : "", commands[i].name);
}

static const char bash_start[] =
    "# Completion of ddpcheck for bash, made by 'ddpcheck completion bash'.\n"
    "# `value` says what the current word can be, as an argument of `previous` or on its own.\n"
    "_ddpcheck() {\n"
    "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
    "    local command=${COMP_WORDS[1]} options='' value=none words='' argument=0 i\n"
    "    if [ \"$current\" = = ]; then        # --option=, which bash takes apart\n"
    "        current=''\n"
    "    elif [ \"$previous\" = = ]; then\n"
    "        previous=${COMP_WORDS[COMP_CWORD-2]}\n"
    "    fi\n"
    "    COMPREPLY=()\n"
    "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
    "        COMPREPLY=($(compgen -W '";
static const char bash_middle[] = " --help --version' -- \"$current\"))\n"
                                  "        return\n"
                                  "    fi\n"
                                  "    case $command in\n";
static const char bash_end[] =
    "    esac\n"
    "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
    "        if [ \"${COMP_WORDS[i]}\" = -- ] && [ $value = program ]; then\n"
    "            if declare -F _command_offset >/dev/null; then\n"
    "                _command_offset $((i + 1))\n"
    "            elif [ $((i + 1)) -eq \"$COMP_CWORD\" ]; then\n"
    "                COMPREPLY=($(compgen -c -- \"$current\"))\n"
    "            else\n"
    "                COMPREPLY=($(compgen -f -- \"$current\"))\n"
    "            fi\n"
    "            return\n"
    "        fi\n"
    "    done\n"
    "    if [ $argument = 0 ] && [[ $current == -* ]]; then\n"
    "        COMPREPLY=($(compgen -W \"$options\" -- \"$current\"))\n"
    "        return\n"
    "    fi\n"
    "    case $value in\n"
    "        words) COMPREPLY=($(compgen -W \"$words\" -- \"$current\")) ;;\n"
    "        files) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- \"$current\")) "
    ";;\n"
    "        folders) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -d -- \"$current\")) "
    ";;\n"
    "        codes) COMPREPLY=($(compgen -W \"$(\"${COMP_WORDS[0]}\" explain --list --color never "
    "2>/dev/null |\n"
    "            sed -n 's/^\\(DC[0-9]*\\).*/\\1/p')\" -- \"$current\")) ;;\n"
    "        program) COMPREPLY=($(compgen -W '--' -- \"$current\")) ;;\n"
    "    esac\n"
    "}\n"
    "complete -F _ddpcheck ddpcheck\n";

static int print_bash(void)
{
    fputs(bash_start, stdout);
    print_names(" ");
    fputs(bash_middle, stdout);
    int status = print_parts("bash");
    fputs(bash_end, stdout);
    return status;
}

static const char zsh_start[] =
    "#compdef ddpcheck\n"
    "# Completion of ddpcheck for zsh, made by 'ddpcheck completion zsh'.\n"
    "_ddpcheck_codes() {\n"
    "    local -a codes\n"
    "    codes=(${(f)\"$(ddpcheck explain --list --color never 2>/dev/null | sed -n "
    "'s/^\\(DC[0-9]*\\) *[a-z]* */\\1:/p')\"})\n"
    "    _describe finding codes\n"
    "}\n"
    "_ddpcheck() {\n"
    "    local curcontext=$curcontext state line\n"
    "    local -a names\n"
    "    _arguments -C '(- *)--version[show the version]' '(- *)'{-h,--help}'[list the commands]' "
    "\\\n"
    "        '1: :->command' '*:: :->arguments'\n"
    "    case $state in\n"
    "    command)\n"
    "        names=(\n";
static const char zsh_middle[] = "        )\n"
                                 "        _describe command names\n"
                                 "        return ;;\n"
                                 "    arguments) ;;\n"
                                 "    *) return ;;\n"
                                 "    esac\n"
                                 "    case $words[1] in\n";
static const char zsh_end[] = "    esac\n"
                              "}\n"
                              "if [ \"$funcstack[1]\" = _ddpcheck ]; then\n"
                              "    _ddpcheck \"$@\"\n"
                              "else\n"
                              "    compdef _ddpcheck ddpcheck\n"
                              "fi\n";

static int print_zsh(void)
{
    fputs(zsh_start, stdout);
    for (int i = 0; i < COMMANDS; i++) {
        printf("            '%s:", commands[i].name);
        put_escaped(commands[i].help, "'", "'\\'", stdout);
        puts("'");
    }
    fputs(zsh_middle, stdout);
    int status = print_parts("zsh");
    fputs(zsh_end, stdout);
    return status;
}

static const char fish_start[] =
    "# Completion of ddpcheck for fish, made by 'ddpcheck completion fish'.\n"
    "function __ddpcheck_command_is\n"
    "    set -l words (commandline -opc)\n"
    "    test (count $words) -ge 2; and test $words[2] = $argv[1]\n"
    "end\n"
    "function __ddpcheck_options_of\n"
    "    __ddpcheck_command_is $argv[1]; and not contains -- -- (commandline -opc)\n"
    "end\n"
    "function __ddpcheck_codes\n"
    "    ddpcheck explain --list --color never 2>/dev/null | string match -r '^DC\\d+'\n"
    "end\n"
    "function __ddpcheck_program\n"
    "    set -l words (commandline -opc)\n"
    "    set -l at (contains -i -- -- $words)\n"
    "    and __fish_complete_subcommand --fcs-skip=$at\n"
    "end\n"
    "complete -c ddpcheck -f\n"
    "complete -c ddpcheck -n 'test (count (commandline -opc)) -eq 1' -l version -d 'say the "
    "version'\n"
    "complete -c ddpcheck -n 'test (count (commandline -opc)) -eq 1' -s h -l help -d 'list the "
    "commands'\n";

static int print_fish(void)
{
    fputs(fish_start, stdout);
    for (int i = 0; i < COMMANDS; i++) {
        printf("complete -c ddpcheck -n 'test (count (commandline -opc)) -eq 1' -a %s -d '",
               commands[i].name);
        put_escaped(commands[i].help, "'\\", "\\", stdout);
        puts("'");
    }
    return print_parts("fish");
}

void completion_print_manual(void)
{
    man_head(
        "ddpcheck",
        "find out why a multi-GPU training job hangs, crashes or silently learns the wrong thing",
        stdout);
    puts(".SH SYNOPSIS\n.B ddpcheck\n[\\fB\\-\\-version\\fR | \\fB\\-\\-help\\fR] \\fICOMMAND\\fR "
         "[\\fIoptions\\fR]\n.SH DESCRIPTION");
    man_text("ddpcheck watches NCCL and CUDA from outside a program, keeps what every rank did in "
             "SQLite, and reports which rank\n"
             "did what, where, and how to fix it. Each command has a page of its own.\n",
             stdout);
    puts(".SH COMMANDS");
    for (int i = 0; i < COMMANDS; i++) {
        printf(".TP\n.BR ddpcheck\\-%s (1)\n", commands[i].name);
        man_text(commands[i].help, stdout);
    }
    puts(".SH EXIT STATUS\n0 clean, 1 findings, 2 usage error or unreadable input, 3 incomplete "
         "trace;\n"
         ".BR ddpcheck\\-run (1)\nreturns the program's own.\n.SH SEE ALSO");
    for (int i = 0; i < COMMANDS; i++)
        printf(".BR ddpcheck\\-%s (1)%s\n", commands[i].name, i + 1 < COMMANDS ? "," : "");
}

int command_completion(int argc, char **argv)
{
    static const char shells[] = "bash|zsh|fish";
    const struct command_options options = {
        .command = "completion",
        .arguments = shells,
        .summary = "Prints a completion script for a shell. Packages install them already.",
        .details = "Without a package:\n\n"
                   "  source <(ddpcheck completion bash)      in ~/.bashrc\n"
                   "  source <(ddpcheck completion zsh)       in ~/.zshrc, after compinit\n"
                   "  ddpcheck completion fish | source       in ~/.config/fish/config.fish\n",
    };
    int status = options_parse(&options, &argc, &argv);
    if (status != OPTIONS_GO)
        return status;
    if (argc != 1)
        return options_usage_error(&options, "missing the shell: bash, zsh or fish");
    if (strcmp(argv[0], "bash") == 0)
        return print_bash();
    if (strcmp(argv[0], "zsh") == 0)
        return print_zsh();
    if (strcmp(argv[0], "fish") == 0)
        return print_fish();
    return options_usage_error(&options, "the shell is bash, zsh or fish, not '%s'", argv[0]);
}
