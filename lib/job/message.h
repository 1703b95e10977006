/* message.h: what the collectors of a job and its hub send each other (transport.h carries it).
 *
 * A message is a header and items, each of a kind (messages.def) with a struct of fixed size, in
 * the byte order of the machine (all that run CUDA are little-endian), as records are in a
 * database. Nothing of a message is trusted: the reader checks version, lengths, kinds, ranges and
 * that texts end, before anybody sees an item. */
#ifndef DDPCHECK_MESSAGE_H
#define DDPCHECK_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/job/transport.h"
#include "lib/trace/call.h"
#include "lib/trace/record.h"
#include "lib/trace/ring.h"

enum { MESSAGE_VERSION = 3 };

enum item_kind {
#define MESSAGE_ITEM(number, name, type) ITEM_##name = number,
#include "lib/job/messages.def"
#undef MESSAGE_ITEM
};

/* Processes are numbered by their host, 0, 1, 2, ..., in all that follows. */
enum { ITEM_PROCESSES_MAX = 1 << 16 };

struct item_process {
    uint32_t process, reserved;
    struct process_info info;
};

struct item_record {
    uint32_t process, reserved;
    struct record record;
};

/* The name of an address, where the host could find one. */
struct item_symbol {
    uint32_t process;
    int32_t line; /* 0: not known */
    uint64_t address;
    char module[256], function[256], file[256]; /* "": not known */
};

struct item_inlined {
    uint32_t process;
    int32_t line; /* 0: not known */
    uint64_t address;
    uint32_t depth, reserved; /* from 1 */
    char function[256], file[256];
};

/* A finding that the host's own analysis has made (lib/finding/finding.h), in one message behind
 * its sides, in their order. One with the id of an earlier one of the host takes its place. Before
 * it, in records, come the strings and stacks that its sides name. */
enum { ITEM_SIDES_MAX = 8, ITEM_RANKS_MAX = 1 << 20, ITEM_NO_PROCESS = -1 };
enum { HOST_FINDINGS_MAX = 256 }; /* that a host sends; it reports more by itself */
enum {
    ITEM_FINDING_NUMBER = 1,      /* has_number */
    ITEM_FINDING_CONSEQUENCE = 2, /* is_consequence */
    ITEM_FINDING_RANKS = 4,       /* merges_ranks */
    ITEM_FINDING_SIDES = 8        /* merges_sides */
};
struct item_finding {
    uint64_t comm, number, first_ns, last_ns, times, fingerprint;
    uint32_t id;
    uint8_t severity, certainty, state, flags; /* flags: ITEM_FINDING_* */
    char code[8];
    char what[2048], todo[2048];
};

struct item_awaited {
    uint64_t comm, number;
    struct called call;
    char kind[16], title[64]; /* kind: a key of lib/finding/act.h */
};

struct item_act {
    uint64_t number;
    int32_t value, rank;
    struct called call;
    struct item_awaited wait, behind;
    char did[32]; /* a key of lib/finding/acts.def */
    char name[256], phase[256];
};

enum { ITEM_SIDE_ADDRESS = 1, ITEM_SIDE_WHERE_ADDRESS = 2 }; /* the stack is an address */
struct item_side {
    int32_t process; /* or ITEM_NO_PROCESS */
    uint32_t flags;  /* ITEM_SIDE_* */
    uint64_t stack, where_stack, since_ns;
    struct item_act act, now;
    char ranks[512], phase[256]; /* ranks: "0-6,8", or "none" */
};

enum {
    BEAT_LAST =
        1 /* the host's collector ends: it will send no more, and answer until it has gone */
};

struct item_beat {
    uint64_t realtime_ns; /* the host's clock */
    uint32_t processes;   /* that run */
    uint32_t flags;       /* BEAT_* */
    uint32_t findings;    /* that it has sent */
    uint32_t reserved;
};

/* Hashes of what a member issued are of all operations below a number, so two members that agree at
 * one number agree in all below it. Each digest has the hash at the last multiples of three
 * numbers, so that members that are not far from each other have one in common. */
enum { DIGEST_LEVELS = 3 };
static const uint64_t digest_level[DIGEST_LEVELS] = {256, 2048, 16384};
enum { DIGEST_GONE = 1 }; /* all members of the host have destroyed the communicator */

struct item_digest {
    uint64_t comm;
    int32_t rank, nranks; /* nranks -1: not known */
    uint32_t process;
    uint32_t flags;                 /* DIGEST_* */
    uint64_t issued, started, done; /* collectives */
    uint64_t hash;                  /* below `issued` */
    uint64_t level_hash[DIGEST_LEVELS];
};

enum {
    STATE_ENDED = 1, /* notice_end is among its records */
    STATE_INIT = 2   /* it waits in ncclCommInit*, for ranks that may be on any host */
};
struct item_state {
    uint32_t process;
    uint32_t flags;    /* STATE_* */
    uint64_t waits_ns; /* how long a thread has been in a call that may block, or an operation
                          or a set-up has been going on in the background, while none of its
                          members got on; 0 none */
    uint64_t position; /* behind its last record: item_want */
};

/* Records have positions in their process, 0, 1, 2, ..., as its collector took them. Those far back
 * may be left out: what they left behind is then sent in their place. */
