/* reader.h: the thread that reads databases and fills views, so that the screen never waits for a
 * disk. */
#ifndef DDPCHECK_TUI_READER_H
#define DDPCHECK_TUI_READER_H

#include "tui/view.h"

/* What the reader made. */
struct picture {
    struct query query; /* as the model completed it */
    uint64_t asked;     /* which reader_ask it answers */
    struct rows diagnosis, rows;
    struct error error;   /* empty, or why the rows could not be read: the ones before it stay */
    struct error warning; /* the rows are good, but not all that is there */
    unsigned opened; /* which opening of the databases they are from: ids are good for one only */
    bool live;
    uint64_t now_ns;
    char path[256];
};

struct reader;

/* Starts the thread on a source that it owns from then on. wake_fd: a byte is written there for
 * each new picture. NULL with err. */
struct reader *reader_start(struct source *source, int wake_fd, struct error *err);
/* Ends it and frees everything. Waits for the query at hand to be interrupted. */
void reader_stop(struct reader *reader);

/* Asks for a view; the answer comes as a picture, and again whenever something changed and every
 * second. Returns the number of the question. */
uint64_t reader_ask(struct reader *reader, const struct query *query);
/* Stops (true) and goes on with looking for changes. */
void reader_pause(struct reader *reader, bool paused);
/* Moves the newest picture to *picture, which is freed before. False if there is none newer. */
bool reader_take(struct reader *reader, struct picture *picture);

void picture_free(struct picture *picture);
/* Fills a picture at once, in the caller's thread. 0, or -1 with err. */
int picture_make(struct source *source, const struct query *query, struct picture *picture,
                 struct error *err);

#endif
