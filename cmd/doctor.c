/* ddpcheck doctor: says whether this machine, and a program, can be watched, and by which front
 * end. */
#include "cmd/doctor/doctor.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/commands.h"
#include "cmd/json_values.h"
#include "cmd/options/options.h"
#include "lib/base/array.h"
#include "lib/base/terminal.h"

struct doctor_row {
    const char *name;
    struct diagnosis diagnosis;
};

struct doctor_table {
    bool colored, json, verbose;
    const char *about; /* "machine", "environment", or the program */
    int failures, fine;
    struct doctor_row *kept; /* what needs a look, where not all is shown */
    int kept_count;
};

static const struct {
    const char *word, *shown, *color;
} looks[] = {[VERDICT_OK] = {"ok", "ok", "\033[32m"},
             [VERDICT_WARN] = {"warn", "warn", "\033[33m"},
             [VERDICT_FAIL] = {"fail", "FAIL", "\033[31m"}};

static void print_doctor_json(json_t *object)
{
    char *line = object ? json_dumps(object, JSON_COMPACT) : NULL;
    if (line)
        puts(line);
    free(line);
    json_decref(object);
}

static void print_text_row(const struct doctor_table *table, const char *name,
                           const struct diagnosis *diagnosis)
{
    const char *color = table->colored ? looks[diagnosis->verdict].color : "";
    printf("  %s%-4s%s  %-17s %s\n", color, looks[diagnosis->verdict].shown,
           table->colored ? "\033[0m" : "", name, diagnosis->text);
    if (diagnosis->hint[0])
        printf("  %23s  -> %s\n", "", diagnosis->hint);
}

/* Shown at once if there is no memory to keep it. */
static void keep_diagnosis(struct doctor_table *table, const char *name,
                           const struct diagnosis *diagnosis)
{
    if (!ARRAY_ADD(table->kept, table->kept_count)) {
        print_text_row(table, name, diagnosis);
        return;
    }
    table->kept[table->kept_count++] = (struct doctor_row){name, *diagnosis};
}

/* What prevents it, then what may; the rest is a number. */
static void print_kept_rows(struct doctor_table *table)
{
    for (int verdict = VERDICT_FAIL; verdict > VERDICT_OK; verdict--)
        for (int i = 0; i < table->kept_count; i++)
            if ((int)table->kept[i].diagnosis.verdict == verdict)
                print_text_row(table, table->kept[i].name, &table->kept[i].diagnosis);
    printf("  %d %scheck%s fine; --verbose shows %s.\n", table->fine,
           table->kept_count ? "other " : "", table->fine == 1 ? " is" : "s are",
           table->fine == 1 ? "it" : "them");
    free(table->kept);
}

static void print_doctor_row(void *context, const char *name, const struct diagnosis *diagnosis)
{
    struct doctor_table *table = context;
    table->failures += diagnosis->verdict == VERDICT_FAIL;
    table->fine += diagnosis->verdict == VERDICT_OK;
    if (table->json) {
        print_doctor_json(json_pack(
            "{s:s, s:o, s:s, s:s, s:o, s:o}", "schema", "ddpcheck.doctor/1", "about",
            json_of_text(table->about), "check", name, "verdict", looks[diagnosis->verdict].word,
            "text", json_of_text(diagnosis->text), "todo", json_of_text(diagnosis->hint)));
        return;
    }
    if (table->verbose)
        print_text_row(table, name, diagnosis);
    else if (diagnosis->verdict != VERDICT_OK)
        keep_diagnosis(table, name, diagnosis);
}

static void print_title(const struct doctor_table *table, const char *title)
{
    if (table->verbose && !table->json)
        printf("%s%s\n", strcmp(table->about, "machine") != 0 ? "\n" : "", title);
}

static void print_checks(struct doctor_table *table, const char *about, const char *title,
                         const struct machine_check *check, int count)
{
    table->about = about;
    print_title(table, title);
    for (int i = 0; i < count; i++) {
        struct diagnosis diagnosis = {0};
        check[i].check(&diagnosis);
        print_doctor_row(table, check[i].name, &diagnosis);
    }
}

