/* claims.c: first_divergence_find() on sequences from stdin, for compare.py. A line has two
 * sequences, "SIGNATURE:LINE ... | SIGNATURE:LINE ...", and is answered by "AT SHIFT CERTAIN", or
 * "-". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/finding/first_divergence.h"

static size_t read_calls(char *text, struct call_symbol *call)
{
    size_t count = 0;
    char *rest;
    for (char *word = strtok_r(text, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest)) {
        char *colon;
        if (count == FIRST_DIVERGENCE_CALLS_MAX)
            abort();
        call[count].signature = strtoull(word, &colon, 10);
        call[count++].lines = strtoull(colon + 1, NULL, 10);
    }
    return count;
}

int main(void)
{
    static struct call_symbol a[FIRST_DIVERGENCE_CALLS_MAX], b[FIRST_DIVERGENCE_CALLS_MAX];
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, stdin) > 0) {
        char *bar = strchr(line, '|');
        if (!bar)
            return 1;
        *bar = '\0';
        const struct call_sequence sequence[] = {{a, read_calls(line, a)},
                                                 {b, read_calls(bar + 1, b)}};
        struct first_divergence found = first_divergence_find(&sequence[0], &sequence[1]);
        if (found.is_found)
            printf("%zu %d %d\n", found.at, found.shift, found.is_certain);
        else
            puts("-");
    }
    free(line);
    return 0;
}
