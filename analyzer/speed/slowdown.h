/* slowdown.h: what slows a job down, as the parts of judge.c find it and the checks report it. */
#ifndef DDPCHECK_SPEED_SLOWDOWN_H
#define DDPCHECK_SPEED_SLOWDOWN_H

#include "analyzer/speed/speed.h"

enum slowdown_kind {
    SLOW_HOST,   /* its host issues late, or does other work */
    SLOW_DEVICE, /* the same work takes its GPU longer */
    SLOW_WORK,   /* it has more work than its peers */
    SLOW_LINK,   /* transfers of a communicator take longer than those of its sisters */
    SLOW_SINCE,  /* all iterations, from one on */
    SLOW_PAUSE,  /* at regular intervals */
    SLOW_UNEVEN, /* work that differs between peers, now here, now there */
    SLOW_STAGES, /* a stage of a pipeline has more than the others */
    SLOW_KINDS
};
enum { SLOW_KERNELS = 3 };
/* What a rank may have more of in an iteration. */
enum more_kind { MORE_KERNELS, MORE_THREADS, MORE_OPERATIONS, MORE_BYTES, MORE_KINDS };

/* How long the processes of a slowdown waited for a processor, beyond their peers: starved.c. */
struct starving {
    double seconds;    /* of an iteration, on average */
    bool is_cause;     /* at least half of what is lost */
    bool is_clear;     /* so long and by that much that it is not just a busy host */
    bool is_throttled; /* by a CPU limit */
};

/* What would be gained without a slowdown: whatif.c. */
struct slowdown_gain {
    bool is_known;     /* the model explains the iterations */
    bool is_in_family; /* another one has its ranks */
    bool is_together;  /* a rank: it is what all stages of its pipeline lose */
    double seconds;    /* of an iteration */
};

struct slowdown {
    enum slowdown_kind kind;
    bool is_coarse;     /* it rests on such times, or a busy host looks the same: a note */
    bool kind_is_guess; /* the source does not distinguish a late host from a slow device */
    bool is_apart; /* the kind is a guess, but most ranks of its host are not slow: it is not the
                      host */
    const struct speed_rank **rank; /* whom it concerns, by index */
    uint32_t ranks;
    bool is_all;             /* these are all ranks */
    bool is_reported;        /* it is worth a finding */
    bool is_part;            /* SINCE: only `lost` of an iteration is due to it, */
    bool is_alone;           /* and there are no other slowdowns */
    const struct comm *comm; /* in which its peers wait; SLOW_LINK: that is slow; else NULL */
    double lost, length;     /* seconds of an iteration, on average */
    struct slowdown_gain gain;
    double before;        /* what it lost before `since` */
    bool is_steady;       /* a rank: it loses much of nearly each iteration; LINK: the same */
    double rate;          /* LINK: bytes a second, if there is nothing else to compare; else 0 */
    double often;         /* the share of iterations in which it loses anything; 0: nearly all */
    double ratio;         /* DEVICE, LINK: how many times as long; else 0 */
    uint64_t since;       /* iteration from which on; 0 not known */
    uint64_t until;       /* iteration from which on it is over or hidden; 0: none */
    uint64_t period;      /* PAUSE: iterations from one to the next */
    bool period_varies;   /* it is a mean */
    double each;          /* PAUSE: seconds that one takes */
    uint64_t times;       /* PAUSE: how many there were */
    uint64_t first, last; /* iterations that it was seen in */
    double confidence;    /* SINCE: how often a later iteration is longer than an earlier one */
    uint64_t kernel[SLOW_KERNELS]; /* DEVICE, WORK: string ids of those that lose most, 0 none */
    double kernel_ratio[SLOW_KERNELS]; /* how many times as long as on the peers they take */
    const struct host_gap *gap; /* HOST, PAUSE: where most of the time passes; NULL not known */
    double gap_each;            /* seconds */
    bool is_timed; /* DEVICE, WORK: by exact times of kernels, which nothing else makes longer */
    bool is_idle;  /* HOST: what is lost is idle time */
    struct starving starving;
    double work; /* WORK: how many times as many threads and bytes these have, or, if it is not
                    known which these are, kernels and threads the rank has; 0 not known */
    double more[MORE_KINDS]; /* WORK: how many times as many as its peers; 0: not more */
    bool is_as_much;         /* DEVICE, of kernels without times: as many, with as many threads */
};