/* The command line as it can be given to a shell; NULL if memory is short. */
static char *join_command(char **argv)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    for (int i = 0; out && argv[i]; i++) {
        bool is_plain = *argv[i] && !argv[i][strcspn(argv[i], " \t\n\"'\\$`&|;<>()*?[]#~!{}")];
        fputs(i ? " " : "", out);
        fputs(is_plain ? "" : "'", out);
        for (const char *c = argv[i]; *c; c++)
            fputs(*c == '\'' ? "'\\''" : (char[]){*c, '\0'}, out);
        fputs(is_plain ? "" : "'", out);
    }
    if (out)
        fclose(out);
    return text;
}

/* What it comes to: the command to give. */
static void print_end(const struct doctor_table *table, const char *program,
                      enum front_end front_end)
{
    static const char *const names[] = {
        [FRONT_END_NONE] = "none", [FRONT_END_PRELOAD] = "preload", [FRONT_END_PLUGIN] = "plugin"};
    const char *option = front_end == FRONT_END_PLUGIN ? " --plugin" : "";
    if (table->json)
        print_doctor_json(json_pack("{s:s, s:b, s:i, s:o}", "schema", "ddpcheck.doctor-summary/1",
                                    "works", table->failures == 0, "failures", table->failures,
                                    "front_end",
                                    program ? json_of_text(names[front_end]) : json_null()));
    else if (table->failures)
        printf("\nIt will not work: %d check%s failed.\n", table->failures,
               table->failures == 1 ? "" : "s");
    else if (program && !doctor_has_driver())
        printf("\nThere is no GPU here; on 4 emulated ones: ddpcheck run --emulate 4%s -- %s\n",
               option, program);
    else if (program)
        printf("\nIt will work: ddpcheck run%s -- %s\n", option, program);
    else
        printf("\nddpcheck works here; 'ddpcheck doctor -- PROGRAM' checks a program.\n");
}

int command_doctor(int argc, char **argv)
{
    int color = COLOR_AUTO;
    bool json = false, verbose = false;
    const struct option_entry entries[] = {
        {"json", 0, OPTION_FLAG, NULL, "a JSON object for each line, then a summary", &json},
        {"verbose", 'v', OPTION_FLAG, NULL, "show what is fine, too", &verbose},
        OPTION_COLOR(&color),
    };
    const struct command_options options = {
        .command = "doctor",
        .arguments = "[-- PROGRAM [ARGUMENT...]]",
        .summary = "Shows which CUDA and NCCL this machine has, and whether and how ddpcheck can "
                   "watch a program.",
        .details = "The program is inspected, not run. Exit status: 0 it will work, 1 something "
                   "prevents it.\n",
        .entries = entries,
        .count = OPTION_COUNT(entries),
        .stop_at_argument = true,
    };
    int status = options_parse(&options, &argc, &argv);
    if (status != OPTIONS_GO)
        return status;
    enum front_end front_end = FRONT_END_NONE;
    struct doctor_table table = {.colored = terminal_colored((enum color_when)color, STDOUT_FILENO),
                                 .json = json,
                                 .verbose = verbose};
    print_checks(&table, "machine", "This machine", machine_checks, machine_check_count);
    print_checks(&table, "environment", "This environment", environment_checks,
                 environment_check_count);
    if (argc > 0) {
        table.about = argv[0];
        print_title(&table, argv[0]);
        front_end = doctor_program(argv, print_doctor_row, &table);
    }
    if (!json && !verbose)
        print_kept_rows(&table);
    if (table.failures)
        front_end = FRONT_END_NONE;
    char *program = argc > 0 ? join_command(argv) : NULL;
    print_end(&table, program, front_end);
    free(program);
    return table.failures ? STATUS_FINDINGS : STATUS_CLEAN;
}
