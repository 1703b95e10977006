/* screen.c: draws text on the terminal and reads its keys, with ncurses. */
#include "tui/screen.h"

#include <errno.h>
#include <langinfo.h>
#include <ncurses.h>
#include <panel.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tui/width.h"

enum { ESCAPE_MS = 25, POPUP_MARGIN = 4, TEXT_BYTES = 8192 };
enum { COPY_BYTES_MOST = 74994 }; /* as Base64 with the sequence 100,000 bytes: hterm's limit */

static struct {
    SCREEN *screen;
    bool color;
    WINDOW *popup;
    PANEL *panel;
    struct rows popup_lines;
    char popup_title[64];
    int popup_from; /* its first line that is shown, where there is no room for all */
    bool popup_ascii;
    int click_line, click_column;
} state;

/* Hues on the terminal's own background; without colour tones differ by weight, and by the marks in
 * the text. */
static const struct {
    short color;
    attr_t attributes, plain_attributes;
} looks[TONES] = {
    [TONE_PLAIN] = {-1, A_NORMAL, A_NORMAL},
    [TONE_STRONG] = {-1, A_BOLD, A_BOLD},
    [TONE_FAINT] = {-1, A_DIM, A_DIM},
    [TONE_GOOD] = {COLOR_GREEN, A_NORMAL, A_NORMAL},
    [TONE_NOTE] = {COLOR_CYAN, A_NORMAL, A_NORMAL},
    [TONE_WARNING] = {COLOR_YELLOW, A_NORMAL, A_BOLD},
    [TONE_ERROR] = {COLOR_RED, A_BOLD, A_BOLD},
};

int screen_open(bool color, struct error *err)
{
    const char *terminal = getenv("TERM");
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return error_set(
            err, "the screen needs a terminal; 'ddpcheck tui --once' prints the first view");
    bool is_dumb = terminal && !strcmp(terminal, "dumb"); /* it has no places to write to */
    state.screen = is_dumb ? NULL : newterm(NULL, stdout, stdin);
    if (!state.screen)
        return error_set(
            err,
            "can't use a terminal of type '%s' (TERM); 'ddpcheck tui --once' prints the first view",
            terminal ? terminal : "");
    set_term(state.screen);
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    set_escdelay(ESCAPE_MS);
    curs_set(0);
    state.color = color && has_colors();
    if (state.color) {
        start_color();
        use_default_colors();
        for (int tone = 0; tone < TONES; tone++)
            init_pair((short)(tone + 1), looks[tone].color, -1);
    }
    return 0;
}

void screen_close(void)
{
    if (!state.screen)
        return;
    screen_popup_close();
    endwin();
    delscreen(state.screen);
    state.screen = NULL;
}

int screen_width(void)
{
    return COLS;
}

int screen_height(void)
{
    return LINES;
}

bool screen_is_wide(void)
{
    return !strcmp(nl_langinfo(CODESET), "UTF-8");
}

/* getch waits for ever, whatever it was reported, after a report that is not asked for: so all that
 * the terminal sends is. */
void screen_mouse(bool on)
{
    const mmask_t reported = BUTTON1_CLICKED | BUTTON1_PRESSED | BUTTON1_RELEASED |
                             BUTTON2_PRESSED | BUTTON2_RELEASED | BUTTON3_PRESSED |
                             BUTTON3_RELEASED | BUTTON4_PRESSED | BUTTON5_PRESSED;
    mousemask(on ? reported : 0, NULL);
    mouseinterval(0);
}

static attr_t attributes_of(enum tone tone, enum look look)
{
    attr_t attributes = state.color ? looks[tone].attributes | (attr_t)COLOR_PAIR(tone + 1)
                                    : looks[tone].plain_attributes;
    if (look == LOOK_SELECTED || look == LOOK_BAR)
        attributes |= A_REVERSE;
    return look == LOOK_FOUND ? attributes | A_UNDERLINE : attributes;
}

