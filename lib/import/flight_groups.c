/* flight_groups.c: the process groups of a Flight Recorder dump, which become communicators. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/rankset.h"
#include "lib/import/flight_dump.h"

enum { GROUPS_MAX = 1 << 16, JOB_RANKS_BYTES = 512 };

int flight_failed(const struct flight_dump *dump, const char *why)
{
    return error_set(dump->err, "%s: %s", input_path(dump->input), why);
}

static struct flight_group *group_find(struct flight_dump *dump, const char *name, uint32_t bytes)
{
    for (uint32_t i = 0; i < dump->groups; i++)
        if (dump->group[i].name_bytes == bytes && !memcmp(dump->group[i].name, name, bytes))
            return &dump->group[i];
    return NULL;
}

static struct flight_group *group_add(struct flight_dump *dump, const char *name, uint32_t bytes)
{
    struct flight_group *group = group_find(dump, name, bytes);
    if (group || dump->groups == GROUPS_MAX)
        return group;
    if (dump->groups == dump->group_capacity) {
        uint32_t capacity = dump->group_capacity ? 2 * dump->group_capacity : 16;
        struct flight_group *grown = arena_take(&dump->arena, capacity * sizeof *grown);
        if (!grown)
            return NULL;
        if (dump->groups)
            memcpy(grown, dump->group, dump->groups * sizeof *grown);
        dump->group = grown;
        dump->group_capacity = capacity;
    }
    group = &dump->group[dump->groups++];
    *group = (struct flight_group){.name = name,
                                   .name_bytes = bytes,
                                   .nranks = -1,
                                   .member = -1,
                                   .own = -1,
                                   .id = -1,
                                   .seq = -1};
    return group;
}

/* "[0, 1, 2]", or a list of numbers. */
static int read_ranks(struct flight_dump *dump, const struct value *value,
                      struct flight_group *group)
{
    bool is_text = value && value->kind == VALUE_TEXT;
    if (!value || (!is_text && value->kind != VALUE_LIST))
        return 0;
    uint32_t most = is_text ? value->text->count / 2 + 1 : value->list->count;
    int *rank = arena_take(&dump->arena, ((size_t)most + 1) * sizeof *rank);
    if (!rank)
        return flight_failed(dump, OUT_OF_MEMORY);
    int count = 0;
    for (uint32_t i = 0; is_text && i < value->text->count; i++) {
        if (!isdigit((unsigned char)value->text->bytes[i]))
            continue;
        int number = 0;
        for (; i < value->text->count && isdigit((unsigned char)value->text->bytes[i]); i++)
            number = number < INT32_MAX / 10 - 1 ? 10 * number + (value->text->bytes[i] - '0')
                                                 : number;
        rank[count++] = number;
    }
    for (uint32_t i = 0; !is_text && i < value->list->count; i++) {
        int64_t number;
        if (value_integer(&value->list->item[i], &number) && number >= 0 && number < INT32_MAX)
            rank[count++] = (int)number;
    }
    if (!count)
        return 0;
    group->rank = rank;
    group->nranks = count;
    return 0;
}

/* The description that the program gave the group: "default_pg", "mesh_tp". PyTorch writes
 * "undefined" where there is none, and torchcomms the backend. Returns 0, or -1 with the dump's
 * error. */
static int read_title(struct flight_dump *dump, const struct value *desc,
                      struct flight_group *group)
{
    static const char *const none[] = {"undefined", "nccl", "gloo", "xccl", "ucc", "mpi"};
    if (!desc || desc->kind != VALUE_TEXT || !desc->text->count)
        return 0;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (value_is(desc, none[i]))
            return 0;
    char *title = arena_take(&dump->arena, (size_t)desc->text->count + 1);
    if (!title)
        return flight_failed(dump, OUT_OF_MEMORY);
    memcpy(title, desc->text->bytes, desc->text->count);
    title[desc->text->count] = '\0';
    group->title = title;
    return 0;
}

static uint64_t hash_ranks(const struct flight_group *group)
{
    uint64_t hash = 14695981039346656037u;
    for (int i = 0; i < group->nranks; i++)
        hash = (hash ^ (uint64_t)(uint32_t)group->rank[i]) * 1099511628211u;
    return hash;
}

/* "0-3,8"; "" if the group does not number them in this order, which PyTorch does, or if they are
 * too many. Returns 0, or -1 when memory is short. */
