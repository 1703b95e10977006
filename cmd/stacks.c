/* ddpcheck stacks: where the threads of running processes stand, or stood when a watched job hung.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/commands.h"
#include "cmd/json_values.h"
#include "lib/live/live_groups.h"
#include "lib/trace/symbols.h"
#include "cmd/options/options.h"
#include "cmd/report/report_print.h"

enum { PIDS_MAX = 256, VALUE_COLUMN = 16, RANKS_BYTES = 4096 };

struct stacks_request {
    const char *pids;
    bool python_only, all, json;
    int color;
};

static void print_live_ranks(const struct live_group *group, struct page *page)
{
    char text[RANKS_BYTES];
    const struct rankset *who = group->all_have_ranks ? &group->ranks : &group->pids;
    const char *noun = group->all_have_ranks ? "rank" : "process";
    bool several = rankset_count(who) > 1;
    page_column(page, 2);
    page_format(page, STYLE_STRONG, "%s%s %s", noun,
                several ? group->all_have_ranks ? "s" : "es" : "",
                rankset_text(who, text, sizeof text));
    if (page->column > VALUE_COLUMN - 2)
        page_line(page);
    page_column(page, VALUE_COLUMN);
}

/* The thread that holds the lock which a group's thread waits for; NULL: it waits for none. */
static const struct live_thread *lock_holder(const struct live_group *group)
{
    if (!group->first->holder || strcmp(group->called, "pthread_mutex_lock"))
        return NULL;
    for (int i = 0; i < group->process->threads; i++)
        if (group->process->thread[i].id == group->first->holder)
            return &group->process->thread[i];
    return NULL;
}

/* ", for a lock that thread 812 (loader) holds, in read at load.c:88" */
static void print_lock(const struct live_group *group, struct page *page)
{
    enum { PLACE_COLUMNS = 60 };
    char called[256], place[256];
    const struct live_thread *holder = lock_holder(group);
    if (!holder)
        return;
    if (holder == group->first) {
        page_words(page, STYLE_PLAIN, ", for a lock that it holds itself");
        return;
    }
    int at = site_user_frame(holder->frame, holder->frames);
    page_format(page, STYLE_PLAIN, ", for a lock that thread %u (%s) holds,", holder->id,
                holder->name);
    site_called(holder->frame, holder->frames, called, sizeof called);
    if (*called)
        page_format(page, STYLE_PLAIN, " in %s", called);
    if (at >= 0)
        page_format(page, STYLE_PLAIN, " at %s",
                    frame_place(&holder->frame[at], PLACE_COLUMNS, place, sizeof place));
}

static void print_live_group(const struct live_group *group, struct page *page)
{
    const struct live_thread *thread = group->first;
    page->indent = VALUE_COLUMN;
    print_live_ranks(group, page);
    if (group->is_main)
        page_words(page, STYLE_PLAIN, "main thread");
    else if (group->threads == 1)
        page_format(page, STYLE_PLAIN, "thread %u, %s", thread->id, thread->name);
    else
        page_format(page, STYLE_PLAIN, "%d threads named %s", group->threads, thread->name);
    if (group->called[0])
        page_format(page, STYLE_PLAIN, ", in %s", group->called);
    if (group->called[0])
        print_lock(group, page);
    else if (thread->state == 'R')
        page_words(page, STYLE_PLAIN, ", running");
    else if (thread->state == 'T' || thread->state == 't')
        page_words(page, STYLE_PLAIN, ", stopped");
    else if (thread->state == 'Z')
        page_words(page, STYLE_PLAIN, ", ended");
    report_print_frames(page, "", (const int[]){VALUE_COLUMN, VALUE_COLUMN}, group->frame,
                        group->frames);
    page_gap(page);
}

static void print_live_process(const struct live_process *process, struct page *page)
{
    page->indent = 2;
    page_format(page, STYLE_STRONG, "%d", process->pid);
    if (process->rank >= 0)
        page_format(page, STYLE_PLAIN, " rank %d,", process->rank);
    page_format(page, STYLE_PLAIN, " %d thread%s", process->threads,
                process->threads == 1 ? "" : "s");
    if (process->python[0])
        page_format(page, STYLE_PLAIN, ", Python: %s", process->python);
    if (process->threads_left_out)
        page_words(page, STYLE_WARNING, " (more are not shown)");
    int room = page->width - page->column - 2;
    char command[sizeof process->command + 2];
    snprintf(command, sizeof command, "  %.*s", room > 0 ? room : 0, process->command);
    page_text(page, STYLE_FAINT, command);
    page_line(page);
}

/* A line for each process, unless they are too many to read. */
static void print_processes(const struct live_process *process, int count, struct page *page)
{
    enum { PROCESSES_SHOWN = 8 };
    for (int i = 0; i < count && (i < PROCESSES_SHOWN || count == PROCESSES_SHOWN + 1); i++)
        print_live_process(&process[i], page);
    if (count > PROCESSES_SHOWN + 1)
        page_format(page, STYLE_FAINT, "  and %d more", count - PROCESSES_SHOWN);
    page_gap(page);
}

