/* hub_hosts.c: what the hosts say of themselves: processes, members' numbers and hashes, life. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hub/hub_internal.h"
#include "lib/base/invariant.h"
#include "lib/base/printable.h"
#include "lib/trace/site.h"

enum { REFUSED_HOSTS_SAID = 16 }; /* who has the token can make up hosts */

/* No server has more connections (cmd/hub/hub_server.c); a job has no more ranks than a message can
 * name. Beyond that messages are refused: what was made up does not end the hub. */
enum { HOSTS_MAX = 1 << 16, SLOTS_MAX = ITEM_RANKS_MAX, MEMBERS_OF_JOB_MAX = 4 * ITEM_RANKS_MAX };

static const char no_room[] = "the hub has no room for it";

struct hub_host *hub_host_find(struct hub *hub, const char *key)
{
    struct hub_host *host;
    HASH_FIND_STR(hub->hosts, key, host);
    if (host || hub->counts.hosts == HOSTS_MAX || !(host = calloc(1, sizeof *host)))
        return host;
    snprintf(host->key, sizeof host->key, "%s", key);
    HASH_ADD_STR(hub->hosts, key, host);
    if (!TABLE_ADDED(host)) {
        free(host);
        return NULL;
    }
    hub->counts.hosts++;
    return host;
}

bool hub_is_of_host(struct hub *hub, struct hub_host *host, uint64_t sender)
{
    bool is_taken = host->is_bound && host->lives && !host->is_last && !host->silent;
    if (is_taken && sender != host->sender) {
        hub_refuse(hub, host, "another sender has its name");
        return false;
    }
    host->is_bound = true;
    host->sender = sender;
    return true;
}

void hub_refuse(struct hub *hub, struct hub_host *host, const char *why)
{
    hub->counts.refused++;
    if (host->is_refused || hub->refused_hosts >= REFUSED_HOSTS_SAID)
        return;
    host->is_refused = true;
    hub->refused_hosts++;
    fprintf(stderr, "ddpcheck: hub: a message of host ");
    printable_put(host->key, strlen(host->key), stderr);
    fprintf(stderr, " is refused: %s\n", why);
}

void hub_refuse_for_memory(struct hub *hub, struct hub_host *host)
{
    hub_refuse(hub, host, no_room);
}

void hub_drop_for_memory(struct hub *hub, const char *what)
{
    hub->counts.refused++;
    if (!hub->said_memory)
        fprintf(stderr, "ddpcheck: hub: memory is short: %s is dropped, the hub goes on\n", what);
    hub->said_memory = true;
}

struct hub_process *hub_process_find(struct hub_host *host, uint32_t process)
{
    return process < host->processes && host->process[process].known ? &host->process[process]
                                                                     : NULL;
}

/* NULL when memory is short, or the job has too many. */
static struct hub_process *reserve_process(struct hub *hub, struct hub_host *host, uint32_t process)
{
    if (process >= host->capacity) {
        uint32_t capacity = host->capacity ? host->capacity : 1;
        while (capacity <= process)
            capacity *= 2;
        if (hub->slots + (capacity - host->capacity) > SLOTS_MAX)
            return NULL;
        struct hub_process *grown = realloc(host->process, capacity * sizeof *grown);
        if (!grown)
            return NULL;
        memset(grown + host->capacity, 0, (capacity - host->capacity) * sizeof *grown);
        host->process = grown;
        hub->slots += capacity - host->capacity;
        host->capacity = capacity;
        invariant(hub->slots <= SLOTS_MAX, "the hosts of a job have no more places than a job has");
    }
    if (process >= host->processes)
        host->processes = process + 1;
    return &host->process[process];
}

