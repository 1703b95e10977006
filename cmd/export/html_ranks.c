/* The ranks of the page: a cell for each rank of each communicator, where they are in words, and
 * their stacks. */
#include <stdlib.h>
#include <string.h>

#include "cmd/export/html.h"
#include "lib/base/moment.h"

enum {
    COMMS_MOST = 24,
    WELL_SHOWN = 4, /* communicators without a wait that are shown unfolded */
    DENSE_FROM = 129,
    CELLS_MOST = 2048,
    ROWS_MOST = 40,
    GROUPS_MOST = 24,
    RANKS_BYTES = 512,
    SENTENCE_BYTES = 512
};

/* How a member is shown: by its standing, but that it was terminated does not look like success. */
enum { LOOK_TERMINATED = STANDINGS, LOOKS };
static const struct {
    const char *class, *mark, *what;
} looks[LOOKS] = {
    [STANDS_MISSING] = {"behind", "!", "has not called what others wait in"},
    [STANDS_EXITED] = {"broken", "\xe2\x9c\x97", "ended badly or too early"},
    [STANDS_UNSEEN] = {"unseen", "?", "no NCCL call of it was recorded"},
    [STANDS_BEHIND] = {"late", "\xe2\x97\x94", "has called less than others"},
    [STANDS_ISSUED] = {"waits", "\xe2\x97\x8b", "waits for its stream to reach an operation"},
    [STANDS_STARTED] = {"waits", "\xe2\x96\xb6", "waits in an operation"},
    [STANDS_DONE] = {"runs", "\xc2\xb7", "has no operation in flight"},
    [STANDS_OVER] = {"over", "\xe2\x9c\x93", "has finished"},
    [LOOK_TERMINATED] = {"terminated", "\xc2\xb7",
                         "was terminated, with no operation of its own in flight"},
}; /* marks as in the terminal UI */

static int look_of(const struct member_state *member)
{
    bool terminated = member->ended && member->how == END_SIGNAL && !member->destroyed;
    return member->standing == STANDS_OVER && terminated ? LOOK_TERMINATED : (int)member->standing;
}

/* The members of one communicator. */
struct rank_group {
    const struct member_state *member;
    int count;
};

/* Where too many ranks would make the page heavy, a cell stands for several and shows the worst of
 * them. */
static void put_cells(const struct html *html, const struct rank_group *group)
{
    int each = (group->count + CELLS_MOST - 1) / CELLS_MOST;
    fprintf(html->out, "<ul class=\"ranks%s\">", group->count >= DENSE_FROM ? " dense" : "");
    for (int i = 0; i < group->count; i += each) {
        int worst = i;
        int last = i + each < group->count ? i + each - 1 : group->count - 1;
        for (int j = i; j <= last; j++)
            if (group->member[j].standing < group->member[worst].standing)
                worst = j;
        const struct member_state *member = &group->member[worst];
        const int look = look_of(member);
        char issued[LAST_NUMBER_BYTES], done[LAST_NUMBER_BYTES];
        fprintf(html->out, "<li class=%s tabindex=0 title=\"rank %d", looks[look].class,
                member->shown_rank);
        if (each > 1)
            fprintf(html->out, " (of %d to %d)", group->member[i].shown_rank,
                    group->member[last].shown_rank);
        fprintf(html->out, " %s: ", looks[look].what);
        html_text(html, member->where);
        fprintf(html->out, "; issued %s, done %s\">%d<i>%s</i>",
                last_number_text(member->issued, issued), last_number_text(member->done, done),
                member->shown_rank, looks[look].mark);
    }
    fputs("</ul>", html->out);
}

static bool is_alike(const struct member_state *a, const struct member_state *b)
{
    return (a->process < 0) == (b->process < 0) && a->ended == b->ended &&
           a->destroyed == b->destroyed && a->issued == b->issued && a->started == b->started &&
           a->done == b->done && !strcmp(a->where, b->where) &&
           !strcmp(a->last_call, b->last_call) && !strcmp(a->site, b->site) &&
           !strcmp(a->phase, b->phase);
}

