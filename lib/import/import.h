/* import.h: turns what other tools recorded into a trace database.
 *
 * Two sides. A *reader* (one file of lib/import, one line in sources.def) knows a format: it says
 * whether a file is one of its own (sniff) and imports what the file says (read), in plain terms,
 * piece by piece, without holding the file. The *sink* (import_process and the functions below it)
 * makes records (lib/trace/record.h) of what it is reported, sorts them by time over all files,
 * outside of memory if there are many, and stores them (lib/trace/store.h).
 *
 *     static int read(struct import *import, struct import_input *input, struct error *err)
 *     {
 *         struct import_process node = {
 *             .host = "node1", .pid = 4711, .rank = 0, .world_size = 2};
 *         struct import_member in = {.comm = "0x5ae7", .rank = 0, .nranks = 2};
 *         int process = import_process(import, &node);
 *         int member = import_member(import, process, &in);
 *         struct import_call call = import_call_new(member, API_ncclAllReduce);
 *         call.count = 4096, call.datatype = TYPE_FLOAT32, call.time_ns = ...;
 *         return import_call(import, &call);
 *     }
 *
 * What a source does not know stays as import_*_new left it: unknown, which no check takes for a
 * difference. What no file of a format can know is in import_source.lacks (lib/trace/lacks.def);
 * `ddpcheck report` lists the checks that are blind for it. One import belongs to one thread. */
#ifndef DDPCHECK_IMPORT_H
#define DDPCHECK_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/trace/lacks.h"
#include "lib/trace/record.h"

struct import;
struct import_input;

#define IMPORT_UNKNOWN UINT64_MAX
enum { IMPORT_NO_ROOT = INT32_MIN }; /* call.root: not known */
enum { IMPORT_NOTHING = 1 };         /* what import_source.read returns of a stranger's file */

/* The beginning of a file, unpacked if it was gzipped. */
struct import_head {
    const char *path;
    const char *bytes; /* NUL-terminated */
    size_t count;      /* 64 KiB at most; all of a shorter file */
};

struct import_source {
    const char *name;  /* "flight-recorder": --format */
    const char *title; /* "Flight Recorder dump": in messages; begins with a capital only where it
                          is a name */
    uint32_t lacks;    /* LACKS_*: what the format never says */
    bool says_little; /* of what a trace has, as a log does, too: reports do not list all of that */
    /* How sure the reader is that the file is its own: 0 not at all, 100 quite. */
    int (*sniff)(const struct import_head *head);
    /* Any text: tried where no format knows the file by its beginning. */
    bool reads_any_text;
    /* Gives the sink what the file says. Returns 0; IMPORT_NOTHING if the file is none of its
     * kind: it has nothing that the reader knows; or -1 with err, which names the file and the
     * place (byte offset or line) and why: what was reported before stays. Of a lesser damage (a
     * line that can't be read) call import_refuse and go on. */
    int (*read)(struct import *import, struct import_input *input, struct error *err);
    /* Called once after the last file, also if the import has failed: gives the sink what only all
     * files together say, and frees import_state. NULL: nothing. Returns 0 or -1. */
    int (*end)(struct import *import);
};

/* Where the reader in hand keeps what it has to remember from file to file; NULL at first. */
void **import_state(struct import *import);

/* ---- the file, unpacked on the way if it is gzipped */

const char *input_path(const struct import_input *input);
/* Up to `bytes` bytes into `to`. Returns how many, 0 at the end, -1 with err. */
long input_read(struct import_input *input, void *to, size_t bytes, struct error *err);
/* All that is left, with a NUL behind it, for free(); *bytes is its length. NULL with err, also
 * where it is longer than `most`. */
char *input_whole(struct import_input *input, size_t most, size_t *bytes, struct error *err);
/* The next line without its end, NUL-terminated, valid until the next call; longer ones come in
 * pieces of 1 MiB. NULL at the end, or with err->text set. *bytes is its length (it may hold NULs).
 */
char *input_line(struct import_input *input, size_t *bytes, struct error *err);
uint64_t input_line_number(const struct import_input *input); /* of the last line, from 1 */
uint64_t input_offset(const struct import_input *input);      /* bytes read so far, unpacked */
uint64_t input_modified_ns(
    const struct import_input *input); /* when the file was last written, since 1970 */

/* ---- the sink. What returns int returns -1 when memory or disk is short; then give up
 * (import_failed has the reason). */

struct import_process {
    const char *host;                 /* NULL: not known */
    int pid;                          /* 0: not known */
    int rank, local_rank, world_size; /* -1: not known */
    int nccl_version;                 /* 22705; 0 not known */
    const char *job, *program;        /* NULL: not known */
    const char *file, *title; /* what reported it, and what people call that; NULL: the file in
                                 hand, the source's title */
    uint32_t lacks;           /* LACKS_* beside those of the source */
    const char *key; /* differs between processes that the fields above do not identify; NULL: host,
                        pid and rank do */
};
struct import_process import_process_new(void); /* all unknown */