/* Found together; the ranks belong to the list. */
struct slowdowns {
    struct slowdown *slowdown;
    uint32_t count, capacity;
    bool failed;   /* memory was short */
    double length; /* of an iteration, in what was judged last; 0: nothing was */
    double alike;  /* what it would be shorter by without these, and if peers were alike as well */
    bool knows_alike;
};
/* What it costs of an iteration, in seconds: what the job would gain, if that is known. Every
 * reader states this, so that all shares are of the same. */
static inline double slowdown_cost(const struct slowdown *slowdown)
{
    return slowdown->gain.is_known ? slowdown->gain.seconds : slowdown->lost;
}
/* Adds one, with a copy of its ranks. */
void slowdowns_add(struct slowdowns *slowdowns, const struct slowdown *slowdown);
/* Adds it with all ranks. */
void slowdowns_add_all(struct slowdowns *slowdowns, const struct speed *speed,
                       struct slowdown *slowdown);
/* Whether one names the rank, other than all of them or those of a slow link. */
bool slowdowns_have_rank(const struct slowdowns *slowdowns, const struct speed_rank *rank);
/* The one that costs most first: ranks come in no order of their own. */
void slowdowns_sort(struct slowdowns *slowdowns);
void slowdowns_free(struct slowdowns *slowdowns);

/* Ranks that send each other messages, over any number of others. */
struct speed_pipeline {
    double most, least; /* of what they lose, in an iteration */
    uint32_t ranks;     /* 1: no pipeline */
};

/* What is judged: all ranks' iterations [first, end), which all have closed. */
struct judged {
    struct analyzer *analyzer;
    struct speed *speed;
    uint64_t first, end;
    uint64_t since; /* iterations became longer with this one: only what follows is judged; 0: no */
    uint64_t begin; /* the first of those before */
    uint64_t until; /* only what precedes this one is judged; 0: no */
    uint64_t ends;  /* iterations become shorter again with this one, where `until` ends; 0: no */
    uint64_t step;  /* iterations became longer with this one, and both sides are judged; 0: no */
    double rise;    /* by so much */
    double *before; /* by rank: its excess before that, on average; NULL without */
    bool is_seldom; /* what counts is in few iterations */
    bool named;     /* the program names its iterations */
    bool recorded;  /* on a host that may be busy */
    bool shows_kernels; /* of all ranks */
    bool exposes;       /* it is known which transfers are exposed, or peers expose the same ones */
    bool placed;        /* of ranks only durations are known: level.c */
    bool coarse;        /* times come from progress words, read every millisecond on a busy host */
    double length;      /* of an iteration, on average */
    double *excess;     /* by rank and iteration: own time beyond its peers' (peers.c), seconds */
    double *waited;     /* by rank: what its peers wait in an iteration, on average */
    double *behind; /* by rank: how far it is from the worst member of one of its communicators */
    bool *
        idles; /* by rank: it has no better evidence than its idle time, compared with all ranks' */
    const struct comm **among; /* by rank: the communicator of these peers; NULL: it has none */
    uint32_t *pipeline_of;     /* by rank: which pipeline it is in */
    struct speed_pipeline *pipeline;
};
static inline double *judged_excess(const struct judged *judged, uint32_t rank)
{
    return judged->excess + (size_t)rank * (judged->end - judged->first);
}
static inline const struct speed_pipeline *judged_pipeline(const struct judged *judged,
                                                           uint32_t rank)
{
    return &judged->pipeline[judged->pipeline_of[rank]];
}
/* What a rank did in an iteration. False if it is not known. */
static inline bool judged_iteration(const struct speed_rank *rank, uint64_t number,
                                    struct speed_iteration *iteration)
{
    const struct speed_iteration *found = speed_iteration_find(rank, number);
    *iteration = found ? *found : (struct speed_iteration){0};
    return found != NULL;
}
/* The median of values, which are reordered; of an even number the lower. 0 of none. */
double speed_median(double *value, size_t count);
/* The median of a copy. */
double speed_median_of(const double *value, size_t count);
/* The mean of the middle half: pauses and chance do not move it, and half of the values do. 0 of
 * none. */
