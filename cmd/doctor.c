/* ddpcheck doctor: says whether this machine, and a program, can be watched. */
#include "cmd/doctor.h"

#include <stdarg.h>
#include <stdbool.h>
#include <unistd.h>

#include "cmd/commands.h"
#include "cmd/options.h"
#include "lib/base/terminal.h"

struct table {
    bool colored;
    int failures;
};

void diagnose(struct diagnosis *diagnosis, enum verdict verdict, const char *hint, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    diagnosis->verdict = verdict;
    vsnprintf(diagnosis->text, sizeof diagnosis->text, format, args);
    snprintf(diagnosis->hint, sizeof diagnosis->hint, "%s", hint ? hint : "");
    va_end(args);
}

static void print_row(void *context, const char *name, const struct diagnosis *diagnosis)
{
    static const struct {
        const char *word, *color;
    } look[] = {[VERDICT_OK] = {"ok", "\033[32m"}, [VERDICT_WARN] = {"warn", "\033[33m"}, [VERDICT_FAIL] = {"FAIL", "\033[31m"}};
    struct table *table = context;
    const char *color = table->colored ? look[diagnosis->verdict].color : "";
    printf("  %s%-4s%s  %-17s %s\n", color, look[diagnosis->verdict].word, table->colored ? "\033[0m" : "", name, diagnosis->text);
    if (diagnosis->hint[0])
        printf("  %23s  -> %s\n", "", diagnosis->hint);
    table->failures += diagnosis->verdict == VERDICT_FAIL;
}

int command_doctor(int argc, char **argv)
{
    int color = COLOR_AUTO;
    const struct option_entry entries[] = {OPTION_COLOR(&color)};
    const struct options options = {
        .command = "doctor", .operands = "[-- PROGRAM [ARGUMENT...]]",
        .summary = "Says what of CUDA and NCCL is here, and whether ddpcheck can watch a program.",
        .details = "The program is looked at, not run. Exit status: 0 it will work, 1 something prevents it.\n",
        .entries = entries, .count = OPTION_COUNT(entries), .stop_at_operand = true,
    };
    int status = options_parse(&options, &argc, &argv);
    if (status != OPTIONS_GO)
        return status;
    struct table table = {.colored = terminal_colored((enum color_when)color, STDOUT_FILENO)};
    printf("This machine\n");
    for (int i = 0; i < machine_check_count; i++) {
        struct diagnosis diagnosis = {0};
        machine_checks[i].check(&diagnosis);
        print_row(&table, machine_checks[i].name, &diagnosis);
    }
    if (argc > 0) {
        printf("\n%s\n", argv[0]);
        doctor_program(argv, print_row, &table);
    }
    if (table.failures)
        printf("\nIt will not work: %d check%s failed.\n", table.failures, table.failures == 1 ? "" : "s");
    else
        printf("\nIt will work.\n");
    return table.failures ? STATUS_FINDINGS : STATUS_CLEAN;
}
