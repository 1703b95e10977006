/* hub_internal.h: what the hub's files share. */
#ifndef DDPCHECK_HUB_INTERNAL_H
#define DDPCHECK_HUB_INTERNAL_H

#include "analyzer/analyzer.h"
#include "analyzer/model/table.h"
#include "collector/batch.h"
#include "hub/hub.h"
#include "lib/trace/store.h"

struct collector_state;
struct image;
struct trace;

struct hub_comm;
struct hub_member;

/* A process of a host. */
struct hub_process {
    bool known;                  /* its ITEM_PROCESS has come */
    int number;                  /* in store and analyzer */
    int rank;                    /* that the launcher gave it; -1 none */
    uint64_t offset_ns, last_ns; /* realtime - monotonic; of the last record that was kept */
    bool has_tail;               /* records of it were fed */
    uint64_t position;           /* up to where */
    uint64_t begin_ns;           /* realtime of the first of them; 0 none */
    struct item_state state;
    bool end_fed;
    struct hub_member *members; /* that it has */
};

/* The hub's CLOCK_REALTIME less a host's, by signs of life: the least that was seen of the time of
 * receipt less that of sending, of the last CLOCK_BEATS to 2 * CLOCK_BEATS of them. */
struct hub_clock {
    int64_t least_ns, earlier_ns; /* of these beats; of the CLOCK_BEATS before */
    uint32_t beats;               /* that have come */
    int64_t applied_ns;           /* added to all times of the host; 0: less than a second */
    int64_t said_ns;              /* on stderr */
};

struct hub_host {
    char key[TRANSPORT_HOST_BYTES];
    char name[64]; /* that its processes give it; "" not known */
    struct hub_process *process;
    uint32_t processes, capacity;
    uint64_t known_ns;    /* until when all is known, by the host's CLOCK_MONOTONIC */
    uint64_t known_at_ns; /* when it said so, by the hub's */
    uint64_t heard_ns;    /* when its last digest came, CLOCK_MONOTONIC of the hub */
    uint64_t asked_ns;    /* when the request that is not answered was sent, else of the last */
    uint64_t request;     /* id of the request that is not answered; 0 none */
    bool lives;           /* it has sent more than facts, which may be an earlier job's */
    bool is_last;         /* it has said last that it ends */
    uint64_t last_ns;     /* since when */
    bool silent;
    bool wanted;     /* somebody waits for one of its ranks, or one of its ranks waits */
    bool wants_more; /* its last answer was not complete */
    bool answered;   /* in this round, all that it was asked for */
    bool in_line;    /* it is to be asked when others have answered */
    bool wants_all;  /* its members differ from others */
    bool is_refused; /* a message of it was, which is said once */
    bool is_bound;   /* to `sender` */
    uint64_t sender; /* what its messages have: only it and the hub know it */
    struct hub_clock clock;
    uint32_t findings, findings_sent; /* that have come; that it says it has sent */
    UT_hash_handle hh;
};

struct hub_member {
    struct {
        uint64_t comm;
        int64_t rank;
    } key;
    struct hub_host *host;
    struct item_digest digest;
    bool changed;   /* since the table member_state was written */
    bool is_placed; /* it is among the members of its process */
    struct hub_comm *comm;
    struct hub_member *comm_next, *process_next;
    UT_hash_handle hh;
};

/* The hash of some member at the highest number of a level that was heard of; the last level is
 * that of all operations issued. */
struct hub_mark {
    uint64_t number, hash;
};

struct hub_comm {
    uint64_t id;
    struct hub_member *members;
    int32_t known, nranks; /* members; ranks, -1: no host has said how many */
    struct hub_mark mark[DIGEST_LEVELS + 1];
    bool waited_for;                /* somebody waits for a member of it */
    bool is_over;                   /* every rank has destroyed it: it leaves (hub_members.c) */
    bool differs, difference_asked; /* two members' hashes do; their hosts were asked */
    UT_hash_handle hh;
};

/* A record of an answer that was not fed yet. */
struct hub_record {
    int process;
    uint64_t time_ns; /* realtime; not before those of its process that came before it */
    struct record record;
};

/* An address of a process whose name the host has sent, or that it has none. */
struct hub_symbol {
    struct {
        uint64_t address;
        int64_t process; /* in the store */
    } key;
    UT_hash_handle hh;
};

/* What hosts found that is one finding of the job. */
struct hub_fault {
    struct {
        uint64_t fingerprint, comm, sides;
        const struct hub_fact *alone; /* its ranks are not merged with others' */
    } key;
    uint32_t id; /* the analyzer's; 0 none yet */
    struct hub_fact *facts;
    bool changed;
    UT_hash_handle hh;
};

