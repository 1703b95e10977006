/* join.c: a host's part in a job: announces processes, sends digests, answers the hub. */
#include "collector/join.h"

#include <stdlib.h>
#include <string.h>

#include "lib/trace/signature.h"
#include "collector/join_internal.h"
#include "lib/base/array.h"
#include "lib/base/clock.h"
#include "lib/base/hash.h"
#include "lib/trace/names.h"

static const uint64_t beat_every_ns = 1000000000;
static const uint64_t symbols_every_ns = 50000000;
static const uint64_t linger_ns = 500000000;        /* after the hub's last request */
static const uint64_t alone_after_ns = 10000000000; /* on a busy machine an attempt can fail */
enum { FINISH_POLL_MS = 20, ADDED_HASH = 1 };

struct join *join_new(const struct join_options *options)
{
    struct join *join = calloc(1, sizeof *join);
    if (!join)
        return NULL;
    join->options = *options;
    if (!join->options.tail_records)
        join->options.tail_records = TAIL_RECORDS;
    join->writer.sender = join->facts.sender = options->sender;
    return join;
}

void join_free(struct join *join)
{
    if (!join)
        return;
    join_members_free(join);
    struct join_symbol *symbol, *next_symbol;
    HASH_ITER(hh, join->symbols, symbol, next_symbol) {
        HASH_DEL(join->symbols, symbol);
        free(symbol);
    }
    join_findings_free(join);
    for (int i = 0; i < join->processes; i++)
        if (join->process[i]) {
            join_tail_free(join->process[i]);
            free(join->process[i]);
        }
    free(join->process);
    message_free(&join->writer);
    message_free(&join->facts);
    free(join);
}

const char *join_failure(const struct join *join)
{
    return join->failure.text;
}

const char *join_refusal(const struct join *join)
{
    return join->refusal.text;
}

void join_flush(struct join *join, struct message_writer *writer, enum transport_channel channel)
{
    if (!message_is_empty(writer))
        transport_publish(join->options.transport, channel, writer->data, writer->bytes, NULL);
    message_clear(writer);
}

static void add_item(struct join *join, struct message_writer *writer,
                     enum transport_channel channel, enum item_kind kind, const void *item)
{
    if (message_add(writer, kind, item))
        return;
    join_flush(join, writer, channel);
    message_add(writer, kind, item);
}

int join_add_process(struct join *join, int process, const struct process_info *info)
{
    if (process < 0 || process >= ITEM_PROCESSES_MAX)
        return 0; /* the hub would refuse it */
    if (!ARRAY_RESERVE(join->process, join->process_room, process + 1))
        return -1;
    if (process >= join->processes)
        join->processes = process + 1;
    if (join->process[process])
        return 0;
    if (!(join->process[process] = calloc(1, sizeof **join->process)))
        return -1;
    join->process[process]->info = *info;
    join->process[process]->most = join->options.tail_records;
    join->process[process]->keeps_ticks = join->options.keeps_ticks;
    return 0;
}

/* The hash of all operations so far, and of those below the last multiples. One that is missing
 * makes the hash useless: then it stays where it was. */
static void hash_operation(struct join_member *member, const struct record *record)
{
    struct signature signature;
    if (record->op.number != member->hashed)
        return;
    signature_of(record, &signature);
    member->hash = hash_word(member->hash + ADDED_HASH, signature_hash(&signature));
    member->hashed++;
    for (int i = 0; i < DIGEST_LEVELS; i++)
        if (member->hashed % digest_level[i] == 0)
            member->level_hash[i] = member->hash;
}

static int feed_members(struct join *join, int process, const struct record *record)
{
    struct join_member *member;
    bool is_enter = record->phase == RECORD_ENTER;
    if (record->api == API_notice_member && record->comm.comm && record->comm.rank >= 0) {
        if (!(member = join_member_get(join, process, record->comm.comm, record->comm.rank)))
            return -1;
        member->made = *record;
        if (member->numbers.nranks < 0)
            member->numbers.nranks = member->comm->nranks = record->comm.nranks;
    }
    if (is_enter && api_class_of(record->api) == CLASS_COLLECTIVE && record->op.comm &&
        record->op.rank >= 0 && !(record->flags & (RECORD_FLAG_CAPTURE | RECORD_FLAG_GONE))) {
        if (!(member = join_member_get(join, process, record->op.comm, record->op.rank)))
            return -1;
        member->position = join->process[process]->end + 1;
        hash_operation(member, record);
    }
    return 0;
}

