/* finding_fix.h: what to do about a finding, where that depends on the lines of the program, which
 * the analyzer does not know. */
#ifndef DDPCHECK_FINDING_FIX_H
#define DDPCHECK_FINDING_FIX_H

#include "lib/finding/finding.h"
#include "lib/trace/site.h"

/* Two calls are at different lines, or were reached by different lines. `a` and `b`: the
 * program's own frames, innermost first. False as soon as a line is not known. */
bool fix_lines_part(const struct frame *a, int count, const struct frame *b, int other_count);
/* A collective whose arguments differ is not one call of the program: the sides' lines, or
 * PyTorch's operations, are different. False where the trace is NULL. */
bool finding_calls_part(struct trace *trace, const struct finding *finding);
/* The fix to show for a finding: of a collective whose arguments differ, another one than its own
 * if its sides are at different calls of the program. `process` numbers of the finding are those of
 * the trace, which may be NULL: no line is known. Returns finding->todo or a row of advice.def. */
const char *finding_fix(struct trace *trace, const struct finding *finding);

#endif
