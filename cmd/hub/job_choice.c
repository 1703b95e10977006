/* job_choice.c: finds the database of the job's hub. */
#include "cmd/hub/job_choice.h"

#include "cmd/hub/job_copy.h"
#include "cmd/hub/job_folder.h"
#include "lib/base/clock.h"

static const uint64_t look_every_ns = 1000000000;

bool job_choice_find(void *context, const char **path, const char **title)
{
    struct job_choice *choice = context;
    uint64_t now_ns = monotonic_now_ns();
    if (now_ns < choice->due_ns)
        return false;
    choice->due_ns = now_ns + look_every_ns;
    if (job_folder_find(choice->directories, choice->count, choice->path)) {
        *path = choice->path;
        return true;
    }
    choice->is_copy = choice->copy && job_spans_hosts(job_copy_database(choice->copy));
    if (choice->is_copy) {
        *path = job_copy_database(choice->copy);
        *title = job_copy_name(choice->copy);
    }
    return choice->is_copy;
}

void job_choice_trouble(void *context, struct error *trouble)
{
    const struct job_choice *choice = context;
    if (choice->is_copy)
        job_copy_trouble(choice->copy, trouble);
}
