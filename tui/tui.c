/* tui.c: opens the databases and the terminal, and runs the loop of keys and pictures. */
#include "tui/tui.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "tui/app.h"
#include "tui/screen.h"

enum { WAIT_SHOWN_MS = 300 }; /* how often a view that is not there yet says how long it takes */

/* The signal that ends the TUI, and the pipe that wakes its loop: it may come to the reader's
 * thread. */
static volatile sig_atomic_t ended_by;
static int signal_fd;
static const struct timespec retry = {.tv_nsec = 200000000};

/* --- what app.h promises --- */

void app_ask(struct app *app)
{
    struct query *query = &app_place(app)->query;
    query->width = screen_width();
    query->height = screen_height();
    query->ascii = app->ascii;
    app->asked = reader_ask(app->reader, query);
    app->asked_ns = monotonic_now_ns();
}

void app_open(struct app *app, const struct query *query)
{
    if (app->depth == APP_DEPTH_MAX)
        return;
    app->place[app->depth++] = (struct view_place){.query = *query};
    app->shown = false;
    app_ask(app);
}

void app_switch(struct app *app, enum view_id view)
{
    while (app->depth > 0)
        table_free(&app->place[--app->depth].table);
    app->lifted = 0;
    app_open(app, &(struct query){.view = view, .number = NUMBER_LAST, .process = -1});
}

void app_back(struct app *app)
{
    struct table *table = &app_place(app)->table;
    if (app->depth > 1) {
        table_free(table);
        app->depth--;
        app->shown = false;
        app_ask(app);
        return;
    }
    table->filter[0] = table->search[0] = '\0';
    if (app->shown)
        table_update(table, &app->picture.rows);
}

/* On failure the last picture stays, with the new error. */
static void keep_old(struct app *app, struct picture *failed)
{
    app->picture.error = failed->error;
    picture_free(failed);
}

/* The request is cleared once the model has answered it; 0 and NUMBER_LAST keep following the job.
 */
static void settle_query(struct query *query, const struct query *answer)
{
    if (query->comm_step)
        query->comm = answer->comm;
    query->comm_step = 0;
    if (query->number == NUMBER_DIVERGENCE)
        query->number = answer->number;
}

/* A new picture came. */
static void app_take(struct app *app)
{
    struct picture picture = {0};
    if (!reader_take(app->reader, &picture))
        return;
    if (picture.asked !=
        app->asked) { /* of the view before: the one that is wanted is on its way */
        picture_free(&picture);
        return;
    }
    app->answered = app->asked;
    if (*picture.error.text) {
        keep_old(app, &picture);
        return;
    }
    picture_free(&app->picture);
    app->picture = picture;
    bool others = app->opened && picture.opened != app->opened;
    app->opened = picture.opened;
    if (others &&
        app->depth > 1) { /* the rank or finding that was shown may have another number now */
        app->held = 0;
        app_switch(app, app->place[0].query.view);
        return;
    }
    struct view_place *place = app_place(app);
    bool wanted = !place->table.has_selected && place->query.view == VIEW_SEQUENCE;
    settle_query(&place->query, &picture.query);
    app->shown = true;
    table_update(&place->table, &app->picture.rows);
    if (wanted)
        table_select(&place->table, &app->picture.rows, (uint64_t)picture.query.number + 1);
}

/* --- the loop --- */

static void drain(int fd)
{
    char bytes[64];
    while (read(fd, bytes, sizeof bytes) > 0)
        ;
}

static void note_signal(int signal_number)
{
    int before = errno;
    ended_by = signal_number;
    if (write(signal_fd, "", 1) < 0)
        errno = before; /* the pipe is full: the loop wakes all the same */
}

static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
enum { ENDING_COUNT = sizeof ending / sizeof ending[0] };