/* A finding of a host, as it was sent last; its processes are the hub's. */
struct hub_fact {
    struct {
        const struct hub_host *host;
        uint64_t id;
    } key;
    struct finding finding;
    struct hub_fault *fault; /* NULL: dropped */
    struct hub_fact *fault_next;
    UT_hash_handle hh;
};

/* A finding as it was reported last; the newest first. */
struct hub_news {
    struct finding finding; /* a copy */
    struct item_news sent;  /* code "": not sent yet */
    uint64_t sent_ns;       /* CLOCK_REALTIME of it */
    uint64_t since_ns;      /* when what is not sent came */
    bool changed;           /* since it was sent, or sent without all names */
    struct hub_news *next;
};

/* How often hosts send digests, by what these cost. */
struct hub_pace {
    uint64_t every_ns;         /* what they were asked for; 0: nothing yet */
    uint64_t since_ns, cpu_ns; /* when this is measured from; this thread's processor time then */
};

/* hub_reporter.c: the host that reports the findings. */
struct hub_reporter {
    int rank;          /* of a process of it */
    uint64_t since_ns; /* since when it is this one, CLOCK_REALTIME; 0: that was not sent */
    uint64_t due_ns;   /* when to look again whether it is there */
};

/* hub_round.c: the records of the answers that are not judged yet. */
struct hub_round {
    struct hub_record *record;
    size_t count, capacity;
    uint64_t since_ns, answer_ns; /* when the first record came, and the last answer */
};

/* hub_findings.c: what the hosts found. */
struct hub_found {
    struct hub_fact *facts;
    struct hub_fault *faults;
    struct item_side side[ITEM_SIDES_MAX]; /* of the finding that comes next */
    int sides;
    bool changed; /* some fault did since judged_ns, when all were judged last */
    uint64_t judged_ns;
    bool is_full, said_full; /* a finding of a host was dropped; the hosts know that */
};

/* hub_silence.c: what came from hosts, and when. */
struct hub_silence {
    bool has_heard_all; /* this step has taken all that had come */
    uint64_t heard_ns;  /* when a step did that last */
    uint64_t looked_ns; /* when silent hosts were searched last */
};

struct hub {
    struct hub_options options;
    char *database;
    struct store *store;
    struct analyzer *analyzer;
    struct collector_state *state;
    struct trace *trace;         /* the database, for source locations */
    struct image *image;         /* the same, for readers; NULL: none has come */
    uint64_t image_id, image_ns; /* which it is for readers; when it was taken last */
    struct record_batch *batch;
    struct hub_host *hosts;
    uint32_t slots; /* processes that these have room for */
    struct hub_member *members;
    struct hub_comm *comms;
    struct hub_news *news;
    struct hub_found found;
    struct hub_symbol *symbols;
    struct item_record *answer; /* records of one process, until its tail is complete */
    uint32_t answers;
    struct hub_round round;
    struct message_writer writer;
    struct hub_counts counts;
    uint64_t now_ns;         /* of this step */
    uint64_t members_due_ns; /* when member_state is written again */
    uint64_t requests;       /* id of the last */
    int refused_hosts;       /* that were said to be */
    struct hub_reporter reporter;
    uint64_t over_ns;     /* when the last host said that it ends; 0 not yet */
    struct error failure; /* of the store, while a message was taken */
    uint64_t look_due_ns; /* when to look again whom to ask */
    uint64_t asked_ns;    /* when some of these were asked last */
    bool has_looked;      /* in the last step: all who are to be asked were */
    struct hub_pace pace;
    struct hub_silence silence;
    bool said_memory, finished;
    bool is_lost; /* the hub's own connection: that it hears nobody says nothing of them */
};

/* hub_hosts.c: what hosts say of themselves. */
struct hub_host *hub_host_find(struct hub *hub, const char *key);
/* Whether a message is of the host that it names: the first one says what all have, until that host
 * has ended or is silent. One that is not is refused. */
bool hub_is_of_host(struct hub *hub, struct hub_host *host, uint64_t sender);
/* Counts a message that makes no sense, and says why, once for each host. */
void hub_refuse(struct hub *hub, struct hub_host *host, const char *why);
/* The same of one for which memory is short: it is dropped, and the hub goes on. */
void hub_refuse_for_memory(struct hub *hub, struct hub_host *host);
/* Counts what was dropped because memory is short, and says it once: the hub goes on without. */
void hub_drop_for_memory(struct hub *hub, const char *what);
/* NULL if the host has announced no such process. */
struct hub_process *hub_process_find(struct hub_host *host, uint32_t process);
void hub_take_item(struct hub *hub, struct hub_host *host, const struct message_item *item);
/* Whether the names of all addresses in a stack have come, as far as there are any. */
bool hub_has_names(const struct hub *hub, struct trace *trace, const struct finding_side *side);
void hub_hosts_free(struct hub *hub);