int join_feed(struct join *join, const struct analyzer *analyzer, int process,
              const struct record *record)
{
    if (process < 0 || process >= join->processes || !join->process[process])
        return 0;
    struct join_process *joined = join->process[process];
    if (record->api == API_notice_end)
        joined->ended = true;
    if (record->api == API_notice_comm_name)
        for (struct join_member *member = joined->members; member; member = member->process_next)
            if (member->key.comm == record->range.id)
                member->name = *record;
    uint64_t phase = join_phase_of(joined, analyzer, process, record);
    return feed_members(join, process, record) || join_tail_feed(joined, record, phase) ? -1 : 0;
}

static void announce_processes(struct join *join)
{
    for (int i = 0; i < join->processes; i++) {
        struct join_process *process = join->process[i];
        if (!process || process->announced)
            continue;
        const struct item_process item = {.process = (uint32_t)i, .info = process->info};
        process->announced = true;
        add_item(join, &join->facts, CHANNEL_FACTS, ITEM_PROCESS, &item);
    }
    join_flush(join, &join->facts, CHANNEL_FACTS);
}

static void announce_again(struct join *join)
{
    join->digest_ns = join->beat_ns = 0;
    for (int i = 0; i < join->processes; i++)
        if (join->process[i]) {
            join->process[i]->announced = false;
            join->process[i]->sent = (struct item_state){0};
        }
    for (struct join_symbol *symbol = join->symbols; symbol; symbol = symbol->hh.next) {
        symbol->sent = false;
        join->symbols_wait = true;
    }
    for (struct join_member *member = join->members; member; member = member->hh.next)
        member->sent = (struct item_digest){0};
    join_resend_findings(join);
}

static bool may_block(const struct record *record)
{
    enum api_class class = api_class_of(record->api);
    return record->phase == RECORD_ENTER && !(record->flags & RECORD_FLAG_OVER) &&
           (class == CLASS_COLLECTIVE || class == CLASS_P2P || class == CLASS_GROUP ||
            class == CLASS_COMM || class == CLASS_WAIT);
}

static bool process_waits(const struct join_process *process)
{
    if (process->background.since_ns)
        return true;
    for (const struct join_member *member = process->members; member; member = member->process_next)
        if (member->numbers.issued > member->numbers.done)
            return true;
    for (const struct join_thread *thread = process->threads; thread; thread = thread->hh.next)
        if (may_block(&thread->last))
            return true;
    return false;
}

static bool is_in_init(const struct join_thread *thread)
{
    return may_block(&thread->last) && (thread->last.api == API_ncclCommInitRank ||
                                        thread->last.api == API_ncclCommInitRankConfig ||
                                        thread->last.api == API_ncclCommInitRankScalable);
}

static bool process_initialises(const struct join_process *process)
{
    if (process->background.initialises)
        return true;
    for (const struct join_thread *thread = process->threads; thread; thread = thread->hh.next)
        if (is_in_init(thread))
            return true;
    return false;
}

static void add_state(struct join *join, int number, uint64_t now_ns)
{
    struct join_process *process = join->process[number];
    struct item_state state = {.process = (uint32_t)number, .position = process->end};
    if (process->ended)
        state.flags = STATE_ENDED;
    else if (process_waits(process)) {
        state.waits_ns = now_ns - process->moved_ns;
        state.flags = process_initialises(process) ? STATE_INIT : 0;
    }
    if (memcmp(&state, &process->sent, sizeof state) == 0 ||
        (!state.flags && !state.waits_ns && !process->sent.waits_ns))
        return;
    process->sent = state;
    add_item(join, &join->writer, CHANNEL_DIGESTS, ITEM_STATE, &state);
}

bool join_has_rank(const struct join *join, int rank)
{
    for (int i = 0; i < join->processes; i++)
        if (join->process[i] && join->process[i]->info.rank == rank)
            return true;
    return false;
}

bool join_has_rank_of(const struct join *join, int first, int last)
{
    for (int i = 0; i < join->processes; i++) {
        const struct join_process *process = join->process[i];
        if (process &&
            (process->info.rank < 0 || (process->info.rank >= first && process->info.rank <= last)))
            return true;
    }
    return false;
}

bool join_has_hub(const struct join *join)
{
    bool may_return = !join->is_last && join->now_ns - join->lost_ns < alone_after_ns;
    return !*join->failure.text && (!join->lost_ns || may_return) && !join_is_unkept(join);
}

bool join_is_unkept(const struct join *join)
{
    uint64_t since_ns = join->options.transport->unkept_ns;
    return since_ns && join->now_ns > since_ns && join->now_ns - since_ns >= alone_after_ns;
}

