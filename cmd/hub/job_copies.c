/* job_copies.c: copies of the databases of those arguments that are addresses of hubs. */
#include "cmd/hub/job_copies.h"

#include <string.h>

int job_copies_open(struct job_copies *copies, char **argv, int argc, struct error *err)
{
    *copies = (struct job_copies){0};
    for (int i = 0; i < argc; i++) {
        struct job_copy **copy = &copies->copy[copies->count];
        if (!job_copy_is_address(argv[i]))
            continue;
        int result = copies->count == JOB_COPIES_MAX
                         ? error_set(err, "more than %d addresses of hubs", JOB_COPIES_MAX)
                         : job_copy_open(copy, argv[i], 0, false, err);
        if (result < 0) {
            job_copies_close(copies);
            return -1;
        }
        argv[i] = (char *)job_copy_database(*copy);
        copies->count++;
    }
    return 0;
}

void job_copies_close(struct job_copies *copies)
{
    for (int i = 0; i < copies->count; i++)
        job_copy_close(copies->copy[i]);
    copies->count = 0;
}

const char *job_copies_name(const struct job_copies *copies, const char *path)
{
    for (int i = 0; i < copies->count; i++)
        if (strcmp(job_copy_database(copies->copy[i]), path) == 0)
            return job_copy_name(copies->copy[i]);
    return path;
}