double speed_middle(const double *value, size_t count);
/* The seconds that `percent` % of a communicator's transfers in an iteration take at most. */
double speed_transfer_quantile(const struct speed_comm *comm, uint64_t first, uint64_t end,
                               uint32_t percent);
/* How probable it is that chance makes at least `hits` of `count` be what each of them is with this
 * probability. */
double speed_chance(size_t count, size_t hits, double each);
/* The length of each judged iteration on the median rank; where it is not known, that of its
 * predecessor. NULL when memory is short; the caller frees. */
double *speed_median_lengths(const struct judged *judged);
/* Of an iteration, on the median rank: what is not recorded of one may make its iterations longer.
 */
double speed_mean_length(const struct judged *judged);
/* The place of each value among all: single long iterations (pauses) weigh no more than others.
 * NULL when memory is short; the caller frees. */
double *speed_places(const double *value, size_t count);

/* Where values became larger, most surely; 0: nowhere, or memory is short. */
size_t speed_find_step(const double *value, size_t count);

/* Fills in excess and what follows it. 0 or -1 (ENOMEM). */
int judge_peers(struct judged *judged);
/* Whether idle time is the host's: what else the rank does is recorded, or what is queued. */
bool judged_shows_host(const struct judged *judged);
/* Each adds what it finds. */
void judge_pauses(struct judged *judged, struct slowdowns *found); /* at most one */
void judge_ranks(struct judged *judged, struct slowdowns *found);
void judge_links(struct judged *judged, struct slowdowns *found);
/* Takes away slow ranks that are all members of a slow communicator and lose no more than it does:
 * where kernels are not recorded, its transfers look like their work. */
void drop_explained_by_links(const struct judged *judged, struct slowdowns *found);
/* Finds the ranks whose own work takes longer since the step, by most of what iterations are
 * longer, while that of the others does not. Returns whether there are any. */
bool judge_own_steps(const struct judged *judged, const struct slowdown *step,
                     struct slowdowns *found);
/* In a job's first iterations libraries are loaded, kernels compiled and memory allocated: how many
 * there are up to the last long one. What is long after some that are not, or again and again, is
 * no warming up. */
size_t speed_warm_up(const struct judged *judged);
/* Where a part of the job ends in which iterations are longer than before it and after it; 0: there
 * is none. */
uint64_t judge_phase_end(const struct judged *judged, struct slowdowns *found);
/* The iteration from which on iterations are longer, if there is one: false if not. */
bool judge_step(const struct judged *judged, struct slowdown *step, struct slowdowns *found);
/* The iteration from which on, of those from `first` on, the median rank's own work takes longer,
 * if there is one: neither a slow rank nor a slow link does that. */
bool judge_work_step(const struct judged *judged, uint64_t first, struct slowdown *step,
                     struct slowdowns *found);

/* Fills in whether it is slow because threads waited for a processor. */
void judge_starved(const struct judged *judged, struct slowdown *slowdown);
/* Adds ranks that do so clearly, also where that takes much of some iterations and none of others;
 * but not those that are found from found[from] on. */
void judge_starving(const struct judged *judged, struct slowdowns *found, uint32_t from);

/* Compares the rank's kernels with its peers' and fills in which lose most, and by how much more
 * work they have. Returns whether they have no more and all are slow alike, by slowdown->ratio. */
bool slowdown_compare_kernels(const struct judged *judged, uint32_t index,
                              const struct speed_rank *const *peer, uint32_t count,
                              struct slowdown *slowdown);
/* The text of a kernel's name, or NULL. */
const char *slowdown_kernel(const struct analyzer *analyzer, const struct slowdown *slowdown,
                            int index);

#endif