/* ncurses' own handlers would end the process where it stands. What nohup ignores stays ignored. */
static void catch_signals(int wake_fd, struct sigaction before[ENDING_COUNT])
{
    const struct sigaction leave = {.sa_handler = note_signal};
    ended_by = 0;
    signal_fd = wake_fd;
    for (int i = 0; i < ENDING_COUNT; i++) {
        sigaction(ending[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN)
            sigaction(ending[i], &leave, NULL);
    }
}

static void restore_signals(const struct sigaction before[ENDING_COUNT])
{
    for (int i = 0; i < ENDING_COUNT; i++)
        sigaction(ending[i], &before[i], NULL);
}

/* A terminal that vanishes sends SIGHUP to its foreground processes only; others learn it here. */
static void note_terminal_gone(void)
{
    struct sigaction hangup;
    if (!ended_by && sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
        ended_by = SIGHUP;
}

static void run_loop(struct app *app, int wake_fd)
{
    app_draw(app);
    while (!app->leaving && !ended_by) {
        struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                               {.fd = wake_fd, .events = POLLIN}};
        int ready = poll(fds, 2, app->shown ? -1 : WAIT_SHOWN_MS);
        if (ready < 0 && errno != EINTR)
            return;
        if (ready > 0 && fds[0].revents & (POLLHUP | POLLERR | POLLNVAL)) {
            note_terminal_gone();
            return;
        }
        for (int key; !app->leaving && (key = screen_key()) != 0;)
            app_key(app, key);
        if (ready > 0 && fds[1].revents)
            drain(wake_fd);
        app_take(app);
        app_keys_held(app);
        app_draw(app);
    }
}

/* Waits for a job that has not called NCCL yet. */
static int open_source(struct source *source, const struct tui_options *options, struct error *err)
{
    struct timespec now, begin;
    bool said = !options->waiting_for;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (;;) {
        if (source_open_all(source, options->paths, options->count, err) == 0)
            return 0;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if ((double)(now.tv_sec - begin.tv_sec) >= options->wait_s ||
            (options->give_up && options->give_up(options->context)))
            return -1;
        if (!said && now.tv_sec - begin.tv_sec > 1)
            fprintf(stderr, "ddpcheck: waiting for %s\n", options->waiting_for);
        said = said || now.tv_sec - begin.tv_sec > 1;
        nanosleep(&retry, NULL);
    }
}

static bool needs_ascii(const struct tui_options *options)
{
    const char *terminal = getenv("TERM");
    return options->ascii || !screen_is_wide() ||
           (terminal && !strcmp(terminal, "linux")); /* its font lacks the marks */
}

int tui_run(const struct tui_options *options, struct error *err)
{
    struct app app = {0};
    struct source source;
    int wake[2];
    setlocale(LC_CTYPE, ""); /* how wide characters are; numbers stay as in the report */
    if (open_source(&source, options, err) < 0)
        return -1;
    if (pipe2(wake, O_CLOEXEC | O_NONBLOCK) < 0) {
        source_close_all(&source);
        return error_set(err, "can't start: %s", strerror(errno));
    }
    source.trouble = options->trouble;
    source.instead = options->instead;
    source.context = options->context;
    source.title = options->title;
    app.trace_bytes = source_bytes(&source);
    int result = screen_open(options->color, err);
    if (result == 0) {
        app.ascii = needs_ascii(options);
        app.mouse = true;
        screen_mouse(true);
        app.reader = reader_start(&source, wake[1], err);
        result = app.reader ? 0 : -1;
    }
    if (result == 0) {
        struct sigaction before[ENDING_COUNT];
        catch_signals(wake[1], before);
        app_switch(&app, (enum view_id)options->view);
        run_loop(&app, wake[0]);
        restore_signals(before);
        if (options->ended_by)
            *options->ended_by = ended_by;
        reader_stop(app.reader);
    } else {
        source_close_all(&source);
    }
    screen_close();
    while (app.depth > 0)
        table_free(&app.place[--app.depth].table);
    picture_free(&app.picture);
    close(wake[0]);
    close(wake[1]);
    return result;
}

enum { ONCE_HEIGHT = 24, ONCE_ROWS = 100 };

int tui_print(const struct tui_options *options, int width, struct error *err)
{
    struct source source;
    struct picture picture = {0};
    setlocale(LC_CTYPE, ""); /* how wide characters are; numbers stay as in the report */
    if (open_source(&source, options, err) < 0)
        return -1;
    const struct query query = {.view = (enum view_id)options->view,
                                .number = NUMBER_LAST,
                                .process = -1,
                                .width = width,
                                .height = ONCE_HEIGHT,
                                .ascii = needs_ascii(options)};
    int result = source_look(&source, err) < 0 ? -1 : picture_make(&source, &query, &picture, err);
    if (result == 0) {
        rows_print(&picture.diagnosis, width, stdout);
        putchar('\n');
        int more = picture.rows.count - ONCE_ROWS;
        picture.rows.count -= more > 0 ? more : 0;
        rows_print(&picture.rows, width, stdout);
        picture.rows.count += more > 0 ? more : 0;
        if (more > 0)
            printf("and %d more rows\n", more);
    }
    picture_free(&picture);
    source_close_all(&source);
    return result;
}