static void put_rank_row(const struct html *html, const struct member_state *member,
                         const struct rankset *ranks)
{
    char text[RANKS_BYTES], duration[64];
    char issued[LAST_NUMBER_BYTES], started[LAST_NUMBER_BYTES], done[LAST_NUMBER_BYTES];
    uint64_t end_ns = html->export->report->end_ns;
    const int look = look_of(member);
    fprintf(html->out, "<tr><th scope=row class=%s><i>%s</i> ", looks[look].class,
            looks[look].mark);
    html_rank_ranges(html, rankset_brief(ranks, text, sizeof text));
    fprintf(html->out, "<td>%s<td>%s<td>%s<td>", last_number_text(member->issued, issued),
            last_number_text(member->started, started), last_number_text(member->done, done));
    html_text(html, member->where);
    if (member->since_ns && member->since_ns < end_ns && !member->ended)
        fprintf(html->out, " <span class=meta>for %s</span>",
                moment_duration(end_ns - member->since_ns, duration, sizeof duration));
    if (*member->site) {
        fputs("<div class=place>", html->out);
        html_text(html, member->site);
        fputs("</div>", html->out);
    }
    fputs(*member->last_call ? "<td><code>" : "<td class=meta>none", html->out);
    html_text(html, member->last_call);
    if (*member->last_call)
        fputs("</code>", html->out);
    if (*member->phase) {
        fputs("<div class=meta>", html->out);
        html_text(html, member->phase);
        fputs("</div>", html->out);
    }
}

struct rank_rows {
    bool *reported; /* members that a row is about */
    int rows, left; /* how many there are, and ranks for which there was no room */
};

/* Ranks in one state as one row. */
static void put_rows_of(const struct html *html, const struct rank_group *group,
                        enum standing standing, struct rank_rows *so_far)
{
    bool *reported = so_far->reported;
    for (int i = 0; i < group->count; i++) {
        struct rankset ranks = {0};
        if (reported[i] || group->member[i].standing != standing)
            continue;
        if (so_far->rows++ >= ROWS_MOST) {
            so_far->left++;
            continue;
        }
        for (int j = i; j < group->count; j++)
            if (!reported[j] && is_alike(&group->member[i], &group->member[j]))
                reported[j] = rankset_add(&ranks, group->member[j].shown_rank) == 0;
        put_rank_row(html, &group->member[i], &ranks);
        rankset_free(&ranks);
    }
}

/* The worst first. */
static void put_rows(const struct html *html, const struct rank_group *group)
{
    struct rank_rows rows = {.reported = calloc((size_t)group->count, sizeof *rows.reported)};
    fputs("<div class=wide><table><thead><tr><th scope=col>ranks<th scope=col>issued<th "
          "scope=col>started<th scope=col>done"
          "<th scope=col>where it is<th scope=col>last call</thead><tbody>",
          html->out);
    for (int standing = 0; rows.reported && standing < STANDINGS; standing++)
        put_rows_of(html, group, (enum standing)standing, &rows);
    if (rows.left)
        fprintf(html->out, "<tr><td colspan=6>and %d ranks more", rows.left);
    fputs("</table></div>", html->out);
    free(rows.reported);
}

/* The marks that occur. */
static void put_key(const struct html *html)
{
    const struct report *report = html->export->report;
    bool occurs[LOOKS] = {false};
    for (int i = 0; i < report->members; i++)
        occurs[look_of(&report->member[i])] = true;
    fputs("<ul class=key>", html->out);
    for (int i = 0; i < LOOKS; i++)
        if (occurs[i])
            fprintf(html->out, "<li class=%s><i>%s</i> %s", looks[i].class, looks[i].mark,
                    looks[i].what);
    fputs("</ul>", html->out);
}

static bool is_well(const struct rank_group *group)
{
    for (int i = 0; i < group->count; i++)
        if (group->member[i].standing < STANDS_DONE)
            return false;
    return true;
}