static void add_digest(struct join *join, struct join_member *member)
{
    struct item_digest digest = {.comm = member->key.comm,
                                 .rank = (int32_t)member->key.rank,
                                 .nranks = member->numbers.nranks,
                                 .process = (uint32_t)member->process,
                                 .flags = member->numbers.is_gone ? DIGEST_GONE : 0,
                                 .issued = member->numbers.issued,
                                 .started = member->numbers.started,
                                 .done = member->numbers.done};
    if (member->hashed == digest.issued)
        digest.hash = member->hash;
    if (member->hashed >= digest.issued)
        memcpy(digest.level_hash, member->level_hash, sizeof digest.level_hash);
    if (digest.started > digest.issued)
        digest.started = digest.issued;
    if (digest.done > digest.started)
        digest.done = digest.started;
    if (memcmp(&digest, &member->sent, sizeof digest) == 0)
        return;
    member->sent = digest;
    add_item(join, &join->writer, CHANNEL_DIGESTS, ITEM_DIGEST, &digest);
}

static void update_member(struct join *join, struct analyzer *analyzer, struct join_member *member,
                          uint64_t now_ns)
{
    struct member_numbers numbers = member->numbers;
    /* The analyzer was fed what made the member: one that it does not have is forgotten. */
    if (!analyzer_member_numbers(analyzer, member->key.comm, (int)member->key.rank, &numbers)) {
        numbers.is_gone = true;
        if (numbers.issued < member->hashed)
            numbers.issued = member->hashed;
        numbers.started = numbers.done = numbers.issued;
    }
    if (memcmp(&numbers, &member->numbers, sizeof numbers) != 0)
        join->process[member->process]->moved_ns = now_ns;
    member->numbers = numbers;
    member->comm->nranks = numbers.nranks;
}

static bool is_hubs(const struct join *join, const struct join_member *member)
{
    member->comm->is_sent_all |= join_spans_hosts(join, member->key.comm);
    return member->comm->is_sent_all;
}

static uint32_t count_living(const struct join *join)
{
    uint32_t living = 0;
    for (int i = 0; i < join->processes; i++)
        living += join->process[i] && !join->process[i]->ended;
    return living;
}

static void add_beat(struct join *join, uint64_t now_ns)
{
    const struct item_beat beat = {.realtime_ns = realtime_now_ns(),
                                   .processes = count_living(join),
                                   .flags = join->is_last ? BEAT_LAST : 0,
                                   .findings = join_count_sent(join)};
    join->beat_ns = now_ns;
    add_item(join, &join->writer, CHANNEL_DIGESTS, ITEM_BEAT, &beat);
}

static void add_digests(struct join *join, struct analyzer *analyzer, uint64_t now_ns)
{
    join->digest_ns = now_ns;
    for (struct join_member *member = join->members; member; member = member->hh.next)
        if (!member->is_over)
            update_member(join, analyzer, member, now_ns);
    for (int i = 0; i < join->processes; i++)
        if (join->process[i])
            analyzer_background_waits(analyzer, i, &join->process[i]->background);
    for (struct join_member *member = join->members; member; member = member->hh.next)
        if (is_hubs(join, member))
            add_digest(join, member);
    struct join_member *member, *next;
    HASH_ITER(hh, join->members, member, next)
        if (join_member_is_settled(join, member))
            join_member_free(join, member);
    for (int i = 0; i < join->processes; i++)
        if (join->process[i])
            add_state(join, i, now_ns);
}

/* A sign of life comes each second, at whatever pace the hub takes digests. */
static void send_digests(struct join *join, struct analyzer *analyzer, uint64_t now_ns)
{
    uint64_t every_ns = join->digest_every_ns ? join->digest_every_ns : PACE_USUAL_NS;
    if (now_ns - join->digest_ns >= every_ns)
        add_digests(join, analyzer, now_ns);
    if (now_ns - join->beat_ns >= beat_every_ns)
        add_beat(join, now_ns);
    join_flush(join, &join->writer, CHANNEL_DIGESTS);
}

void join_beat(struct join *join, uint64_t now_ns)
{
    if (now_ns - join->beat_ns < beat_every_ns)
        return;
    add_beat(join, now_ns);
    join_flush(join, &join->writer, CHANNEL_DIGESTS);
}

