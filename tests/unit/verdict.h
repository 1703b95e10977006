/* verdict.h: what the analyzer says of a job that was written with stream.h. */
#ifndef DDPCHECK_TEST_VERDICT_H
#define DDPCHECK_TEST_VERDICT_H

#include <stdint.h>

#include "analyzer/analyzer.h"
#include "stream.h"

enum { JOB_FINDINGS_MAX = 64 };

struct found {
    char code[8];
    enum severity severity;
    enum certainty certainty;
    enum finding_state state;
    uint64_t comm, number, times, fingerprint;
    char what[1024], todo[256];
    int sides;
    char ranks[FINDING_SIDES_MAX][64];
    char call[FINDING_SIDES_MAX][256];
    char where[FINDING_SIDES_MAX][512];
    uint64_t stack[FINDING_SIDES_MAX];
    uint64_t seen_ns; /* time of the record at which it was reported first */
};
struct verdict {
    struct found found[JOB_FINDINGS_MAX];
    int count;          /* that are open, and neither notes nor about slowness */
    char resolved[256]; /* those that the job got over, with the ranks of their last side */
    char notes
        [256]; /* the other open ones with the ranks of their first side, '?' for possible ones:
                               "DC601:2 DC602?:0-3 " */
    struct found last_note; /* of these */
    uint64_t skipped;
};

/* In the order of writing, ticks where they were written. seed: processes interleave at random
 * between ticks (a collector reads ring by ring, and ticks only when all were read); 0 in order of
 * writing. */
void job_analyze(struct job *job, uint64_t seed, struct verdict *verdict);
/* Seeds: all that a process did between ticks before what the next one did, as where rings are read
 * late. */
#define BY_RANK           UINT64_MAX
#define BY_RANK_BACKWARDS (UINT64_MAX - 1)
/* Like job_analyze, and fails the test unless exactly this one finding is there (code NULL: none).
 */
const struct found *expect_in(struct job *job, struct verdict *verdict, const char *code);
#define expect(job, code) expect_in(job, &(struct verdict){0}, code)
/* Fails the test unless PART is in TEXT. */
void assert_has(const char *text, const char *part);

#endif
