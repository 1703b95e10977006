/* hub_ask.c: which hosts are asked for records, and what they answer. */
#include <stdlib.h>
#include <string.h>

#include "hub/hub_internal.h"
#include "lib/base/array.h"
#include "lib/base/clock.h"

enum {
    ASKED_MOST = 256, /* hosts at a time: their answers wait in memory */
    LOOK_PACE = 10    /* in a large job choosing whom to ask takes 1 / LOOK_PACE of the time */
};
static const uint64_t stalled_ns = 500000000;   /* a wait that is worth a question */
static const uint64_t ask_every_ns = 500000000; /* while it lasts */
static const uint64_t look_every_ns = 20000000; /* in a large job, at most */
static const uint64_t answer_within_ns = 2000000000;

/* The hosts of a communicator, since its members' waits are for each other. */
static void want_comm(struct hub_comm *comm)
{
    if (comm->waited_for)
        return;
    comm->waited_for = true;
    for (struct hub_member *member = comm->members; member; member = member->comm_next)
        member->host->wanted = true;
}

static bool is_stalled(const struct hub_process *process)
{
    return process->known && process->state.waits_ns >= stalled_ns;
}

/* A process that waits in a set-up, or before it is a member of anything known, waits for one that
 * could be on any host. */
static bool want_all_hosts(struct hub *hub)
{
    for (struct hub_host *host = hub->hosts; host; host = host->hh.next)
        host->wanted = true;
    return true;
}

/* Marks the hosts that this waiting process may depend on. True if that is every host. */
static bool want_for_process(struct hub *hub, struct hub_host *host,
                             const struct hub_process *process)
{
    host->wanted = true;
    for (const struct hub_member *member = process->members; member; member = member->process_next)
        want_comm(member->comm);
    bool is_for_any = !process->members || process->state.flags & STATE_INIT;
    return is_for_any && want_all_hosts(hub);
}

static void want_for_waits(struct hub *hub)
{
    bool all = false;
    for (struct hub_comm *comm = hub->comms; comm; comm = comm->hh.next)
        comm->waited_for = false;
    for (struct hub_host *host = hub->hosts; host; host = host->hh.next)
        for (uint32_t i = 0; i < host->processes && !all; i++)
            all = is_stalled(&host->process[i]) && want_for_process(hub, host, &host->process[i]);
}

/* What the members called is asked for once: the analyzer finds the first call that differs. */
static void want_for_differences(struct hub *hub)
{
    for (struct hub_comm *comm = hub->comms; comm; comm = comm->hh.next)
        if (comm->differs && !comm->difference_asked) {
            comm->difference_asked = true;
            for (struct hub_member *member = comm->members; member; member = member->comm_next)
                member->host->wants_more = member->host->wants_all = true;
        }
}

/* How a process ended is among its records; the end of one can be the cause of others' waits. */
static bool has_unfed_end(const struct hub_host *host)
{
    for (uint32_t i = 0; i < host->processes; i++)
        if (host->process[i].known && host->process[i].state.flags & STATE_ENDED &&
            !host->process[i].end_fed)
            return true;
    return false;
}

/* Everything that happened on the host until then is known, of the processes that it was asked
 * about. */
static void feed_tick(struct hub *hub, struct hub_host *host, uint64_t known_ns)
{
    const struct record tick = {
        .time_ns = known_ns, .api = API_notice_tick, .device = RECORD_NO_DEVICE};
    if (!hub_round_reserve(hub, 1))
        return; /* the next one shows more */
    for (uint32_t i = 0; i < host->processes; i++)
        if (host->process[i].known) {
            hub_round_keep(hub, &host->process[i], &tick);
            return;
        }
}

/* All of its processes have ended, and their records are here: nothing happens there any more, but
 * the time passes. Whether their ends are the cause of a wait is judged by what follows them. */
static void feed_ended_host(struct hub *hub, struct hub_host *host, uint64_t now_ns)
{
    host->asked_ns = now_ns;
    if (host->known_ns)
        feed_tick(hub, host, host->known_ns + (now_ns - host->known_at_ns));
}

static void send_request(struct hub *hub, struct hub_host *host, uint64_t now_ns)
{
    message_clear(&hub->writer);
    for (uint32_t i = 0; i < host->processes; i++) {
        const struct hub_process *process = &host->process[i];
        struct item_want want = {.process = i, .from = process->position};
        if (!process->known || process->end_fed)
            continue;
        if (!process->has_tail)
            want.flags |= WANT_AGAIN;
        if (host->wants_all)
            want.flags |= WANT_ALL;
        else if (hub_is_large(hub))
            want.flags |= WANT_FEW;
        message_add(&hub->writer, ITEM_WANT, &want);
    }
    if (message_is_empty(&hub->writer)) {
        feed_ended_host(hub, host, now_ns);
        return;
    }
    host->request = ++hub->requests;
    host->asked_ns = now_ns;
    host->wants_more = false;
    hub->counts.requests++;
    transport_request(hub->options.transport, host->key, host->request, hub->writer.data,
                      hub->writer.bytes, NULL);
}