static void put_comm(const struct html *html, const struct rank_group *group)
{
    const struct export_comm *comm = names_comm(&html->names, group->member->comm);
    fprintf(html->out, "<h3>%s <span class=meta>%d ranks, <code>%s</code></span></h3>",
            comm ? comm->name : "communicator", group->member->nranks, comm ? comm->hex : "");
    bool is_dense = group->count >= DENSE_FROM; /* its few rows say more than its many cells */
    if (is_dense)
        put_rows(html, group);
    put_cells(html, group);
    if (!is_dense)
        put_rows(html, group);
}

/* The communicators in which no rank waits, or those in which one does; from the first-th on.
 * Returns how many there are. */
static int put_comms(const struct html *html, bool well, int first, int end)
{
    const struct report *report = html->export->report;
    int comms = 0;
    for (int at = 0; at < report->members;) {
        struct rank_group group = {&report->member[at], report_comm_members(report, at)};
        at += group.count;
        if (is_well(&group) != well)
            continue;
        if (comms >= first && comms < end)
            put_comm(html, &group);
        comms++;
    }
    return comms;
}

static void put_left_out(const struct html *html, int comms)
{
    if (comms > COMMS_MOST)
        fprintf(html->out, "<p>%d communicators more: <code>ddpcheck report</code> shows all.</p>",
                comms - COMMS_MOST);
}

/* First the communicators in which ranks wait: there may be more of them than fit. */
void html_ranks(const struct html *html)
{
    if (html->export->report->members == 0)
        return;
    fputs("<section id=ranks><h2>Where every rank is</h2>", html->out);
    put_key(html);
    put_left_out(html, put_comms(html, false, 0, COMMS_MOST));
    int well = put_comms(html, true, 0, WELL_SHOWN);
    if (well > WELL_SHOWN) {
        fprintf(html->out,
                "<details class=resolved><summary>%d more communicators, in which no rank waits"
                "</summary>",
                well - WELL_SHOWN);
        put_comms(html, true, WELL_SHOWN, COMMS_MOST);
        put_left_out(html, well);
        fputs("</details>", html->out);
    }
    fputs("</section>\n", html->out);
}

static void put_group(const struct html *html, const struct stack_group *group)
{
    const struct report *report = html->export->report;
    const struct report_standing *standing = group->first;
    const char *name = trace_string(report->trace, standing->process, standing->name);
    struct shown_frames frames;
    char text[RANKS_BYTES], called[256];
    int ranks = rankset_count(&group->ranks);
    fputs("<li><h4>", html->out);
    if (ranks) {
        fputs(ranks == 1 ? "Rank " : "Ranks ", html->out);
        html_rank_ranges(html, rankset_brief(&group->ranks, text, sizeof text));
    } else
        fprintf(html->out, "Process %d", trace_process(report->trace, standing->process)->pid);
    fputs("</h4><div><p class=call>", html->out);
    if (standing->flags & RECORD_THREAD_MAIN)
        fputs("main thread", html->out);
    else
        html_format(html, "%d %s, %s", group->threads, group->threads == 1 ? "thread" : "threads",
                    name ? name : "without a name");
    if (*standing_waits_in(report, standing, called, sizeof called))
        html_format(html, ", in %s", called);
    fputs("</p>", html->out);
    site_shown_frames(report->trace, standing->process, standing->stack, false, &frames);
    html_frames(html, &frames);
    fputs("</div>", html->out);
}

void html_stacks(const struct html *html)
{
    struct stack_group *groups;
    int count = stack_groups(html->export->report, &groups);
    if (count > 0) {
        fputs("<section id=stacks><h2>Where threads were when the job hung</h2><ul class=sides>",
              html->out);
        for (int i = 0; i < count && i < GROUPS_MOST; i++)
            put_group(html, &groups[i]);
        fputs("</ul></section>\n", html->out);
    }
    stack_groups_free(groups, count);
}
