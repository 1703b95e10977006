/* view.c: the list of views and the marks that they use. */
#include "tui/view.h"

#include <string.h>
#include <strings.h>

const struct view views[VIEWS] = {
    [VIEW_NOW] =
        {"Now",
         "Where every rank of every communicator stands, those that hold up the others first.",
         model_now,
         {{"Enter", "the communicator's sequence, or the rank"}}},
    [VIEW_FINDINGS] = {"Findings",
                       "What was found, the worst first.",
                       model_findings,
                       {{"Enter", "the finding: both sides, stacks, the fix"},
                        {"e", "what it means and how to fix it"}}},
    [VIEW_SEQUENCE] = {"Sequence",
                       "The operations of one communicator. A mark per rank: like most, different, "
                       "not called yet.",
                       model_sequence,
                       {{"d", "the first place where ranks differ"},
                        {"c C", "next, previous communicator"},
                        {"G", "the last"},
                        {"g", "the first"}}},
    [VIEW_RANKS] = {"Ranks",
                    "The processes: where they are, how late they come, what they lost.",
                    model_ranks,
                    {{"Enter", "the rank: communicators, streams, stacks"}}},
    [VIEW_WAITS] = {"Waits",
                    "Who waits for whom, as a tree: below each wait what it waits for.",
                    model_waits,
                    {{NULL, NULL}}},
    [VIEW_TIMELINE] = {"Timeline",
                       "Operations in flight over time, a line per rank.",
                       model_timeline,
                       {{"+ -", "closer, wider"},
                        {"< >", "earlier, later"},
                        {"c C", "next, previous communicator"},
                        {"0", "all of it"}}},
    [VIEW_MEMORY] = {"Memory",
                     "Memory that operations use, and what was found about it.",
                     model_memory,
                     {{NULL, NULL}}},
    [VIEW_SPEED] = {"Speed",
                    "Who makes others wait: own time beyond the peers', why, and since when.",
                    model_speed,
                    {{"Enter", "why: the finding, or else the rank"}}},
    [VIEW_FINDING] = {"Finding",
                      "One finding: what each side did, side by side.",
                      model_finding,
                      {{"e", "what it means and how to fix it"}, {"Esc", "back"}}},
    [VIEW_RANK] = {"Rank",
                   "One process: its communicators, its streams, its stacks.",
                   model_rank,
                   {{"Esc", "back"}}},
    [VIEW_EXPLAIN] = {"Explain",
                      "What a finding means and how to fix it.",
                      model_explain,
                      {{"Esc", "back"}}},
};

int view_find(const char *name)
{
    for (int i = 0; i < VIEWS_NUMBERED; i++)
        if (!strcasecmp(views[i].name, name))
            return i;
    return -1;
}

const struct signs *signs_of(const struct query *query)
{
    static const struct signs wide = {
        .done = "·",
        .started = "▶",
        .issued = "○",
        .behind = "◔",
        .missing = "!",
        .exited = "✗",
        .unseen = "?",
        .same = "=",
        .differs = "≠",
        .bar = "█",
        .dot = "·",
    };
    static const struct signs plain = {
        .done = ".",
        .started = ">",
        .issued = "o",
        .behind = "b",
        .missing = "!",
        .exited = "x",
        .unseen = "?",
        .same = "=",
        .differs = "#",
        .bar = "#",
        .dot = ".",
    };
    return query->ascii ? &plain : &wide;
}
