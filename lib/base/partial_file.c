/* partial_file.c: removes a file that is not complete when a signal ends the process. */
#include "lib/base/partial_file.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
enum { ENDING = sizeof ending / sizeof *ending };

/* Of the handler, which gets nothing else; "" none. SQLite has a journal beside its file. */
static char partial_path[PATH_MAX], partial_journal[PATH_MAX];

/* As the signal alone would have ended it. */
static void remove_partial(int number)
{
    unlink(partial_path);
    unlink(partial_journal);
    signal(number, SIG_DFL);
    raise(number);
}

void partial_file_begin(const char *path)
{
    struct sigaction now;
    const struct sigaction removes = {.sa_handler = remove_partial, .sa_flags = SA_NODEFER};
    if (snprintf(partial_journal, sizeof partial_journal, "%s-journal", path) >=
        (int)sizeof partial_journal)
        return;
    strcpy(partial_path, path);
    for (int i = 0; i < ENDING; i++)
        if (sigaction(ending[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL)
            sigaction(ending[i], &removes, NULL);
}

void partial_file_end(void)
{
    struct sigaction now;
    for (int i = 0; i < ENDING; i++)
        if (sigaction(ending[i], NULL, &now) == 0 && now.sa_handler == remove_partial)
            signal(ending[i], SIG_DFL);
    partial_path[0] = 0;
}