static void put_text(WINDOW *window, int line, int column, int width, attr_t attributes,
                     const char *text)
{
    char part[TEXT_BYTES];
    if (width <= 0)
        return;
    size_t bytes = width_fit(text, width);
    snprintf(part, sizeof part, "%.*s", (int)bytes, text);
    wattrset(window, (int)attributes);
    mvwaddstr(window, line, column, part);
    for (int i = width_of(part); i < width; i++)
        mvwaddch(window, line, column + i, ' ');
    wattrset(window, A_NORMAL);
}

void screen_text(int line, int column, int width, enum tone tone, enum look look, const char *text)
{
    if (line < 0 || line >= LINES || column >= COLS)
        return;
    put_text(stdscr, line, column, width < COLS - column ? width : COLS - column,
             attributes_of(tone, look), text);
}

void screen_clear_line(int line)
{
    screen_text(line, 0, COLS, TONE_PLAIN, LOOK_USUAL, "");
}

void screen_show(void)
{
    wnoutrefresh(stdscr);
    if (state.popup)
        touchwin(state.popup); /* what is below it may have been drawn anew */
    update_panels();
    doupdate();
}

void screen_redraw(void)
{
    clearok(stdscr, TRUE);
    touchwin(stdscr);
}

static void popup_delete(void)
{
    if (!state.popup)
        return;
    del_panel(state.panel);
    delwin(state.popup);
    state.popup = NULL;
    state.panel = NULL;
    touchwin(stdscr);
}

void screen_popup_close(void)
{
    popup_delete();
    rows_free(&state.popup_lines);
}

static int widest(const struct rows *lines, const char *title)
{
    int width = width_of(title);
    for (int i = 0; i < lines->lines; i++)
        if (width_of(lines->line[i].text) > width)
            width = width_of(lines->line[i].text);
    return width;
}

static void popup_draw(int height, int width)
{
    static const char more[] = " arrows: more ";
    const struct rows *lines = &state.popup_lines;
    int room = height - 2;
    werase(state.popup);
    if (state.popup_ascii)
        wborder(state.popup, '|', '|', '-', '-', '+', '+', '+', '+');
    else
        box(state.popup, 0, 0);
    put_text(state.popup, 0, 2, width_of(state.popup_title), attributes_of(TONE_STRONG, LOOK_USUAL),
             state.popup_title);
    if (room < lines->lines && width > width_of(more) + POPUP_MARGIN)
        put_text(state.popup, height - 1, 2, width_of(more), attributes_of(TONE_FAINT, LOOK_USUAL),
                 more);
    for (int i = 0; i < room && state.popup_from + i < lines->lines; i++) {
        const struct cell *line = &lines->line[state.popup_from + i];
        put_text(state.popup, 1 + i, 2, width - POPUP_MARGIN, attributes_of(line->tone, LOOK_USUAL),
                 line->text);
    }
}

static void popup_place(void)
{
    const struct rows *lines = &state.popup_lines;
    int width = widest(lines, state.popup_title) + POPUP_MARGIN, height = lines->lines + 2;
    popup_delete();
    width = width > COLS ? COLS : width;
    height = height > LINES ? LINES : height;
    state.popup = newwin(height, width, (LINES - height) / 2, (COLS - width) / 2);
    if (!state.popup)
        return;
    state.popup_from = rows_clamp(state.popup_from, 0, lines->lines + 2 - height);
    popup_draw(height, width);
    state.panel = new_panel(state.popup);
}

void screen_popup(const char *title, struct rows *lines, bool ascii)
{
    screen_popup_close();
    state.popup_lines = *lines;
    *lines = (struct rows){0};
    snprintf(state.popup_title, sizeof state.popup_title, "%s", title);
    state.popup_ascii = ascii;
    state.popup_from = 0;
    popup_place();
}