enum {
    WANT_AGAIN = 1, /* the hub has nothing of this process */
    WANT_ALL = 2,   /* nothing is left out that is still there */
    WANT_FEW = 4    /* the job has many: only the last, and those that say what is not done */
};
struct item_want {
    uint32_t process;
    uint32_t flags; /* WANT_* */
    uint64_t from;  /* position */
};

/* Ends the records of `process` in an answer. Where `to` is `end`, all that happened on the host
 * until known_ns is in what was sent so far. */
struct item_tail {
    uint32_t process, reserved;
    uint64_t from, to, end; /* positions */
    uint64_t known_ns;      /* the host's CLOCK_MONOTONIC */
};

enum { NEWS_TEXT_BYTES = 2048 };
struct item_news {
    uint64_t comm, fingerprint; /* as in item_finding */
    uint64_t realtime_ns; /* when it was sent, by the hub's clock: those of an earlier job are kept,
                             too */
    uint32_t id;          /* of the hub's finding: a later one with the same id takes its place */
    uint8_t severity, certainty, state, reserved;
    char code[8];
    char location[256];
    char text[NEWS_TEXT_BYTES];
    char asked[512]; /* ranks of an error whose hosts shall find out where they stand: "0-6,8" */
    char details[NEWS_TEXT_BYTES]; /* lines that a terminal shows below an error */
};

/* The hub's database is read as an image: its pages at one moment, which has a version. A reader
 * that has version V asks for what changed since, page by page, and has the next version once all
 * answers are of one; else it asks again, with the version of the first. */
enum { ITEM_PAGE_BYTES = 4096, ITEM_PAGES_MAX = 1 << 18 /* 1 GB */ };
struct item_view {
    uint64_t image;   /* which the reader has; 0 none: all pages are wanted */
    uint64_t version; /* of it */
    uint32_t page;    /* 1, 2, ...: those before it came in earlier answers */
    uint32_t reserved;
};

/* Ends an answer. */
struct item_image {
    uint64_t image;   /* another one: nothing of the earlier one holds */
    uint64_t version; /* that the pages of this answer have */
    uint32_t pages;   /* of the whole; 0: it has more than ITEM_PAGES_MAX */
    uint32_t next;    /* page to go on with; 0: that was all */
};

struct item_page {
    uint32_t page, reserved;
    unsigned char data[ITEM_PAGE_BYTES];
};

/* What the hub can take. Signs of life come each second all the same. */
#define PACE_USUAL_NS UINT64_C(500000000)
#define PACE_MOST_NS  UINT64_C(8000000000)
struct item_pace {
    uint64_t digest_every_ns; /* PACE_USUAL_NS ... PACE_MOST_NS */
};

/* The host with this rank reports what the hub sends, also what it has sent since then. Before the
 * first of these that is the host with rank 0. */
struct item_reporter {
    uint64_t realtime_ns; /* when it was sent, by the hub's clock */
    uint64_t since_ns;    /* by the hub's clock; 0: everything */
    int32_t rank;
    uint32_t reserved;
};

/* The hub has dropped some host's finding: each host reports what the hub has not. */
struct item_full {
    uint64_t realtime_ns; /* when it was sent, by the hub's clock */
};

/* What is to be added to the host's CLOCK_REALTIME to have the hub's; 0: less than a second. */
struct item_clock {
    int64_t offset_ns;
};

/* A host that ends goes on to report for so long. */
#define REPORTER_LISTENS_NS UINT64_C(3000000000)

/* A message that is being written. Zero-initialised is empty; free what `data` holds. */
struct message_writer {
    unsigned char *data;
    size_t bytes, capacity;
    bool failed;     /* memory was short, or there was no room: it is not complete */
    uint64_t sender; /* that the caller sets, once; stays when it is empty again */
};

/* Appends an item; `item` is the struct of its kind. False if it did not fit: send the message and
 * begin a new one. */
bool message_add(struct message_writer *writer, enum item_kind kind, const void *item);
bool message_is_empty(const struct message_writer *writer);
/* Empty again; its memory is kept. */
void message_clear(struct message_writer *writer);
void message_free(struct message_writer *writer);

/* A message that is being read; the bytes stay the caller's. */
struct message_reader {
    const unsigned char *data;
    size_t bytes, next;
    uint64_t sender; /* a secret of the host that wrote it, and of the hub; 0 none */
};

struct message_item {
    enum item_kind kind;
    union {
        struct item_process process;
        struct item_record record;
        struct item_symbol symbol;
        struct item_inlined inlined;
        struct item_side side;
        struct item_finding finding;
        struct item_beat beat;
        struct item_digest digest;
        struct item_state state;
        struct item_want want;
        struct item_tail tail;
        struct item_news news;
        struct item_view view;
        struct item_image image;
        struct item_page page;
        struct item_pace pace;
        struct item_reporter reporter;
        struct item_full full;
        struct item_clock clock;
    };
};

/* Checks the header and the lengths of all items. Returns 0, or -1 with err: what is wrong (the
 * message is not to be used). */
int message_open(struct message_reader *reader, const void *data, size_t bytes, struct error *err);
/* Copies the next item. Returns 1, 0 at the end, or -1 with err: its fields make no sense. Kinds of
 * a newer version are passed over. */
int message_next(struct message_reader *reader, struct message_item *item, struct error *err);

#endif
