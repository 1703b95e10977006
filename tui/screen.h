/* screen.h: the terminal: tones, text at places, and what is common to all widgets. The only thing
 * that knows how a tone looks. */
#ifndef DDPCHECK_TUI_SCREEN_H
#define DDPCHECK_TUI_SCREEN_H

#include <stdbool.h>

#include "lib/base/error.h"
#include "tui/rows.h"

/* Takes the terminal over. color: as terminal_colored() says. Returns 0, or -1 with err (the
 * terminal is unknown). */
int screen_open(bool color, struct error *err);
/* Gives it back as it was. */
void screen_close(void);

int screen_width(void);
int screen_height(void);
/* Whether the locale can show more than ASCII. */
bool screen_is_wide(void);
void screen_mouse(bool on);

enum look { LOOK_USUAL, LOOK_SELECTED, LOOK_BAR, LOOK_FOUND };

/* Writes text at a place, cut to `width` columns and filled up with blanks. */
void screen_text(int line, int column, int width, enum tone tone, enum look look, const char *text);
void screen_clear_line(int line);
/* Shows what was written since the last time. */
void screen_show(void);
/* Forgets what the terminal shows, after a resize or Ctrl-L. */
void screen_redraw(void);

/* A window in the middle, over the others, with the lines, which it takes
 * ownership of. Drawn by screen_show until closed. */
void screen_popup(const char *title, struct rows *lines, bool ascii);
/* Shows another part of a window that has no room for all its lines. False: it has. */
bool screen_popup_scroll(int by);
void screen_popup_close(void);

/* Puts text on the clipboard of the terminal (OSC 52), also through ssh; a terminal that does not
 * know the sequence ignores it. False: the text is longer than terminals take. */
bool screen_copy(const char *text, size_t bytes);
/* Gives the terminal to a program until it ends. Returns its wait status, -1 with errno if it could
 * not be started. */
int screen_lend(char *const arguments[]);

/* The next key, or 0 if there is none. Keys of the keyboard are ASCII or enum screen_key. */
enum screen_key {
    SCREEN_UP = 0x10000,
    SCREEN_DOWN,
    SCREEN_LEFT,
    SCREEN_RIGHT,
    SCREEN_PAGE_UP,
    SCREEN_PAGE_DOWN,
    SCREEN_HOME,
    SCREEN_END,
    SCREEN_ENTER,
    SCREEN_ESCAPE,
    SCREEN_BACKSPACE,
    SCREEN_TAB,
    SCREEN_BACKTAB,
    SCREEN_RESIZE,
    SCREEN_CLICK,
    SCREEN_WHEEL_UP,
    SCREEN_WHEEL_DOWN,
    SCREEN_F1,
    SCREEN_F3 = SCREEN_F1 + 2,
    SCREEN_F4,
    SCREEN_F6 = SCREEN_F4 + 2,
    SCREEN_F10 = SCREEN_F6 + 4,
    SCREEN_OTHER /* a key that has no meaning here */
};
int screen_key(void);
/* Where the last click was. */
void screen_click(int *line, int *column);

#endif