static void answer_request(struct join *join, const struct transport_message *message)
{
    struct message_reader reader;
    struct message_item item;
    struct error err;
    int result = message_open(&reader, message->data, message->bytes, &err) < 0 ? -1 : 1;
    message_clear(&join->writer);
    while (result == 1 && (result = message_next(&reader, &item, &err)) == 1) {
        if (item.kind == ITEM_WANT && (int)item.want.process < join->processes &&
            join->process[item.want.process])
            join_answer_write(join, &item.want);
        if (item.kind == ITEM_CLOCK && join->options.on_clock)
            join->options.on_clock(join->options.context, item.clock.offset_ns);
    }
    if (result < 0)
        join->refusal = err;
    if (!message_is_empty(&join->writer))
        transport_reply(join->options.transport, message->id, join->writer.data, join->writer.bytes,
                        NULL);
    message_clear(&join->writer);
}

static void take_news(struct join *join, const struct transport_message *message)
{
    struct message_reader reader;
    struct message_item item;
    struct error err;
    int result = message_open(&reader, message->data, message->bytes, &err) < 0 ? -1 : 1;
    while (result == 1 && (result = message_next(&reader, &item, &err)) == 1) {
        if (item.kind == ITEM_NEWS && join->options.on_news)
            join->options.on_news(join->options.context, &item.news);
        if (item.kind == ITEM_REPORTER && join->options.on_reporter)
            join->options.on_reporter(join->options.context, &item.reporter);
        if (item.kind == ITEM_FULL && join->options.on_full)
            join->options.on_full(join->options.context, &item.full);
        if (item.kind == ITEM_PACE)
            join->digest_every_ns = item.pace.digest_every_ns;
        join->is_over |= item.kind == ITEM_BEAT && item.beat.flags & BEAT_LAST && join->is_last;
    }
    if (result < 0)
        join->refusal = err;
}

/* Takes all that has come, waiting at most timeout_ms for the first. */
static void take_messages(struct join *join, int timeout_ms, uint64_t now_ns)
{
    struct transport_message message;
    while (transport_poll(join->options.transport, timeout_ms, &message, &join->failure) == 0 &&
           message.event != TRANSPORT_NOTHING) {
        timeout_ms = 0;
        if (message.event == TRANSPORT_REQUEST) {
            join->asked_ns = now_ns;
            answer_request(join, &message);
            join_send_symbols(join, now_ns); /* of what was answered */
        } else if (message.event == TRANSPORT_MESSAGE) {
            take_news(join, &message);
        } else if (message.event == TRANSPORT_LOST) {
            if (!join->lost_ns && !join->is_last) /* the hub may end with the job */
                join->lost_ns = now_ns;
        } else if (message.event == TRANSPORT_CONNECTED) {
            join->lost_ns = 0;
            announce_again(join);
        }
    }
}

void join_pass(struct join *join, struct analyzer *analyzer, uint64_t now_ns, uint64_t known_ns)
{
    join->now_ns = now_ns;
    if (known_ns)
        join->known_ns = known_ns;
    announce_processes(join);
    join_report_findings(join);
    send_digests(join, analyzer, now_ns);
    take_messages(join, 0, now_ns);
    if (now_ns - join->symbols_ns >= symbols_every_ns || join->is_last) {
        join->symbols_ns = now_ns;
        join_send_symbols(join, now_ns);
    }
}

static bool has_all(const struct join *join)
{
    for (int i = 0; i < join->processes; i++)
        if (join->process[i] && join->process[i]->answered < join->process[i]->end)
            return false;
    return true;
}

void join_finish(struct join *join, struct analyzer *analyzer, bool judged, uint64_t patience_ns)
{
    uint64_t began_ns = monotonic_now_ns(), now_ns = began_ns;
    join->is_last = true;
    join->digest_ns = join->beat_ns = 0;
    join_pass(join, analyzer, now_ns, now_ns);
    while (now_ns - began_ns < patience_ns) {
        take_messages(join, FINISH_POLL_MS, now_ns);
        now_ns = monotonic_now_ns();
        join_pass(join, analyzer, now_ns, 0);
        bool lingered = has_all(join) && join->asked_ns && now_ns - join->asked_ns > linger_ns;
        if (join->is_over || (lingered && !judged))
            break;
    }
}

void join_report_all(struct join *join, struct analyzer *analyzer, uint64_t known_ns)
{
    join->is_last = true;
    join->known_ns = known_ns;
    announce_processes(join);
    /* For the hub, a rank that waits at the end has waited since the end began. */
    for (struct join_member *member = join->members; member; member = member->hh.next)
        update_member(join, analyzer, member, 0);
    add_digests(join, analyzer, known_ns);
    add_beat(join, known_ns);
    join_flush(join, &join->writer, CHANNEL_DIGESTS);
}

void join_answer(struct join *join)
{
    take_messages(join, 0, join->known_ns);
}
