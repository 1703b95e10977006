/* finding_fix.h: what to do about a finding, where that depends on the lines of the program, which
 * the analyzer does not know. */
#ifndef DDPCHECK_FINDING_FIX_H
#define DDPCHECK_FINDING_FIX_H

#include "lib/finding/finding.h"
#include "lib/trace/site.h"

/* Where the ranks of a side made their call. */
struct fix_place {
    int process;
    uint64_t stack;
    bool stack_is_address;
};

/* Two calls stand at different lines, or were reached by different lines. `a` and `b`: the
 * program's own frames, innermost first. False as soon as a line is not known. */
bool fix_lines_part(const struct frame *a, int count, const struct frame *b, int other_count);
/* The fix to show for a finding with that code, whose own is `todo`: of a collective whose
 * arguments differ, another one if its sides are at different calls of the program. Returns todo or
 * a constant. `trace` may be NULL: no line is known. */
const char *fix_of_places(struct trace *trace, const char *code, const char *todo,
                          const struct fix_place *place, int places);
/* The same of a finding whose `process` numbers are those of the trace. */
const char *finding_fix(struct trace *trace, const struct finding *finding);

#endif