/* hub_clock.c: takes the time of a host's sign of life. From then on the times of its records are
 * by the hub's clock. */
void hub_take_clock(struct hub *hub, struct hub_host *host, uint64_t realtime_ns);
/* A time of the host's CLOCK_REALTIME by the hub's. */
uint64_t hub_time_of(const struct hub_host *host, uint64_t realtime_ns);

/* hub_findings.c: takes the sides of a finding of a host, and then that. */
void hub_take_side(struct hub *hub, struct hub_host *host, const struct item_side *side);
void hub_take_finding(struct hub *hub, struct hub_host *host, const struct item_finding *item);
/* A string or a stack that it names. */
void hub_take_text(struct hub *hub, struct hub_host *host, const struct item_record *item);
/* Makes those that have come the job's. */
void hub_judge_findings(struct hub *hub);
/* The same, at most every so often: findings of many hosts come one after the other. */
void hub_judge_due_findings(struct hub *hub);
void hub_findings_free(struct hub *hub);

/* hub_ask.c: who is asked, and the answers. */
void hub_ask(struct hub *hub, uint64_t now_ns);
void hub_take_answer(struct hub *hub, struct hub_host *host,
                     const struct transport_message *message);
/* Whether an ended host has nothing more that the hub wants. */
bool hub_host_is_done(const struct hub_host *host);

/* hub_round.c: keeps a record until the answers of the other hosts are there: what happened first,
 * on whatever host, is judged first, and what follows from it is seen to follow. */
void hub_round_keep(struct hub *hub, struct hub_process *process, const struct record *record);
/* Makes room for what hub_round_keep gets. Returns false when memory is short. */
bool hub_round_reserve(struct hub *hub, size_t records);
/* Judges and stores what the hosts answered, in the order of time, once all that were asked have
 * answered or the last had time enough. */
void hub_feed_round(struct hub *hub, uint64_t now_ns);
/* The answers of its hosts take longer than the time after which others are asked again: in a large
 * job a host is asked once in a round, and others' answers are waited for while some come. */
bool hub_is_large(const struct hub *hub);

/* hub_members.c: within the transaction of a step: that the hub is there, and how far members are
 * that the analyzer knows less of. */
void hub_store_members(struct hub *hub, uint64_t now_ns);

/* hub_silence.c: in a step that has taken all that came: reports hosts that send nothing any more,
 * and those that do again. */
void hub_judge_silence(struct hub *hub, uint64_t now_ns);

/* hub_reporter.c: lets another host report the findings once the one that does is gone. */
void hub_choose_reporter(struct hub *hub, uint64_t now_ns);
void hub_reporter_resend(struct hub *hub);

/* hub_view.c: answers a reader with what changed in the database. */
void hub_take_view(struct hub *hub, const struct transport_message *message);

/* hub_pace.c: asks the hosts of a large job to send digests less often, or more often again, by
 * the part of the hub's time that they take. */
void hub_pace_keep(struct hub *hub, uint64_t now_ns);
void hub_pace_resend(struct hub *hub);

/* hub.c: gives a record to the analyzer. What no memory is left for is dropped. */
void hub_analyze(struct hub *hub, int process, const struct record *record);
/* The same, and stores it with the others of this step. */
void hub_feed(struct hub *hub, int process, const struct record *record);
/* Stores the records of this step. */
void hub_write_batch(struct hub *hub);

/* hub_news.c */
/* Sends an item to all hosts. */
void hub_publish(struct hub *hub, enum item_kind kind, const void *item);
/* The database as a reader has it, up to date; NULL if it can't be read. */
struct trace *hub_open_trace(struct hub *hub);
void hub_news_add(struct hub *hub, const struct finding *finding);
/* After the findings are stored. The names of their stacks' addresses are waited for a moment,
 * unless it is the last chance. */
void hub_news_send(struct hub *hub, uint64_t now_ns, bool last);
/* Sends what was sent, as it was: what was kept of it is lost. */
void hub_news_resend(struct hub *hub);
/* Whether a finding still waits for names. */
bool hub_news_waits(const struct hub *hub);
void hub_news_free(struct hub *hub);

#endif
