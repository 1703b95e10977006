/* comm_names.c: takes the names that programs give to communicators. */
#include <string.h>

#include "analyzer/environment/settings.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"

/* Longer names end in "..."; what means something to a terminal, JSON or HTML becomes "_". */
static void copy_name(char name[COMM_NAME_BYTES], const char *given)
{
    size_t used = 0;
    for (; *given && used < COMM_NAME_BYTES - 1; given++) {
        bool is_plain = *given >= ' ' && *given <= '~' && !strchr("\"\\<>&'`", *given);
        name[used++] = is_plain ? *given : '_';
    }
    name[used] = '\0';
    if (*given)
        memcpy(name + COMM_NAME_BYTES - 4, "...", 4);
}

/* PyTorch 2.15 numbers its process groups; new_group(use_local_synchronization=True) and
 * split_group() hash their ranks (SHA-1). */
static bool is_number_of_group(const char *name)
{
    enum { SHA1_DIGITS = 40 };
    size_t digits = strspn(name, "0123456789"), hexadecimal = strspn(name, "0123456789abcdef");
    return *name && (!name[digits] || (hexadecimal == SHA1_DIGITS && !name[hexadecimal]));
}

/* PyTorch calls its first group 0 until it has named it. */
static bool is_default_group(const struct process *process, const char *name)
{
    char version[SETTING_TEXT_BYTES];
    return !strcmp(name, "0") && settings_value(process, "PyTorch", version);
}

int comm_take_name(struct event *event)
{
    const struct process *process = event->process;
    const struct record *record = event->record;
    struct comm *comm = comm_find(process->analyzer, record->range.id);
    if (!comm)
        return ENGINE_OK;
    if (record->range.domain && !rankset_count(&comm->job_ranks) &&
        rankset_parse(&comm->job_ranks, process_string(process, record->range.domain)))
        rankset_free(&comm->job_ranks);
    if (!record->range.text || (*comm->name && comm->named_by != process))
        return ENGINE_OK;
    comm->named_by = process;
    comm->shares_name = false;
    copy_name(comm->name, process_string(process, record->range.text));
    comm->is_numbered = comm->is_numbered || is_number_of_group(comm->name);
    if (is_default_group(process, comm->name))
        copy_name(comm->name, "default_pg");
    struct comm *other = process->analyzer->first_comm;
    for (; *comm->name && other; other = other->next)
        if (other != comm && !strcmp(other->name, comm->name))
            other->shares_name = comm->shares_name = true;
    return ENGINE_OK;
}

char *comm_title_of(struct analyzer *analyzer, uint64_t id, char text[COMM_TITLE_BYTES])
{
    const struct comm *comm = comm_find(analyzer, id);
    return comm ? comm_title(comm, text) : comm_name(id, text);
}
