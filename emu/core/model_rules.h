/* model_rules.h: the settings of the model, from the environment (docs/emulator.md). */
#ifndef DDPCHECK_EMU_MODEL_RULES_H
#define DDPCHECK_EMU_MODEL_RULES_H

#include <stdbool.h>
#include <stdint.h>

enum { MODEL_RULES_MAX = 64, MODEL_ANY = -1 };

/* "WHERE=VALUE[/EVERY][@SECONDS|@Nth]": where is a device, two of them ("0-1") or "all". */
struct model_rule {
    int device, peer; /* MODEL_ANY: all; a peer only where a pair was named */
    double value;
    uint64_t every;                   /* operations; or, if is_time, nanoseconds */
    uint64_t from_ns, from_operation; /* the process's time or NCCL operation; 0: always */
    bool is_time;
};

/* How far the process is: since its first use of CUDA, and in its NCCL operations. */
struct model_time {
    uint64_t ns, operations;
};

struct model_rules {
    struct model_rule rule[MODEL_RULES_MAX];
    int count;
};

enum model_value { MODEL_FACTOR, MODEL_RATE, MODEL_SECONDS, MODEL_PAUSE };

/* Reads a variable of the environment; says on stderr what makes no sense there, and leaves it
 * out. */
void model_rules_read(struct model_rules *rules, const char *variable, enum model_value value);

/* The last rule of a device that is in force then, else the last one of all devices; NULL: none.
 */
const struct model_rule *model_rules_of_device(const struct model_rules *rules, int device,
                                               struct model_time now);
/* The last rule in force that names this pair, in any order; NULL: none. */
const struct model_rule *model_rules_of_pair(const struct model_rules *rules, int device, int peer,
                                             struct model_time now);

#endif