/* Makes a process known. The same (format, host, pid, rank, key) gives the same number; known
 * fields take the place of unknown ones, and `lacks` are added. Returns its number. */
int import_process(struct import *import, const struct import_process *process);
/* The file that reported of the process's calls before; NULL if none did. */
const char *import_process_file(const struct import *import, int process);
/* It turns out that the process has this rank, or lacks this too. */
void import_process_rank(struct import *import, int process, int rank);
/* Its rank in a communicator of `nranks` ranks (-1: not known): that in the largest one is what
 * people call it. */
void import_process_rank_of(struct import *import, int process, int rank, int nranks);
void import_process_lacks(struct import *import, int process, uint32_t lacks);

struct import_member {
    const char *comm;   /* the communicator, by a name that is the same on all its ranks and belongs
                           to no other one */
    uint64_t comm_id;   /* or its 64-bit id, if `comm` is NULL */
    const char *parent; /* NULL: none, or not known */
    const char *title;  /* what the program calls it: "default_pg"; NULL: not known */
    const char *ranks;  /* its ranks in the job, ascending as its own: "0-3,8"; NULL: not known */
    int rank;           /* in the communicator; must be known */
    int nranks;         /* -1: not known */
    int device;         /* -1: not known */
    uint64_t gpu;       /* hash of the GPU's identity, 0 not known */
    uint64_t time_ns;   /* when it was made; 0 not known */
};
struct import_member import_member_new(void);

/* The process's member of a communicator. The same (process, communicator, rank) gives the same
 * number. */
int import_member(struct import *import, int process, const struct import_member *member);
/* Its end: ncclCommDestroy (or Finalize), or ncclCommAbort. */
int import_member_end(struct import *import, int member, bool aborted, uint64_t time_ns);

enum import_state { IMPORT_STATE_UNKNOWN, IMPORT_ISSUED, IMPORT_STARTED, IMPORT_DONE };

struct import_call {
    int member;
    enum api api; /* of class COLLECTIVE or P2P */
    /* COLLECTIVE: place in the member's sequence, as the source counts: from 0, rising; it may
     * begin later and have gaps. IMPORT_UNKNOWN: the one after the last. P2P calls are counted by
     * the sink, per peer and direction. */
    uint64_t number;
    uint32_t part;    /* of several collectives that the source gives one number: 0, 1, 2, ... */
    uint64_t count;   /* elements as NCCL's call takes them; IMPORT_UNKNOWN */
    uint8_t datatype; /* enum datatype; TYPE_NONE: not known */
    uint8_t redop;    /* enum redop; REDOP_UNKNOWN: not known */
    int32_t root; /* root, or the peer of a send or receive; IMPORT_NO_ROOT: not known. A peer must
                     be known */
    uint64_t sendbuff, recvbuff, stream; /* IMPORT_UNKNOWN: not known */
    uint64_t group;   /* calls of one process and one number here are one ncclGroup; 0 none */
    uint64_t time_ns; /* when it was called, since 1970; 0 not known: after what the process did
                         before */
    uint32_t thread;  /* 0: not known */
    uint64_t stack;   /* import_stack; 0 none */
    enum import_state state; /* how far the operation is, as far as the source ever knows */
    uint64_t bytes; /* of the operation, where elements are not known (count IMPORT_UNKNOWN): for
                       rates, never compared; 0 not known */
};
struct import_call import_call_new(int member, enum api api);

int import_call(struct import *import, const struct import_call *call);
/* The call that was reported last, for what comes to be known of it later; its state was ISSUED or
 * more. */
struct import_launch {
    struct lane *lane; /* the sink's */
    uint64_t launch;
};
struct import_launch import_last_launch(const struct import *import);
/* It is that far (STARTED or DONE) at `time_ns`, and so is what its stream had before it. */
int import_launch_state(struct import *import, struct import_launch launch, enum import_state state,
                        uint64_t time_ns);
/* How long an operation took on the GPU, if it is done. */
struct import_lasting {
    uint64_t duration_ns; /* 0: it is not known */
    bool runs_with_last;  /* the member's call before it says how long both took */
};
/* A call of a source that says how long operations took, not when they began: with the call, or
 * when the operation before it in the member's sequence ended. Where it is not known of more than
 * some how long they took, the process lacks DURATIONS. */
int import_lasting_call(struct import *import, const struct import_call *call,
                        struct import_lasting lasting);
/* Iteration `number` of the process's training loop begins; the previous one ends. 0 or -1. */
int import_iteration(struct import *import, int process, uint64_t number, uint64_t time_ns);
/* Work other than a call has run from begin_ns to end_ns, since 1970. iteration: UINT64_MAX not
 * known. Nothing else of the process may be later yet. 0 or -1. */