static void add_hub_process(struct hub *hub, struct hub_host *host, const struct item_process *item)
{
    struct hub_process *process = reserve_process(hub, host, item->process);
    struct process_info info = item->info;
    struct error err;
    if (!process)
        hub_refuse_for_memory(hub, host);
    if (!process || process->known)
        return;
    /* Containers of one machine have its boot id, and each a collector: what one says of the time
     * until which all is known does not hold for the other. */
    snprintf(info.boot_id, sizeof info.boot_id, "%.*s", (int)sizeof info.boot_id - 1, host->key);
    info.realtime_ns = hub_time_of(host, info.realtime_ns);
    snprintf(host->name, sizeof host->name, "%.*s", (int)sizeof host->name - 1, info.host);
    int number = store_process(hub->store, &info, &err);
    if (number < 0) {
        hub->failure = err;
        return;
    }
    if (analyzer_add_process(hub->analyzer, number, &info) < 0) {
        hub_refuse_for_memory(hub, host);
        return;
    }
    process->known = true;
    process->number = number;
    process->rank = info.rank;
    process->offset_ns = info.realtime_ns - info.monotonic_ns;
    hub->counts.processes++;
}

static struct hub_comm *find_comm_of_job(struct hub *hub, uint64_t id)
{
    struct hub_comm *comm;
    TABLE_FIND(hub->comms, &id, comm);
    if (comm || !(comm = calloc(1, sizeof *comm)))
        return comm;
    comm->id = id;
    comm->nranks = -1;
    TABLE_ADD(hub->comms, id, comm);
    if (TABLE_ADDED(comm))
        return comm;
    free(comm);
    return NULL;
}

static struct hub_member *find_member_of_job(struct hub *hub, struct hub_host *host,
                                             const struct item_digest *digest)
{
    struct hub_member key = {.key = {digest->comm, digest->rank}}, *member;
    TABLE_FIND(hub->members, &key.key, member);
    if (member)
        return member;
    struct hub_comm *comm = find_comm_of_job(hub, digest->comm);
    if (!comm || hub->counts.ranks >= MEMBERS_OF_JOB_MAX || !(member = calloc(1, sizeof *member)))
        return NULL;
    member->key = key.key;
    TABLE_ADD(hub->members, key, member);
    if (!TABLE_ADDED(member)) {
        free(member);
        return NULL;
    }
    member->host = host;
    member->comm = comm;
    member->comm_next = comm->members;
    comm->members = member;
    comm->known++;
    hub->counts.ranks++;
    return member;
}

/* The member is of this process now, which may be of another host than before. False when memory is
 * short. */
static bool place_member(struct hub *hub, struct hub_host *host, uint32_t process,
                         struct hub_member *member)
{
    struct hub_process *to = reserve_process(hub, host, process), *from;
    if (!to)
        return false;
    if (member->is_placed) {
        from = &member->host->process[member->digest.process];
        struct hub_member **link = &from->members;
        while (*link && *link != member)
            link = &(*link)->process_next;
        invariant(*link, "a member that is placed is in the list of its process");
        *link = member->process_next;
    }
    member->is_placed = true;
    member->process_next = to->members;
    to->members = member;
    return true;
}

/* Members that are at one number must have one hash there. */
static void compare_hash(struct hub_comm *comm, int level, uint64_t number, uint64_t hash)
{
    struct hub_mark *mark = &comm->mark[level];
    if (!hash || !number || number < mark->number)
        return;
    if (number == mark->number && hash != mark->hash)
        comm->differs = true;
    if (number > mark->number)
        *mark = (struct hub_mark){number, hash};
}

static void note_digest(struct hub *hub, struct hub_host *host, const struct item_digest *digest)
{
    struct hub_member *member = find_member_of_job(hub, host, digest);
    if (!member) {
        hub_refuse_for_memory(hub, host);
        return;
    }
    if (member->host != host && !member->host->is_last && !member->host->silent) {
        hub_refuse(hub, host, "it has a rank that is on another host");
        return;
    }
    bool is_there = member->is_placed && member->host == host &&
                    member->digest.process == digest->process;
    if (!is_there && !place_member(hub, host, digest->process, member)) {
        hub_refuse_for_memory(hub, host);
        return;
    }
    member->host = host;
    member->digest = *digest;
    member->changed = true;
    if (digest->nranks > member->comm->nranks)
        member->comm->nranks = digest->nranks;
    for (int level = 0; level < DIGEST_LEVELS; level++)
        compare_hash(member->comm, level,
                     digest->issued / digest_level[level] * digest_level[level],
                     digest->level_hash[level]);
    compare_hash(member->comm, DIGEST_LEVELS, digest->issued, digest->hash);
}