static void print_live_json(const struct live_group *group)
{
    char ranks[RANKS_BYTES], pids[RANKS_BYTES], state[2] = {group->first->state};
    json_t *line = json_pack(
        "{s:s, s:s, s:s, s:b, s:i, s:b, s:o, s:s, s:o, s:I, s:b, s:o}", "schema",
        "ddpcheck.live-stack/1", "pids", rankset_text(&group->pids, pids, sizeof pids), "ranks",
        rankset_count(&group->ranks) ? rankset_text(&group->ranks, ranks, sizeof ranks) : "",
        "all_ranks_known", group->all_have_ranks, "threads", group->threads, "main", group->is_main,
        "name", json_of_text(group->first->name), "state", state, "in", json_of_text(group->called),
        "lock_holder", (json_int_t)(lock_holder(group) ? group->first->holder : 0), "python",
        group->first->is_python, "frames", json_of_frames(group->frame, group->frames));
    if (line)
        json_dumpf(line, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(line);
}

static int print_live(const struct live_process *process, int processes,
                      const struct stacks_request *request)
{
    struct live_group *groups;
    struct page page;
    int count = live_groups(process, processes, request->all, &groups);
    if (count < 0) {
        fprintf(stderr, "ddpcheck: " OUT_OF_MEMORY "\n");
        return STATUS_USAGE;
    }
    page_init(&page, stdout, (enum color_when)request->color);
    if (!request->json)
        print_processes(process, processes, &page);
    for (int i = 0; i < count; i++)
        if (request->json)
            print_live_json(&groups[i]);
        else
            print_live_group(&groups[i], &page);
    live_groups_free(groups, count);
    return STATUS_CLEAN;
}

/* "12,13 14". Returns how many, -1 if it is no such list. */
static int parse_pids(const char *text, int *pids)
{
    int count = 0;
    while (*text) {
        char *end;
        long pid = strtol(text, &end, 10);
        if (end == text || pid <= 0 || pid > 1 << 22 || count == PIDS_MAX)
            return -1;
        pids[count++] = (int)pid;
        text = end + strspn(end, ", \n");
        if (text == end && *end)
            return -1;
    }
    return count ? count : -1;
}

/* What can be read is shown, whatever happens to the other processes. */
static int show_live(const int *pids, int count, const struct stacks_request *request)
{
    struct live_process *process = calloc((size_t)count, sizeof *process);
    struct symbols *symbols = request->python_only ? NULL : symbols_new();
    int read = 0, status = STATUS_CLEAN;
    for (int i = 0; i < count && process; i++) {
        struct error err;
        if (!live_read(&process[read], pids[i], symbols, &err)) {
            read++;
            continue;
        }
        status = command_fail(&err);
    }
    if (read && print_live(process, read, request) != STATUS_CLEAN)
        status = STATUS_USAGE;
    for (int i = 0; i < read; i++)
        live_free(&process[i]);
    symbols_free(symbols);
    free(process);
    return status;
}

/* What the processes reported of themselves when the job hung. */
static int show_reported(const char *const *paths, int count, const struct stacks_request *request)
{
    struct report report;
    struct choice choice;
    struct error err = {{0}};
    const struct choice_options nothing_special = {0};
    const struct report_options options = {.choice = &choice};
    if (choice_load(&choice, &nothing_special, &err) ||
        report_load(&report, paths, count, &options, &err)) {
        return command_fail(&err);
    }
    int status = STATUS_CLEAN;
    if (!report.standings.count) {
        fprintf(
            stderr,
            "ddpcheck: the trace holds no stacks: the job did not hang, or not for long enough; "
            "of running processes: ddpcheck stacks --pid PID\n");
        status = STATUS_INCOMPLETE;
    } else if (request->json) {
        if (report_print_json_stacks(&report, stdout, &err)) {
            status = command_fail(&err);
        }
    } else {
        struct page page;
        page_init(&page, stdout, (enum color_when)request->color);
        report_print_stacks(&report, &page, true);
    }
    report_free(&report);
    choice_free(&choice);
    return status;
}

int command_stacks(int argc, char **argv)
{
    struct stacks_request request = {0};
    const struct option_entry entries[] = {
        {"pid", 'p', OPTION_TEXT, "PID[,PID...]", "running processes, watched or not",
         &request.pids},
        {"python", 0, OPTION_FLAG, NULL,
         "only the Python frames of running processes; stops no thread", &request.python_only},
        {"all", 'a', OPTION_FLAG, NULL, "every frame, also those of libraries and of Python itself",
         &request.all},
        {"json", 0, OPTION_FLAG, NULL, "print JSON lines (docs/json.md)", &request.json},
        OPTION_COLOR(&request.color),
    };
    const struct command_options options = {
        .command = "stacks",
        .arguments = "--pid PID[,PID...] | DIR|DATABASE...",
        .summary = "Shows the call stacks of threads, Python's frames first, equal stacks as one "
                   "group: of running\n"
                   "processes, or of a watched job, captured when it hung.",
        .details =
            "Reading a running process needs the right to ptrace it (the same user, or "
            "CAP_SYS_PTRACE). For native frames "
            "each of its threads is stopped for some milliseconds, as a debugger does.\n\n"
            "Exit status: 0 shown; 2 usage error, or a process or trace that can't be read; 3 "
            "the trace holds no stacks.\n",
        .entries = entries,
        .count = OPTION_COUNT(entries),
    };
    int status = options_parse(&options, &argc, &argv);
    if (status != OPTIONS_GO)
        return status;
    int pids[PIDS_MAX], count = request.pids ? parse_pids(request.pids, pids) : 0;
    if (count < 0)
        return options_usage_error(
            &options, "--pid takes process ids, as in --pid 4711,4712, and at most %d; not '%s'",
            PIDS_MAX, request.pids);
    if (count && argc)
        return options_usage_error(&options, "either --pid or a trace");
    if (!count && (!argc || request.python_only))
        return options_usage_error(&options,
                                   argc ? "--python goes with --pid"
                                        : "missing --pid PID, or the directory of a trace");
    return count ? show_live(pids, count, &request)
                 : show_reported((const char *const *)argv, argc, &request);
}
