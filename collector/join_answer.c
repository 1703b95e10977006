/* join_answer.c: writes those of a process's last records that the hub wants. */
#include "collector/join_internal.h"
#include "lib/trace/names.h"

enum { ANSWER_ROOM = 1 << 16 }; /* left in a message for what must follow a record */

void join_write_record(struct join *join, int number, const struct record *record)
{
    const struct item_record item = {.process = (uint32_t)number, .record = *record};
    message_add(&join->writer, ITEM_RECORD, &item);
}

static void note_frames(struct join *join, int number, const struct record *piece)
{
    for (uint32_t i = 0; i < 8 && piece->frames.offset + i < piece->frames.count; i++)
        join_note_address(join, number, piece->frames.address[i]);
}

/* Stacks refer to strings and to native stacks, these to nothing. They get the record's place: with
 * a later one of their own, what follows would be taken for as late. */
void join_write_text(struct join *join, int number, uint64_t id, const struct record *named_by)
{
    struct join_process *process = join->process[number];
    struct join_text *text = NULL;
    if (id)
        TABLE_FIND(process->texts, &id, text);
    const unsigned char sent = join->writes_facts ? SENT_AS_FACT : SENT_IN_ANSWER;
    if (!text || text->sent & sent)
        return;
    text->sent |= sent;
    for (uint32_t i = 0; i < text->pieces; i++) {
        struct record piece = text->piece[i];
        if (piece.api == API_notice_stack)
            note_frames(join, number, &piece);
        if (piece.api == API_notice_python_stack) {
            join_write_text(join, number, piece.python.native, named_by);
            for (int frame = 0; frame < 3; frame++) {
                join_write_text(join, number, piece.python.file[frame], named_by);
                join_write_text(join, number, piece.python.function[frame], named_by);
            }
        }
        piece.time_ns = named_by->time_ns;
        piece.serial = named_by->serial;
        join_write_record(join, number, &piece);
    }
}

/* A record behind the texts that it names. */
static void write_with_texts(struct join *join, int number, const struct record *record)
{
    if (record->flags & RECORD_FLAG_ADDRESS)
        join_note_address(join, number, record->stack);
    else
        join_write_text(join, number, record->stack, record);
    if (record->phase == RECORD_LEAVE)
        join_write_text(join, number, record->leave.text, record);
    if (record->api == API_notice_thread_stack)
        join_write_text(join, number, record->standing.name, record);
    if (record->api == API_notice_dormant)
        join_write_text(join, number, record->range.text, record);
    if (record->api == API_notice_comm_name || record->api == API_notice_said ||
        record->api == API_notice_exception) {
        join_write_text(join, number, record->range.text, record);
        join_write_text(join, number, record->range.domain, record);
    }
    join_write_record(join, number, record);
}

static void write_call(struct join *join, int number, const struct record *record, uint64_t phase)
{
    if (record->phase == RECORD_ENTER)
        join_write_phase(join, number, record, phase);
    write_with_texts(join, number, record);
}

static void forget_sent(struct join_process *process)
{
    join_doubt_phases(process);
    for (struct join_text *text = process->texts; text; text = text->hh.next)
        text->sent &= (unsigned char)~SENT_IN_ANSWER;
}

/* The serial of the ncclGroupStart around an operation's call; 0 none, or another call. */
static uint64_t group_around(const struct record *record)
{
    enum api_class class = api_class_of(record->api);
    return class == CLASS_COLLECTIVE || class == CLASS_P2P ? record->op.group : 0;
}

/* As the analyzer has it (record_realtime). */
static uint64_t realtime_of(const struct join_process *process, const struct record *record)
{
    return record->time_ns + (process->info.realtime_ns - process->info.monotonic_ns);
}

/* A call of an operation that is not done, or the first one since something goes on in the
 * background. */
static bool begins_unfinished(struct join *join, const struct join_process *process,
                              const struct record *record)
{
    if (record->phase != RECORD_ENTER)
        return false;
    uint64_t since_ns = process->background.since_ns;
    if (since_ns && realtime_of(process, record) >= since_ns)
        return true;
    if (api_class_of(record->api) != CLASS_COLLECTIVE)
        return false;
    struct join_member key = {.key = {record->op.comm, record->op.rank}}, *member;
    TABLE_FIND(join->members, &key.key, member);
    return member && record->op.number >= member->numbers.done;
}

/* Where the records begin that say what is not done: the first call of an operation that is not,
 * with the group that it is of. */