struct import_activity {
    const char *name; /* UTF-8, need not last */
    enum activity_kind kind;
    uint64_t begin_ns, end_ns, iteration;
};
int import_activity(struct import *import, int process, const struct import_activity *activity);
/* The member has issued all collectives numbered below `issued`, whether the source has them
 * or not, and no more: of RAS counts, "last enqueued work". done: as many are done; IMPORT_UNKNOWN.
 * time_ns: when that was seen; 0 not known. */
int import_reached(struct import *import, int member, uint64_t issued, uint64_t done,
                   uint64_t time_ns);
/* All that the process did until then is reported: the time of the dump. IMPORT_UNKNOWN: as far as
 * of the others. */
int import_known_until(struct import *import, int process, uint64_t time_ns);
/* The process ended (enum end_how; value: exit status or signal). */
int import_process_end(struct import *import, int process, enum end_how how, int value,
                       uint64_t time_ns);

/* Where the process stands, as its stacks show (notice_position). */
struct import_position {
    enum place_kind place;
    bool moves;       /* it was elsewhere a moment before */
    bool works;       /* it ran, or read and wrote, while it was watched */
    const char *text; /* what it is in; "" its own code. Need not last */
    int lasts_s;      /* it was seen there for so long; 0: once */
    uint64_t stack;   /* import_stack: the same for processes that stand alike; 0 not known */
    uint64_t time_ns; /* since 1970; 0 not known */
};
int import_position(struct import *import, int process, const struct import_position *position);
/* Where one of its threads stands (notice_thread_stack). */
struct import_thread {
    uint32_t id, holder;   /* holder: of the lock that it waits for; 0 not known */
    uint32_t index, count; /* which of how many threads */
    int syscall;           /* that it is in; -1 none, it runs; -2 not known */
    const char *name;
    uint64_t stack, time_ns;
};
int import_thread_stack(struct import *import, int process, const struct import_thread *thread);

/* What `who` ("NCCL", "PyTorch", "RAS") said itself of what went wrong, in its words: DC904 passes
 * it on. */
int import_said(struct import *import, int process, enum said how, const char *who,
                const char *text, uint64_t time_ns);

struct import_frame {
    const char *file, *function; /* UTF-8, need not last */
    uint32_t file_bytes, function_bytes;
    uint32_t line; /* 0: not known */
};
/* A stack of frames, innermost first. Returns its id for call.stack, 0 when there are none or
 * memory is short. */
uint64_t import_stack(struct import *import, int process, const struct import_frame *frames,
                      int count);
/* A text of the process, for fields that hold string ids. 0 when memory is short. */
uint64_t import_text(struct import *import, int process, const char *text, size_t bytes);

/* Something in the file was not taken: counted, the first of each file, and of all, are said on
 * stderr by the command. Name file and place. */
void import_refuse(struct import *import, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- the whole */

extern const struct import_source *const import_sources[]; /* sources.def; ended by NULL */
const struct import_source *import_source_find(const char *name);

/* How far an import is. First the files are read, then the records are stored. */
struct import_standing {
    uint64_t files;               /* read */
    uint64_t bytes, of_bytes;     /* of the files as they lie on disk: read, in all; 0: not known */
    uint64_t records, of_records; /* stored, in all; 0: still reading */
};

struct import_options {
    const struct import_source *source; /* NULL: each file by its beginning */
    /* A message for people, one line without its end. Never NULL. */
    void (*say)(void *context, const char *message);
    /* Called often; NULL: never. */
    void (*progress)(void *context, const struct import_standing *standing);
    void *context;
    const struct import_judge *judge; /* NULL: nobody */
};

/* An observer of the trace while it is made, which may add findings to it. Each function returns 0,
 * or -1 with err. */
struct store;
struct process_info;
struct import_judge {
    int (*process)(void *context, int process, const struct process_info *info, struct error *err);
    int (*record)(void *context, int process, const struct record *record, struct error *err);
    int (*end)(void *context, struct store *store,
               struct error *err); /* all records are stored; a transaction is open */
    void *context;
};

struct import_result {
    uint64_t files, refused_files; /* read, at least in part; refused, at least in part */
    uint64_t refused;              /* pieces of files (lines, entries) that were not taken */
    uint64_t records, processes, communicators;
};

/* Reads files and directories (searched to any depth) into a new database at `path`, which must not
 * be there. What can't be read is said and counted; the rest is taken. Returns 0, or -1 with err:
 * the database could not be written, or there was nothing to take; then there is none. */
int import_files(const char *const *paths, int count, const char *path,
                 const struct import_options *options, struct import_result *result,
                 struct error *err);

#endif