static int write_job_ranks(const struct flight_group *group, char text[JOB_RANKS_BYTES])
{
    struct rankset ranks = {0};
    bool ascends = group->nranks > 0;
    int failed = 0;
    for (int i = 0; i < group->nranks && !failed; i++) {
        ascends &= !i || group->rank[i] > group->rank[i - 1];
        failed = rankset_add(&ranks, group->rank[i]);
    }
    rankset_text(&ranks, text, JOB_RANKS_BYTES);
    if (!ascends || strstr(text, "..."))
        text[0] = '\0';
    rankset_free(&ranks);
    return failed;
}

int flight_join(struct flight_dump *dump, struct flight_group *group)
{
    char name[FLIGHT_NAME_BYTES + 512], ranks[JOB_RANKS_BYTES];
    group->own = group->rank ? -1 : dump->rank;
    for (int i = 0; i < group->nranks && group->own < 0; i++)
        if (group->rank[i] == dump->rank)
            group->own = i;
    if (group->own < 0)
        return 0;
    if (write_job_ranks(group, ranks))
        return flight_failed(dump, OUT_OF_MEMORY);
    int name_bytes = group->name_bytes < 256 ? (int)group->name_bytes : 256;
    unsigned long long ranks_hash = group->rank ? hash_ranks(group) : 0;
    snprintf(name, sizeof name, "Flight Recorder %s group %.*s %016llx", dump->job, name_bytes,
             group->name, ranks_hash);
    struct import_member member = import_member_new();
    member.comm = name;
    member.title = group->title;
    member.ranks = ranks;
    member.rank = group->own;
    member.nranks = group->nranks;
    group->member = import_member(dump->import, dump->process, &member);
    return group->member < 0 ? -1 : 0;
}

int flight_read_groups(struct flight_dump *dump)
{
    const struct value *config = dump->field[FIELD_pg_config], *field[FIELDS];
    if (!config || config->kind != VALUE_DICT)
        return 0;
    for (uint32_t i = 0; i + 1 < config->list->count; i += 2) {
        const struct value *key = &config->list->item[i], *reported = &config->list->item[i + 1];
        if (reported->kind != VALUE_DICT)
            continue;
        flight_fields(reported->list, field);
        const struct value *name = field[FIELD_name] ? field[FIELD_name] : field[FIELD_pg_name];
        if (key->kind == VALUE_TEXT)
            name = key;
        char number[24];
        int64_t integer;
        if ((!name || name->kind != VALUE_TEXT) && value_integer(key, &integer)) {
            struct value made; /* version 1.2 has numbers for keys */
            snprintf(number, sizeof number, "%lld", (long long)integer);
            char *kept = arena_take(&dump->arena, sizeof number);
            if (!kept || value_text(&dump->arena, strcpy(kept, number), strlen(number), &made))
                return flight_failed(dump, OUT_OF_MEMORY);
            struct flight_group *group = group_add(dump, made.text->bytes, made.text->count);
            if (!group || read_ranks(dump, field[FIELD_ranks], group))
                return group ? -1
                             : flight_failed(dump,
                                             OUT_OF_MEMORY ", or it has too many process groups");
            continue;
        }
        if (!name || name->kind != VALUE_TEXT || !name->text->count)
            continue; /* Gloo records one group, without a name */
        struct flight_group *group = group_add(dump, name->text->bytes, name->text->count);
        if (!group)
            return flight_failed(dump, OUT_OF_MEMORY ", or it has too many process groups");
        if (read_ranks(dump, field[FIELD_ranks], group) ||
            read_title(dump, field[FIELD_desc], group))
            return -1;
    }
    return 0;
}

struct flight_group *flight_group_of(struct flight_dump *dump, const struct flight_entry *entry)
{
    const struct value *name = flight_first_text(entry->field[FIELD_process_group]);
    int64_t id = -1;
    if (!name)
        name = flight_first_text(entry->field[FIELD_pg_name]);
    if (entry->field[FIELD_pg_id])
        value_integer(entry->field[FIELD_pg_id], &id);
    struct flight_group *group;
    if (name) {
        group = group_add(dump, name->text->bytes, name->text->count);
    } else {
        char text[24], *kept = arena_take(&dump->arena, sizeof text);
        snprintf(text, sizeof text, "%lld", (long long)(id < 0 ? 0 : id));
        group = kept ? group_add(dump, strcpy(kept, text), (uint32_t)strlen(text)) : NULL;
    }
    if (group && id >= 0)
        group->id = id;
    return group;
}