bool screen_popup_scroll(int by)
{
    int hidden = state.popup_lines.lines + 2 - LINES;
    if (hidden <= 0)
        return false;
    state.popup_from = rows_clamp(state.popup_from + by, 0, hidden);
    popup_place();
    return true;
}

static void print_base64(const unsigned char *bytes, size_t count, FILE *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < count; i += 3) {
        unsigned second = i + 1 < count ? bytes[i + 1] : 0;
        unsigned third = i + 2 < count ? bytes[i + 2] : 0;
        unsigned group = (unsigned)bytes[i] << 16 | second << 8 | third;
        putc(digits[group >> 18], out);
        putc(digits[group >> 12 & 63], out);
        putc(i + 1 < count ? digits[group >> 6 & 63] : '=', out);
        putc(i + 2 < count ? digits[group & 63] : '=', out);
    }
}

bool screen_copy(const char *text, size_t bytes)
{
    if (bytes > COPY_BYTES_MOST)
        return false;
    fputs("\033]52;c;", stdout);
    print_base64((const unsigned char *)text, bytes, stdout);
    fputs("\a", stdout);
    return fflush(stdout) == 0;
}

int screen_lend(char *const arguments[])
{
    extern char **environ;
    pid_t pid;
    int status = -1;
    def_prog_mode();
    endwin();
    int failed = posix_spawnp(&pid, arguments[0], NULL, NULL, arguments, environ);
    while (!failed && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    reset_prog_mode();
    screen_redraw();
    errno = failed;
    return status;
}

static int mouse_key(void)
{
    MEVENT event;
    if (getmouse(&event) != OK)
        return 0;
    state.click_line = event.y;
    state.click_column = event.x;
    if (event.bstate & BUTTON4_PRESSED)
        return SCREEN_WHEEL_UP;
    if (event.bstate & BUTTON5_PRESSED)
        return SCREEN_WHEEL_DOWN;
    return event.bstate & (BUTTON1_PRESSED | BUTTON1_CLICKED) ? SCREEN_CLICK : 0;
}

void screen_click(int *line, int *column)
{
    *line = state.click_line;
    *column = state.click_column;
}

/* 0 for keys that mean nothing here. */
static int key_meaning(int key)
{
    static const struct {
        int curses, key;
    } keys[] = {
        {KEY_UP, SCREEN_UP},
        {KEY_DOWN, SCREEN_DOWN},
        {KEY_LEFT, SCREEN_LEFT},
        {KEY_RIGHT, SCREEN_RIGHT},
        {KEY_PPAGE, SCREEN_PAGE_UP},
        {KEY_NPAGE, SCREEN_PAGE_DOWN},
        {KEY_HOME, SCREEN_HOME},
        {KEY_END, SCREEN_END},
        {KEY_ENTER, SCREEN_ENTER},
        {'\r', SCREEN_ENTER},
        {'\n', SCREEN_ENTER},
        {27, SCREEN_ESCAPE},
        {KEY_BACKSPACE, SCREEN_BACKSPACE},
        {127, SCREEN_BACKSPACE},
        {8, SCREEN_BACKSPACE},
        {'\t', SCREEN_TAB},
        {KEY_BTAB, SCREEN_BACKTAB},
        {KEY_RESIZE, SCREEN_RESIZE},
        {KEY_F(1), SCREEN_F1},
        {KEY_F(3), SCREEN_F3},
        {KEY_F(4), SCREEN_F4},
        {KEY_F(6), SCREEN_F6},
        {KEY_F(10), SCREEN_F10},
    };
    if (key == KEY_MOUSE)
        return mouse_key();
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].curses == key)
            return keys[i].key;
    return key < 0x100 ? key : SCREEN_OTHER;
}

/* Not until all that was typed is taken may the caller wait for more: ncurses may hold it already.
 */
int screen_key(void)
{
    int key, meaning;
    while ((key = getch()) != ERR)
        if ((meaning = key_meaning(key)) != 0)
            return meaning;
    return 0;
}
