/* flight_dump.h: a Flight Recorder dump as it is read, and its process groups. Only
 * lib/import/flight_*.c include it. */
#ifndef DDPCHECK_FLIGHT_DUMP_H
#define DDPCHECK_FLIGHT_DUMP_H

#include "lib/import/flight_entry.h"

enum { FLIGHT_NAME_BYTES = 1024 };

/* A process group of the rank. */
struct flight_group {
    const char *name; /* texts of the dump, not NUL-terminated */
    uint32_t name_bytes;
    const char *title; /* what the program calls it, NUL-terminated; NULL: not known */
    const int *rank;   /* global ranks by rank in the group; NULL not known */
    int nranks;        /* -1: not known */
    int member;        /* the sink's; -1: not a member */
    int own;           /* the rank's place in it */
    int64_t id;        /* pg_id; -1 not known */
    bool has_p2p;
    uint64_t calls; /* collectives so far */
    int64_t seq;    /* of the last collective, and how many it was so far */
    uint32_t parts;
    struct {                          /* the coalesced row met last, from the end of the list on */
        bool open, has_calls, is_p2p; /* is_p2p: as its calls are; not in the row */
        int64_t seq, p2p_seq;
        uint64_t number, duration_ns;
        uint32_t first; /* of its calls, so far */
        enum import_state state;
    } coalesced;
};

struct flight_dump {
    struct import *import;
    struct import_input *input;
    struct arena arena;
    const struct value *field[FIELDS];
    char job[FLIGHT_NAME_BYTES]; /* the file's name without the rank: ranks with one of these belong
                                    together */
    int rank, process, world_size;
    struct flight_group *group;
    uint32_t groups, group_capacity;
    uint64_t last_ns;
    bool has_coalesced;
    bool has_durations; /* some entries say how long they took */
    bool said_unlike;   /* that a call's input and output do not fit each other */
    bool counts_calls;  /* the collectives of a group are numbered as they come */
    bool is_torchcomms; /* collective_seq_id counts the calls of all groups, messages included */
    struct error *err;
};

/* "FILE: why". Returns -1. */
int flight_failed(const struct flight_dump *dump, const char *why);

/* The rank, which PyTorch writes into the file's name only, and that name without it (dump->job).
 * Returns 0, or -1 with the dump's error. */
int flight_parse_rank(struct flight_dump *dump);
/* Replaces the file's name in dump->job by that of the job that it belongs to. Returns 0, or -1
 * with the dump's error. */
int flight_find_job(struct flight_dump *dump);
int flight_forget_jobs(struct import *import);
/* The groups of pg_config. Returns 0, or -1 with the dump's error. */
int flight_read_groups(struct flight_dump *dump);
/* The group of an entry, made known if it was not: by its name, by pg_id where there is no name.
 * NULL when memory is short. */
struct flight_group *flight_group_of(struct flight_dump *dump, const struct flight_entry *entry);
/* Makes the rank a member of the group's communicator, if it is one (group->member). Returns 0, or
 * -1. Groups of one name and other ranks are others: subgroups that each rank makes of itself share
 * names. */
int flight_join(struct flight_dump *dump, struct flight_group *group);

/* flight_torchcomms.c: finds out whether torchcomms wrote the dump. Returns 0, or -1 with the
 * dump's error if its numbers then say nothing. */
int flight_find_writer(struct flight_dump *dump, const struct list_value *entries);
/* The number of a collective in its group; -1: the dump does not say it. */
int64_t flight_number_of(const struct flight_dump *dump, struct flight_group *group,
                         const struct flight_entry *entry);

#endif