static uint64_t find_start(struct join *join, const struct join_process *process, uint64_t most)
{
    uint64_t near = process->first;
    if (process->end - process->first > most)
        near = process->end - most;
    for (uint64_t at = process->first; at < near; at++) {
        const struct record *record = join_tail_record(process, at);
        if (!begins_unfinished(join, process, record))
            continue;
        uint64_t group = group_around(record);
        while (group && at > process->first && join_tail_record(process, at - 1)->serial >= group)
            at--;
        return at;
    }
    return near;
}

/* How many collectives a member had issued before the record at `start`. */
static uint64_t issued_before(const struct join_process *process, const struct join_member *member,
                              uint64_t start)
{
    for (uint64_t at = start; at < process->end; at++) {
        const struct record *record = join_tail_record(process, at);
        if (record->phase == RECORD_ENTER && record->op.comm == member->key.comm &&
            record->op.rank == member->key.rank && api_class_of(record->api) == CLASS_COLLECTIVE)
            return record->op.number;
    }
    return member->numbers.issued;
}

/* A member in place of the calls that made it, and how far it was. */
static void write_member(struct join *join, int number, const struct join_member *member,
                         uint64_t start)
{
    const struct join_process *process = join->process[number];
    struct record reached = {.api = API_notice_reached, .device = RECORD_NO_DEVICE};
    reached.time_ns = start < process->end ? join_tail_record(process, start)->time_ns
                                           : join->known_ns;
    if (member->made.api)
        join_write_record(join, number, &member->made);
    if (member->name.api)
        write_with_texts(join, number, &member->name);
    reached.reached.comm = member->key.comm;
    reached.reached.rank = (int32_t)member->key.rank;
    reached.reached.issued = issued_before(process, member, start);
    reached.reached.done = UINT64_MAX;
    if (reached.reached.issued)
        join_write_record(join, number, &reached);
}

/* What the records before `start` left behind: streams, members, calls that threads are in. */
static void write_before(struct join *join, int number, uint64_t start)
{
    struct join_process *process = join->process[number];
    if (process->lost.api)
        join_write_record(join, number, &process->lost);
    for (uint32_t i = 0; i < process->streams; i++)
        join_write_record(join, number, &process->stream[i]);
    for (struct join_member *member = process->members; member; member = member->process_next)
        write_member(join, number, member, start);
    for (struct join_thread *thread = process->threads; thread; thread = thread->hh.next)
        if (thread->position < start)
            write_call(join, number, &thread->last, thread->last_phase);
}

static void write_progress(struct join *join, int number, uint64_t from)
{
    struct join_process *process = join->process[number];
    for (struct join_slot *slot = process->slots; slot; slot = slot->hh.next)
        if (slot->position >= from)
            join_write_record(join, number, &slot->progress);
}

static void write_tail_record(struct join *join, int number, uint64_t position)
{
    const struct join_process *process = join->process[number];
    const struct record *record = join_tail_record(process, position);
    if (record->phase == RECORD_POINT) /* a tick, when the hub judges what holds; the end */
        join_write_phases(join, number, position, record->time_ns);
    write_call(join, number, record, process->phase[position % process->capacity]);
}

void join_answer_write(struct join *join, const struct item_want *want)
{
    struct join_process *process = join->process[want->process];
    int number = (int)want->process;
    bool again = want->flags & WANT_AGAIN || want->from > process->end;
    uint64_t from = again ? 0 : want->from, at = from;
    if (join->writer.bytes + ANSWER_ROOM > TRANSPORT_BYTES_MAX)
        return;
    process->had = from;
    if (again || from < process->answered)
        forget_sent(process);
    uint64_t most = want->flags & WANT_FEW ? TAIL_FEW : TAIL_NEAR;
    if (from < process->first || (!(want->flags & WANT_ALL) && process->end - from > most)) {
        uint64_t start = want->flags & WANT_ALL ? process->first : find_start(join, process, most);
        at = start > from ? start : from;
    }
    if (at > from)
        write_before(join, number, at);
    while (at < process->end && join->writer.bytes + ANSWER_ROOM < TRANSPORT_BYTES_MAX)
        write_tail_record(join, number, at++);
    if (at == process->end) {
        write_progress(join, number, from);
        join_write_phases(join, number, at, UINT64_MAX);
    }
    for (struct join_member *member = process->members; member; member = member->process_next)
        member->is_answered = true;
    process->answered = at;
    const struct item_tail tail = {.process = want->process,
                                   .from = from,
                                   .to = at,
                                   .end = process->end,
                                   .known_ns = join->known_ns};
    message_add(&join->writer, ITEM_TAIL, &tail);
}
