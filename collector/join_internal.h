/* join_internal.h: what the files of join share. */
#ifndef DDPCHECK_JOIN_INTERNAL_H
#define DDPCHECK_JOIN_INTERNAL_H

#include "analyzer/model/table.h"
#include "collector/join.h"

enum { TAIL_RECORDS = 8192, TAIL_NEAR = 512, TAIL_FEW = 8 };

/* Facts and answers come to the hub on different ways, so each has the texts that it names. */
enum { SENT_IN_ANSWER = 1, SENT_AS_FACT = 2 };

/* An interned string or a stack: the notices of its pieces. */
struct join_text {
    uint64_t id;
    struct record *piece;
    uint32_t pieces, capacity;
    unsigned char sent; /* SENT_* */
    UT_hash_handle hh;
};

/* What a thread did last, and in which NVTX range (a string id; 0 none). */
struct join_thread {
    uint32_t thread;
    struct record last; /* ENTER or LEAVE */
    uint64_t position;
    uint64_t last_phase;      /* of the last ENTER */
    uint64_t phase, phase_ns; /* now, since when */
    uint64_t sent_phase;      /* what the hub takes it to be in */
    bool has_sent;            /* some range */
    bool is_doubtful;         /* whether the hub got the last of it */
    UT_hash_handle hh;
};

struct join_slot {
    uint32_t slot;
    struct record progress; /* the last of it */
    uint64_t position;      /* of the process when it came */
    UT_hash_handle hh;
};

struct join_member_key {
    uint64_t comm;
    int64_t rank;
};

/* A communicator of members here. */
struct join_comm {
    uint64_t id;
    int members, nranks; /* nranks: -1 not known */
    bool is_sent_all;    /* the hub has a digest of one of them, so it is sent all */
    UT_hash_handle hh;
};

struct join_member {
    struct join_member_key key;
    int process;
    struct record made, name;      /* notice_member, notice_comm_name; api 0: none */
    struct member_numbers numbers; /* as the analyzer had them last */
    uint64_t hashed, hash, level_hash[DIGEST_LEVELS]; /* of the first `hashed` operations */
    struct item_digest sent;                          /* last */
    bool is_over;      /* all members were destroyed; its last digest is sent */
    bool is_answered;  /* an answer had something of it */
    uint64_t position; /* behind its last operation, of the process's records */
    struct join_comm *comm;
    struct join_member *process_next, *process_prev;
    UT_hash_handle hh;
};

struct join_process {
    struct process_info info;
    struct record *tail;     /* ring by position */
    uint64_t *phase;         /* ring by position: phase of each ENTER */
    uint32_t capacity, most; /* records */
    uint64_t first, end;     /* positions that it holds: first .. end - 1 */
    uint64_t answered;       /* up to where the last answer went: its texts were sent */
    uint64_t had;            /* up to where the hub had all when it asked last */
    struct join_text *texts;
    struct join_thread *threads;
    struct join_slot *slots;
    struct join_member *members;
    struct record lost;    /* the last notice_lost; api 0: none */
    struct record *stream; /* notices and calls that made or ended streams */
    uint32_t streams;
    uint64_t moved_ns; /* when one of its members got on last */
    struct background_waits background;
    bool keeps_ticks, announced, ended, ended_sent;
    struct item_state sent; /* last */
};

struct join_symbol {
    struct {
        uint64_t address;
        int64_t process;
    } key;
    uint64_t noted_ns;
    bool sent;
    UT_hash_handle hh;
};

/* A finding of the host, as it is. */
struct join_finding {
    uint32_t id;
    struct finding finding;
    bool is_due;    /* to be sent */
    bool is_sent;   /* some state of it was */
    bool is_hidden; /* nobody wants it */
    UT_hash_handle hh;
};

struct join {
    struct error failure; /* of the connection, for good */
    struct error refusal; /* of the last message that made no sense */
    struct join_options options;
    struct join_process **process;
    size_t process_room;
    int processes;
    struct join_member *members;
    struct join_comm *comms;
    struct join_finding *findings;
    struct join_symbol *symbols; /* that stacks which were sent have */
    bool symbols_wait;           /* some are not sent */
    struct message_writer writer, facts;
    uint64_t digest_ns, beat_ns, symbols_ns, asked_ns; /* when each was last */
    uint64_t digest_every_ns;                          /* as the hub said; 0: it did not */
    uint64_t known_ns, now_ns;                         /* now_ns: of this pass */
    uint64_t lost_ns;                                  /* since when; 0: the hub is connected */
    bool writes_facts;                                 /* not an answer */
    bool is_last, is_over;                             /* this host's part ends; the job is over */
};

/* join_members.c: makes the member if it is not there; NULL when memory is short. */
struct join_member *join_member_get(struct join *join, int process, uint64_t comm, int rank);
/* After its digest was written: notes whether it is over. Returns whether it may be freed. */
bool join_member_is_settled(const struct join *join, struct join_member *member);
void join_member_free(struct join *join, struct join_member *member);
void join_members_free(struct join *join);

/* join_tail.c */
int join_tail_feed(struct join_process *process, const struct record *record, uint64_t phase);
struct record *join_tail_record(const struct join_process *process, uint64_t position);
void join_tail_free(struct join_process *process);

/* join_answer.c: writes what a request wants of a process into join->writer, as far as there is
 * room. */
void join_answer_write(struct join *join, const struct item_want *want);
void join_write_record(struct join *join, int number, const struct record *record);
/* A string or stack that a record names, and what it refers to, unless the hub has it. */
void join_write_text(struct join *join, int number, uint64_t id, const struct record *named_by);

/* join_phases.c: in which range the thread of an ENTER is, after the analyzer was fed it; else 0.
 * Notes ranges that begin and end. */
uint64_t join_phase_of(struct join_process *process, const struct analyzer *analyzer, int number,
                       const struct record *record);
/* Before an ENTER of that phase is written: lets the hub know. */
void join_write_phase(struct join *join, int number, const struct record *record, uint64_t phase);
/* Lets the hub know in which ranges those threads are that make no call from a position on, and
 * have been in these since time_ns. */
void join_write_phases(struct join *join, int number, uint64_t position, uint64_t time_ns);
/* What was sent may not have come. */
void join_doubt_phases(struct join_process *process);

/* join_symbols.c: the hub has this address in a stack. */
void join_note_address(struct join *join, int number, uint64_t address);
/* Sends names of addresses that the hub has stacks of, as far as they are known; of those that have
 * none, that. */
void join_send_symbols(struct join *join, uint64_t now_ns);

/* join_findings.c: what was sent may not have come. */
void join_resend_findings(struct join *join);
/* How many findings were sent, in whatever states. */
uint32_t join_count_sent(const struct join *join);
void join_findings_free(struct join *join);

/* join.c: sends the facts that wait. */
void join_flush(struct join *join, struct message_writer *writer, enum transport_channel channel);

#endif
