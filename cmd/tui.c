/* ddpcheck tui: the terminal UI. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/command_traces.h"
#include "cmd/commands.h"
#include "cmd/hub/job_copy.h"
#include "cmd/hub/job_folder.h"
#include "cmd/options/options.h"
#include "cmd/tui_ras.h"
#include "lib/base/terminal.h"
#include "lib/import/ras_client.h"
#include "tui/tui.h"
#include "tui/view.h"

enum { WIDTH_USUAL = 100, WIDTH_LEAST = 40 };

static const char *const usual_trace[] = {
    "ddpcheck-trace"}; /* where `ddpcheck run` puts it without -o */

static int width_of_output(void)
{
    const char *columns = getenv("COLUMNS");
    struct winsize size;
    int width = columns ? atoi(columns) : 0;
    if (width <= 0 && isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
        width = size.ws_col;
    if (width <= 0)
        return WIDTH_USUAL;
    return width < WIDTH_LEAST ? WIDTH_LEAST : width;
}

static int show_tui(const struct tui_options *tui, bool once, struct error *err)
{
    return once ? tui_print(tui, width_of_output(), err) : tui_run(tui, err);
}

/* The job as its RAS sees it, in a database of its own. */
static int show_ras(struct tui_options *tui, const char *address, bool once, struct error *err)
{
    const char *usual = getenv("NCCL_RAS_ADDR");
    if (!*address || !strcmp(address, "auto"))
        address = usual && *usual ? usual : RAS_USUAL_ADDRESS;
    struct tui_ras *ras = tui_ras_start(address, tui->wait_s, err);
    if (!ras)
        return -1;
    const char *database = tui_ras_database(ras);
    char title[320];
    snprintf(title, sizeof title, "RAS at %s", address);
    tui->title = title;
    tui->paths = &database;
    tui->count = 1;
    tui->trouble = tui_ras_trouble;
    tui->context = ras;
    int result = show_tui(tui, once, err);
    tui_ras_stop(ras);
    return result;
}

/* A job on many hosts as its hub sees it, in a database of its own. */
static int show_hub(struct tui_options *tui, const char *address, bool once, struct error *err)
{
    struct job_copy *copy;
    if (job_copy_open(&copy, address, tui->wait_s, !once, err) < 0)
        return -1;
    const char *database = job_copy_database(copy);
    tui->title = job_copy_name(copy);
    tui->paths = &database;
    tui->count = 1;
    tui->trouble = job_copy_trouble;
    tui->context = copy;
    int result = show_tui(tui, once, err);
    job_copy_close(copy);
    return result;
}

/* Of a job on several hosts its hub knows more than any of them. */
static int show_traces(struct tui_options *tui, bool once, struct error *err)
{
    char path[PATH_MAX];
    const char *job = path;
    struct job_choice choice = {.directories = tui->paths, .count = tui->count};
    if (job_folder_find(tui->paths, tui->count, path)) {
        tui->paths = &job;
        tui->count = 1;
    } else {
        tui->instead = job_choice_find;
        tui->context = &choice;
    }
    return show_tui(tui, once, err);
}

/* Logs and dumps are imported; but what is waited for will be a trace. */
static int show_named(struct tui_options *tui, char **argv, int argc, bool once, struct error *err)
{
    struct command_traces traces;
    if (!argc || tui->wait_s > 0)
        return show_traces(tui, once, err);
    if (command_traces_open(&traces, argv, &argc, err) < 0)
        return -1;
    tui->count = argc;
    if (traces.imported[0])
        tui->title = traces.imported_name;
    int result = show_traces(tui, once, err);
    command_traces_close(&traces);
    return result;
}

static bool has_address(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (job_copy_is_address(argv[i]))
            return true;
    return false;
}

int command_tui(int argc, char **argv)
{
    bool once = false, ascii = false, by_host = false;
    int color = COLOR_AUTO;
    int view = 0;
    char keys[160];
    snprintf(keys, sizeof keys,
             "Keys: 1-%d views, arrows or hjkl move, Enter open, Esc back, / search, f filter,\n"
             "s sort, e explain, y write the view to a file, ? help, q quit.\n",
             VIEWS_NUMBERED);
    double wait_s = 0;
    int ended_by = 0;
    const char *ras = NULL;
    const struct option_entry entries[] = {
        {"once", 0, OPTION_FLAG, NULL, "print the first view as text, for scripts and logs", &once},
        {"view", 0, OPTION_CHOICE, view_choices, "the first view (default: now)", &view},
        {"ascii", 0, OPTION_FLAG, NULL,
         "no characters beyond ASCII (also where the locale or TERM=linux has none)", &ascii},
        {"wait", 0, OPTION_SECONDS, "S", "wait so long for a trace to appear", &wait_s},
        {"ras", 0, OPTION_TEXT, "HOST:PORT",
         "query the RAS of a running job instead (auto: NCCL_RAS_ADDR, localhost:28028)", &ras},
        {"by-host", 0, OPTION_FLAG, NULL, NULL, &by_host},
        OPTION_COLOR(&color),
    };
    const struct command_options options = {
        .command = "tui",
        .arguments = "[DIR|DATABASE|LOG...|nats://TOKEN@HOST:PORT]",
        .summary = "Shows why a job hangs, while it hangs; or a finished trace. Reads only: "
                   "leaving it never touches the job.\n"
                   "DIR defaults to ddpcheck-trace. An address of a hub shows its job on many "
                   "hosts.",
        .details = keys,
        .entries = entries,
        .count = OPTION_COUNT(entries),
    };
    int status = options_parse(&options, &argc, &argv);
    if (status != OPTIONS_GO)
        return status;
    if (by_host)
        return options_usage_error(&options,
                                   "it shows what each host's collector found, and merges "
                                   "nothing; for the job's findings: ddpcheck report "
                                   "--by-host, or ddpcheck tui on its hub's job.db");
    if (ras && argc)
        return options_usage_error(&options, "--ras shows a running job, not a trace");
    bool is_hub = has_address(argc, argv);
    if (is_hub && argc > 1)
        return options_usage_error(&options, "the job of a hub is shown alone");
    struct error err = {{0}};
    const char *const *paths = argc ? (const char *const *)argv : usual_trace;
    struct tui_options tui = {
        .paths = paths,
        .count = argc ? argc : 1,
        .view = view,
        .ascii = ascii,
        .color = terminal_colored((enum color_when)color, STDOUT_FILENO),
        .wait_s = wait_s,
        .ended_by = &ended_by,
    };
    int result;
    if (ras)
        result = show_ras(&tui, ras, once, &err);
    else
        result = is_hub ? show_hub(&tui, argv[0], once, &err)
                        : show_named(&tui, argv, argc, once, &err);
    if (result == 0)
        return ended_by ? 128 + ended_by : STATUS_CLEAN;
    return command_fail(&err);
}