/* One that answers no more is asked again. Returns how many are to answer. */
static int count_asked(struct hub *hub, uint64_t now_ns)
{
    int asked = 0;
    for (struct hub_host *host = hub->hosts; host; host = host->hh.next) {
        if (host->request && now_ns - host->asked_ns >= answer_within_ns &&
            (!hub_is_large(hub) || now_ns - hub->round.answer_ns >= answer_within_ns))
            host->request = 0;
        asked += host->request != 0;
    }
    return asked;
}

static void ask_wanted(struct hub *hub, uint64_t now_ns)
{
    int asked = count_asked(hub, now_ns);
    for (struct hub_host *host = hub->hosts; host; host = host->hh.next) {
        bool due = host->wants_more || (!host->answered && now_ns - host->asked_ns >= ask_every_ns);
        bool is_next = (host->wanted || host->wants_more) && due && !host->request;
        host->in_line = is_next && asked >= ASKED_MOST;
        if (!is_next || host->in_line)
            continue;
        send_request(hub, host, now_ns);
        asked += host->request != 0;
    }
}

/* Goes through all members. */
static void find_wanted(struct hub *hub)
{
    uint64_t began_ns = monotonic_now_ns();
    for (struct hub_host *host = hub->hosts; host; host = host->hh.next)
        host->wanted = has_unfed_end(host);
    want_for_waits(hub);
    want_for_differences(hub);
    uint64_t pause_ns = LOOK_PACE * (monotonic_now_ns() - began_ns);
    hub->look_due_ns = hub->now_ns + (pause_ns > look_every_ns ? pause_ns : look_every_ns);
}

void hub_ask(struct hub *hub, uint64_t now_ns)
{
    bool is_every_step = !hub_is_large(hub);
    hub->has_looked = is_every_step || now_ns >= hub->look_due_ns;
    if (hub->has_looked)
        find_wanted(hub);
    if (!hub->has_looked && now_ns - hub->asked_ns < look_every_ns)
        return;
    hub->asked_ns = now_ns;
    ask_wanted(hub, now_ns);
}

static bool keep_answer(struct hub *hub, const struct item_record *record)
{
    if (!ARRAY_ADD(hub->answer, hub->answers))
        return false;
    hub->answer[hub->answers++] = *record;
    return true;
}

/* The records since the last tail are this process's, and are what was wanted. */
static void take_tail(struct hub *hub, struct hub_host *host, const struct item_tail *tail)
{
    struct hub_process *process = hub_process_find(host, tail->process);
    uint64_t expected = process && process->has_tail ? process->position : 0;
    if (!process || process->end_fed || (tail->from != expected && tail->from != 0))
        return;
    if (!hub_round_reserve(hub, hub->answers)) {
        hub_refuse_for_memory(hub, host);
        host->wants_more = true;
        return;
    }
    for (uint32_t i = 0; i < hub->answers; i++) {
        if (hub->answer[i].process != tail->process) {
            hub_refuse(hub, host, "it has records of a process that it was not asked for");
            continue;
        }
        hub_round_keep(hub, process, &hub->answer[i].record);
        process->end_fed |= hub->answer[i].record.api == API_notice_end;
    }
    process->has_tail = true;
    process->position = tail->to;
    host->wants_more |= tail->to < tail->end;
}

void hub_take_answer(struct hub *hub, struct hub_host *host,
                     const struct transport_message *message)
{
    struct message_reader reader;
    struct message_item item;
    uint64_t known_ns = 0;
    struct error err;
    int result = message_open(&reader, message->data, message->bytes, &err) < 0 ? -1 : 1;
    if (message->id != host->request)
        return; /* late, or nobody asked */
    if (result == 1 && !hub_is_of_host(hub, host, reader.sender))
        return;
    host->request = 0;
    hub->answers = 0;
    while (result == 1 && (result = message_next(&reader, &item, &err)) == 1) {
        if (item.kind == ITEM_RECORD && !keep_answer(hub, &item.record)) {
            hub_refuse_for_memory(hub, host);
            host->wants_more = true;
            return;
        }
        if (item.kind == ITEM_TAIL) {
            take_tail(hub, host, &item.tail);
            known_ns = item.tail.known_ns;
            hub->answers = 0;
        }
    }
    if (result < 0)
        hub_refuse(hub, host, err.text);
    if (host->wants_more)
        hub->round.answer_ns = hub->now_ns;
    if (result == 0 && known_ns && !host->wants_more) {
        hub->round.answer_ns = hub->now_ns;
        host->known_ns = known_ns;
        host->known_at_ns = hub->now_ns;
        feed_tick(hub, host, known_ns);
        host->answered = true;
        host->wants_all = false;
    }
}

bool hub_host_is_done(const struct hub_host *host)
{
    return host->silent || (host->is_last && !has_unfed_end(host) && !host->request &&
                            host->findings >= host->findings_sent);
}
