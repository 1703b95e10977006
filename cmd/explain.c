/* ddpcheck explain: the long text of a finding, for the terminal and for docs/findings. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/analyzer.h"
#include "analyzer/checks/hang/hang.h"
#include "analyzer/version_facts.h"
#include "cmd/options/codes.h"
#include "cmd/commands.h"
#include "cmd/explain.h"
#include "cmd/options/options.h"
#include "cmd/report/page.h"
#include "tests/suite/minimal.h"

/* The parts of the text, in the order in which they are read. */
struct section {
    const char *title;
    const char *text;
    const char *language;             /* of a listing; NULL for prose */
    const struct cause *causes;       /* instead of text: a list */
    const struct version_fact *facts; /* instead of text: the first fact of its code */
};

enum { SECTIONS = 9 };

static void sections_of(const struct check *check, struct section section[SECTIONS])
{
    const struct suite_minimal *program = suite_minimal_find(code_name(check->code));
    const struct section all[SECTIONS] = {
        {.text = check->text},
        {.title = "By version", .facts = version_fact_of_code(check->code, NULL)},
        {.title = "Usual causes, the most common first", .causes = check->causes},
        {.title = "Minimal reproducer", .text = check->example, .language = "c"},
        {.title = "Fix (C/CUDA)", .text = check->fix_c, .language = "c"},
        {.title = "Fix (PyTorch)", .text = check->fix_torch, .language = "python"},
        {.title = "Complete program", .text = program ? program->fault : NULL, .language = "c"},
        {.title = "Fix of the complete program",
         .text = program ? program->difference : NULL,
         .language = "diff"},
        {.title = "Source of the rule", .text = check->source},
    };
    memcpy(section, all, sizeof all);
}

static bool is_empty(const struct section *section)
{
    return !section->causes && !section->facts && (!section->text || !*section->text);
}

/* "With NCCL 2.26 and later: ... (NCCL 2.26 user guide, ...)"; the caller frees it. */
static char *fact_line(const struct version_fact *fact)
{
    char range[VERSION_RANGE_BYTES], *line = NULL;
    int status = asprintf(&line, "%s: %s (%s).", version_fact_range(fact, range, sizeof range),
                          fact->words, fact->source);
    return status < 0 ? NULL : line;
}

static void print_facts(const struct version_fact *fact, struct page *page)
{
    for (enum code code = fact->code; fact; fact = version_fact_of_code(code, fact)) {
        char *line = fact_line(fact);
        page_text(page, STYLE_PLAIN, "- ");
        page->indent = 2;
        page_words(page, STYLE_PLAIN, line ? line : fact->words);
        page_line(page);
        page->indent = 0;
        free(line);
    }
}

static void print_causes(const struct cause *cause, struct page *page)
{
    for (; cause->what; cause++) {
        page_text(page, STYLE_PLAIN, "- ");
        page->indent = 2;
        page_words(page, STYLE_PLAIN, cause->what);
        page_line(page);
        page->indent = 4;
        page_words(page, STYLE_FAINT, cause->look);
        page_line(page);
        page->indent = 0;
    }
}

static void print_section(const struct section *section, struct page *page)
{
    if (section->title) {
        page->indent = 0;
        page_words(page, STYLE_STRONG, section->title);
        page_gap(page);
    }
    page->indent = section->language ? 4 : 0;
    if (section->causes)
        print_causes(section->causes, page);
    else if (section->facts)
        print_facts(section->facts, page);
    else if (section->language)
        page_listing(page, STYLE_PLAIN, section->text);
    else
        page_paragraphs(page, section->text);
    page->indent = 0;
}

static void print_check(const struct check *check, struct page *page)
{
    struct section section[SECTIONS];
    sections_of(check, section);
    page_format(page, STYLE_STRONG, "%s: %s", code_name(check->code), check->title);
    page_format(page, STYLE_PLAIN, " (%s)", severity_name(check->severity));
    page_gap(page);
    for (int i = 0; i < SECTIONS; i++) {
        if (is_empty(&section[i]))
            continue;
        if (i > 0)
            putc('\n', page->out);
        print_section(&section[i], page);
    }
    page_line(page);
}

static void markdown_section(const struct section *section, FILE *out)
{
    if (section->title)
        fprintf(out, "## %s\n\n", section->title);
    if (section->causes) {
        for (const struct cause *cause = section->causes; cause->what; cause++)
            fprintf(out, "- %s *Look at:* %s\n", cause->what, cause->look);
        return;
    }
    if (section->facts) {
        const struct version_fact *fact = section->facts;
        for (enum code code = fact->code; fact; fact = version_fact_of_code(code, fact)) {
            char *line = fact_line(fact);
            fprintf(out, "- %s\n", line ? line : fact->words);
            free(line);
        }
        return;
    }
    const char *end = section->text[strlen(section->text) - 1] == '\n' ? "" : "\n";
    if (section->language)
        fprintf(out, "```%s\n%s%s```\n", section->language, section->text, end);
    else
        fprintf(out, "%s%s", section->text, end);
}

void explain_print_markdown(const struct check *check, FILE *out)
{
    struct section section[SECTIONS];
    sections_of(check, section);
    fprintf(out, "# %s: %s\n\nSeverity: %s. On the terminal: `ddpcheck explain %s`.\n",
            code_name(check->code), check->title, severity_name(check->severity),
            code_name(check->code));
    for (int i = 0; i < SECTIONS; i++) {
        if (is_empty(&section[i]))
            continue;
        putc('\n', out);
        markdown_section(&section[i], out);
    }
}