static void take_symbol(struct hub *hub, struct hub_host *host, int process,
                        const struct item_symbol *item)
{
    struct hub_symbol key = {.key = {item->address, process}}, *symbol;
    if (item->module[0])
        store_symbol(hub->store, process, item->address, item->module, item->function,
                     item->file[0] ? item->file : NULL, item->line, NULL);
    TABLE_FIND(hub->symbols, &key.key, symbol);
    if (symbol)
        return;
    symbol = calloc(1, sizeof *symbol);
    if (symbol) {
        symbol->key = key.key;
        TABLE_ADD(hub->symbols, key, symbol);
    }
    if (!symbol || !TABLE_ADDED(symbol)) {
        free(symbol);
        hub_refuse_for_memory(hub, host);
    }
}

bool hub_has_names(const struct hub *hub, struct trace *trace, const struct finding_side *side)
{
    struct frame frame[SITE_FRAMES_MAX];
    if (!side->stack || side->process < 0)
        return true;
    int count = trace_frames(trace, side->process, side->stack, side->stack_is_address, frame,
                             SITE_FRAMES_MAX);
    for (int i = 0; i < count; i++) {
        struct hub_symbol key = {.key = {frame[i].address, side->process}}, *symbol;
        if (!frame[i].address)
            continue;
        TABLE_FIND(hub->symbols, &key.key, symbol);
        if (!symbol)
            return false;
    }
    return count > 0;
}

void hub_take_item(struct hub *hub, struct hub_host *host, const struct message_item *item)
{
    struct hub_process *process;
    switch (item->kind) {
    case ITEM_PROCESS:
        add_hub_process(hub, host, &item->process);
        break;
    case ITEM_SYMBOL:
        if ((process = hub_process_find(host, item->symbol.process)))
            take_symbol(hub, host, process->number, &item->symbol);
        break;
    case ITEM_INLINED:
        if ((process = hub_process_find(host, item->inlined.process)))
            store_inlined(hub->store, process->number, item->inlined.address,
                          (int)item->inlined.depth, item->inlined.function, item->inlined.file,
                          item->inlined.line, NULL);
        break;
    case ITEM_RECORD:
        hub_take_text(hub, host, &item->record);
        break;
    case ITEM_SIDE:
        hub_take_side(hub, host, &item->side);
        break;
    case ITEM_FINDING:
        hub_take_finding(hub, host, &item->finding);
        break;
    case ITEM_BEAT:
        /* One that ended may have a successor. */
        if (!host->is_last)
            host->last_ns = hub->now_ns;
        host->is_last = (item->beat.flags & BEAT_LAST) != 0;
        host->findings_sent = item->beat.findings;
        hub_take_clock(hub, host, item->beat.realtime_ns);
        break;
    case ITEM_DIGEST:
        note_digest(hub, host, &item->digest);
        break;
    case ITEM_STATE:
        /* It may come before the process is announced, and is sent once. */
        if ((process = reserve_process(hub, host, item->state.process)))
            process->state = item->state;
        else
            hub_refuse_for_memory(hub, host);
        break;
    default:
        hub_refuse(hub, host, "it has what hosts don't send");
    }
}

void hub_hosts_free(struct hub *hub)
{
    struct hub_symbol *symbol, *next_symbol;
    HASH_ITER(hh, hub->symbols, symbol, next_symbol) {
        HASH_DEL(hub->symbols, symbol);
        free(symbol);
    }
    struct hub_member *member, *next_member;
    HASH_ITER(hh, hub->members, member, next_member) {
        HASH_DEL(hub->members, member);
        free(member);
    }
    struct hub_comm *comm, *next_comm;
    HASH_ITER(hh, hub->comms, comm, next_comm) {
        HASH_DEL(hub->comms, comm);
        free(comm);
    }
    struct hub_host *host, *next_host;
    HASH_ITER(hh, hub->hosts, host, next_host) {
        HASH_DEL(hub->hosts, host);
        free(host->process);
        free(host);
    }
}
