/* flight_torchcomms.c: dumps that torchcomms' FlightRecorderHook writes: PyTorch's layout, but
 * collective_seq_id counts the calls of all communicators of the process, messages included. */
#include <string.h>

#include "lib/import/flight_dump.h"

/* The group's description is the backend there, with which the operation's name begins. */
static bool is_of_torchcomms(const struct flight_entry *entry)
{
    const struct value *group = entry->field[FIELD_process_group],
                       *name = entry->field[FIELD_profiling_name];
    if (!group || group->kind != VALUE_LIST || group->list->count != 2 || !name ||
        name->kind != VALUE_TEXT || group->list->item[1].kind != VALUE_TEXT)
        return false;
    const struct text_value *backend = group->list->item[1].text, *text = name->text;
    return backend->count && text->count > backend->count && text->bytes[backend->count] == ':' &&
           !memcmp(text->bytes, backend->bytes, backend->count);
}

int flight_find_writer(struct flight_dump *dump, const struct list_value *entries)
{
    struct flight_entry entry;
    int64_t record = 0;
    bool has_p2p = false;
    dump->is_torchcomms = entries->count > 0;
    for (uint32_t i = 0; i < entries->count && dump->is_torchcomms; i++) {
        if (!flight_entry_read(&entries->item[i], &entry))
            continue;
        dump->is_torchcomms = is_of_torchcomms(&entry);
        has_p2p |= entry.is_p2p;
        if (!i)
            record = entry.record;
    }
    dump->counts_calls = dump->is_torchcomms && record <= 0;
    if (!dump->is_torchcomms || dump->counts_calls)
        return 0;
    if (dump->groups > 1 || has_p2p)
        return flight_failed(dump, "the ring has lost its beginning, and torchcomms' numbers count "
                                   "the calls of all communicators together: make the recorder "
                                   "larger (max_entries)");
    return 0;
}

int64_t flight_number_of(const struct flight_dump *dump, struct flight_group *group,
                         const struct flight_entry *entry)
{
    return dump->counts_calls ? (int64_t)group->calls++ : entry->seq;
}
