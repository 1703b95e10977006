/* html_map.c: the job on one screen: hosts, and a square for each process, in three colours: the
 * cause, waiting for it, fine. */
#include <stdlib.h>
#include <string.h>

#include "cmd/export/html.h"
#include "lib/base/moment.h"
#include "lib/finding/finding_culprit.h"

enum { SQUARES_MOST = 4096 }; /* more processes have one square a host, which shows its worst */

/* A process: the member of its communicators that is worst off. */
struct square {
    const struct process_info *info;
    const struct member_state *member; /* NULL: of no communicator */
    int rank;                          /* that people know; -1: none */
    bool is_cause;
};

enum { SQUARE_CAUSE, SQUARE_WAITING, SQUARE_FINE, SQUARE_ENDED, SQUARE_LOOKS };
static const struct {
    const char *class, *what;
} map_looks[SQUARE_LOOKS] = {[SQUARE_CAUSE] = {"cause", "cause"},
                             [SQUARE_WAITING] = {"waits", "waiting"},
                             [SQUARE_FINE] = {"runs", "fine"},
                             [SQUARE_ENDED] = {"over", "finished"}};

static int square_look(const struct square *square)
{
    const struct member_state *member = square->member;
    if (square->is_cause || (member && member->standing == STANDS_EXITED))
        return SQUARE_CAUSE;
    if (!member || member->standing == STANDS_DONE)
        return SQUARE_FINE;
    return member->standing == STANDS_OVER ? SQUARE_ENDED : SQUARE_WAITING;
}

static int by_host(const void *a, const void *b)
{
    const struct square *one = a, *other = b;
    int order = strcmp(one->info->host, other->info->host);
    return order ? order : (one->rank > other->rank) - (one->rank < other->rank);
}

/* The ranks that a hang's findings name as those that others wait for, of all certain errors. */
static int find_causes(struct report *report, struct rankset *causes)
{
    struct fault_list faults;
    int result = 0;
    report_faults_find(&faults, report, FINDING_OPEN, true);
    for (int i = 0; !result && i < faults.count; i++) {
        const struct finding *finding = faults.fault[i].finding;
        int side = finding_culprit(finding);
        if (side >= 0 && finding->severity == SEVERITY_ERROR)
            result = rankset_unite(causes, &finding->side[side].ranks);
    }
    fault_list_free(&faults);
    return result;
}

static void put_square(const struct html *html, const struct square *square)
{
    const struct member_state *member = square->member;
    char duration[64];
    uint64_t end_ns = html->export->report->end_ns;
    fprintf(html->out, "<li class=%s title=\"", map_looks[square_look(square)].class);
    if (square->rank >= 0)
        fprintf(html->out, "rank %d", square->rank);
    else
        fputs("no rank", html->out);
    if (*square->info->host)
        html_format(html, ", %s", square->info->host);
    if (member && member->device != RECORD_NO_DEVICE)
        fprintf(html->out, ", GPU %d", member->device);
    if (square->info->pid > 0)
        fprintf(html->out, ", pid %d", square->info->pid);
    fprintf(html->out, ": %s", map_looks[square_look(square)].what);
    if (square_look(square) != SQUARE_CAUSE) /* the tables say it once for all that wait */
        member = NULL;
    if (member && *member->where)
        html_format(html, "; %s", member->where);
    if (member && member->since_ns && member->since_ns < end_ns && !member->ended)
        html_format(html, " for %s",
                    moment_duration(end_ns - member->since_ns, duration, sizeof duration));
    if (member && member->site && *member->site)
        html_format(html, "; %s", member->site);
    fputs("\">", html->out);
}

/* The squares of one host, which begin at `first`. Returns how many there are. */
static int put_map_host(const struct html *html, const struct square *square, int first, int count,
                        bool is_one)
{
    int end = first, worst = first;
    for (; end < count && !strcmp(square[end].info->host, square[first].info->host); end++)
        if (square_look(&square[end]) < square_look(&square[worst]))
            worst = end;
    fputs("<li>", html->out);
    if (*square[first].info->host) { /* imports do not know it */
        fputs("<h3>", html->out);
        html_text(html, square[first].info->host);
        fputs("</h3>", html->out);
    }
    fputs("<ul>", html->out);
    for (int i = is_one ? worst : first; i < (is_one ? worst + 1 : end); i++)
        put_square(html, &square[i]);
    fputs("</ul>", html->out);
    return end - first;
}

static void put_map_key(const struct html *html, const struct square *square, int count)
{
    int counts[SQUARE_LOOKS] = {0};
    for (int i = 0; i < count; i++)
        counts[square_look(&square[i])]++;
    fputs("<ul class=key>", html->out);
    for (int i = 0; i < SQUARE_LOOKS; i++)
        if (counts[i])
            fprintf(html->out, "<li class=%s><i></i> %s: %d", map_looks[i].class, map_looks[i].what,
                    counts[i]);
    fputs("</ul>", html->out);
}

static void fill_squares(const struct html *html, const struct rankset *causes,
                         struct square *square)
{
    const struct report *report = html->export->report;
    for (int i = 0; i < html->names.processes; i++)
        square[i] = (struct square){trace_process(report->trace, i), NULL, report->rank[i],
                                    report->rank[i] >= 0 && rankset_has(causes, report->rank[i])};
    for (int i = 0; i < report->members; i++) {
        const struct member_state *member = &report->member[i];
        struct square *of = member->process >= 0 ? &square[member->process] : NULL;
        if (of && (!of->member || member->standing < of->member->standing))
            of->member = member;
    }
}

int html_map(const struct html *html)
{
    int count = html->names.processes;
    struct rankset causes = {0};
    struct square *square = count > 1 ? calloc((size_t)count, sizeof *square) : NULL;
    int result = count > 1 && (!square || find_causes(html->export->report, &causes)) ? -1 : 0;
    if (square && !result) {
        fill_squares(html, &causes, square);
        qsort(square, (size_t)count, sizeof *square, by_host);
        fputs("<section id=map><h2>The job</h2>", html->out);
        put_map_key(html, square, count);
        fputs("<ul class=hosts>", html->out);
        for (int i = 0; i < count;)
            i += put_map_host(html, square, i, count, count > SQUARES_MOST);
        fputs("</ul><p class=says aria-live=polite></p></section>\n", html->out);
    }
    rankset_free(&causes);
    free(square);
    return result;
}
