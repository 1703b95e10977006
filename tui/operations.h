/* operations.h: the collectives of one communicator by number, as rows of `event`. */
#ifndef DDPCHECK_TUI_OPERATIONS_H
#define DDPCHECK_TUI_OPERATIONS_H

#include "lib/trace/record.h"
#include "tui/source.h"

enum { OPERATION_TEXT = 96 };

struct tui_operation {
    uint64_t number;
    int rank;                  /* in the communicator */
    bool empty;                /* of no elements */
    char text[OPERATION_TEXT]; /* "AllReduce(4096, float32, sum)" */
};

struct operations {
    struct tui_operation *operation; /* by number, then rank */
    int count;
};

/* The call, short, and without what no one compares: the names of the two broadcasts. Returns text.
 */
char *operation_text(const struct record *record, char text[OPERATION_TEXT]);

/* Takes the words that anyone knows out of a text that names calls: "AllReduce(1, int32, sum) #0 of
 * 5ae7". Returns text. */
char *operation_shorten(char *text);
/* Takes out of a sentence what stands in parentheses: arguments, sizes. Returns text. */
char *operation_shorten_more(char *text);

/* The collectives first .. last of the communicator on all ranks. Reads the blocks of 1,024 that
 * they are in. Returns 0 (operations_free it), or -1 with err. */
int operations_load(struct operations *operations, struct source *source, uint64_t comm,
                    uint64_t first, uint64_t last, struct error *err);
void operations_free(struct operations *operations);

/* The lowest number at which ranks called differently, into *number. 1, 0 if there is none, -1 with
 * err. */
int operations_divergence(struct source *source, uint64_t comm, uint64_t *number,
                          struct error *err);

#endif