/* Of all codes, or of those that a pattern or the name of a family stands for. */
static void print_list(struct page *page, const char *codes)
{
    for (const struct check *check = check_next(NULL); check; check = check_next(check)) {
        if (!codes_have(codes, check->code))
            continue;
        page->indent = 16;
        page_text(page, STYLE_STRONG, code_name(check->code));
        page_column(page, 7);
        page_text(page, STYLE_PLAIN, severity_name(check->severity));
        page_column(page, 16);
        page_words(page, STYLE_PLAIN, check->title);
        page_line(page);
    }
}

/* The tables of hang_rules.c. */
static void print_hang_rules(void)
{
    puts("\n## How a hang is judged\n\nRanks that wait for each other are stuck together, and one "
         "of "
         "their waits is the root: a wait for a rank that exited, left or\nholds a group open, if "
         "there is one. Else it is a wait that is queued behind no other, for the fewest missing "
         "ranks, and of these\nthe one that began first. If the waits form a cycle, it is DC202 or "
         "DC203, unless a rank left a call out. Otherwise the first row\nthat applies says which "
         "finding the root is. A rank that is not stuck, only late, is DC210.\n\n| finding | where "
         "|\n| --- | --- |");
    for (uint32_t i = 0; i < hang_findings_count; i++)
        printf("| %s | %s |\n", code_name(hang_findings[i].code), hang_findings[i].when);
    puts("\nThe first row of the finding that applies says what to do:\n\n| finding | where | "
         "advice |\n| --- | --- | --- |");
    for (uint32_t i = 0; i < hang_rules_count; i++) {
        const struct hang_rule *rule = &hang_rules[i];
        struct finding finding = {.code = rule->code};
        if (!rule->advice ||
            finding_say(&finding, HEADLINE_NONE, rule->advice, &(struct values){.comm = NULL}))
            continue;
        printf("| %s | %s | %s |\n", rule->code ? code_name(rule->code) : "any", rule->when,
               finding.todo);
        finding_free(&finding);
    }
}

static void print_markdown_list(void)
{
    static const char *const families[] = {
        ['1'] = "Ranks call different operations",
        ['2'] = "Ranks wait forever",
        ['3'] = "Memory is used at the wrong time",
        ['4'] = "Devices, streams and communicators are misused",
        ['5'] = "The training loop differs between ranks",
        ['6'] = "Ranks are slow",
        ['9'] = "What a trace lacks, and what others report",
    };
    char before = 0;
    puts(
        "# Findings\n\nThis page lists every finding that ddpcheck reports, by what is wrong. The "
        "page "
        "of a code has its meaning, usual causes,\na minimal faulty program and the fix; `ddpcheck "
        "explain CODE` prints the same.");
    for (const struct check *check = check_next(NULL); check; check = check_next(check)) {
        char family = code_name(check->code)[2];
        if (family != before)
            printf("\n## %s\n\n| code | severity | what |\n| --- | --- | --- |\n",
                   families[(int)family]);
        before = family;
        printf("| [%s](%s.md) | %s | %s |\n", code_name(check->code), code_name(check->code),
               severity_name(check->severity), check->title);
    }
    print_hang_rules();
}

/* "DC2", "DC299" and "299" belong to the family of DC201: '2'. */
static char family_of(const char *code)
{
    return code[strncasecmp(code, "DC", 2) == 0 ? 2 : 0];
}

static void print_family(char family, FILE *out)
{
    for (const struct check *check = check_next(NULL); check; check = check_next(check))
        if (code_name(check->code)[2] == family)
            fprintf(out, "  %s  %s\n", code_name(check->code), check->title);
}

static int unknown_code(const struct command_options *options, const char *code)
{
    const char *nearest = codes_nearest(code);
    char family = family_of(code), meant[64] = "";
    if (nearest && (nearest[2] == family || !isdigit((unsigned char)family)))
        snprintf(meant, sizeof meant, " (did you mean %s?)", nearest);
    int status = options_usage_error(
        options, "no finding has the code '%s'%s; 'ddpcheck explain --list' shows all", code,
        meant);
    print_family(family, stderr);
    return status;
}

static int explain_codes(const struct command_options *options, int count, char **codes,
                         bool markdown, struct page *page)
{
    char item[64];
    for (int i = 0; i < count; i++)
        if (codes_unknown(codes[i], item, sizeof item))
            return unknown_code(options, codes[i]);
    for (int i = 0; i < count; i++) {
        if (i > 0)
            putchar('\n');
        const struct check *check = codes_find(codes[i]);
        if (!check)
            print_list(page, codes[i]);
        else if (markdown)
            explain_print_markdown(check, stdout);
        else
            print_check(check, page);
    }
    return STATUS_CLEAN;
}

int command_explain(int argc, char **argv)
{
    bool list = false, markdown = false;
    int color = COLOR_AUTO;
    const struct option_entry entries[] = {
        {"list", 'l', OPTION_FLAG, NULL, "show all codes", &list},
        {"markdown", 0, OPTION_FLAG, NULL, "print Markdown, as in docs/findings", &markdown},
        OPTION_COLOR(&color),
    };
    const struct command_options options = {
        .command = "explain",
        .arguments = "CODE...",
        .summary = "Explains a finding: what it means, its symptoms, an example, the fix.\n"
                   "For a family (hang, DC2xx) it lists the codes.",
        .entries = entries,
        .count = OPTION_COUNT(entries),
    };
    int status = options_parse(&options, &argc, &argv);
    if (status != OPTIONS_GO)
        return status;
    if (!list && argc == 0)
        return options_usage_error(&options,
                                   "missing CODE: 'ddpcheck explain DC201', or --list for all");
    struct page page;
    page_init(&page, stdout, (enum color_when)color);
    if (!list)
        return explain_codes(&options, argc, argv, markdown, &page);
    if (markdown)
        print_markdown_list();
    else
        print_list(&page, NULL);
    return STATUS_CLEAN;
}
