/* choice.c: decides which findings are reported: codes, suppressions, baseline. */
#include "cmd/options/choice.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "cmd/options/codes.h"

struct known_finding {
    uint64_t fingerprint;
    bool met;
    UT_hash_handle hh;
};

static int check_codes(const char *option, const char *codes, struct error *err)
{
    char unknown[32];
    if (codes && codes_unknown(codes, unknown, sizeof unknown))
        return error_set(err,
                         "--%s: no finding has the code '%s' ('ddpcheck explain --list' shows all)",
                         option, unknown);
    return 0;
}

static int add_known(struct choice *choice, uint64_t fingerprint, struct error *err)
{
    struct known_finding *known;
    HASH_FIND(hh, choice->known, &fingerprint, sizeof fingerprint, known);
    if (known)
        return 0;
    known = calloc(1, sizeof *known);
    if (!known)
        return error_memory(err, "can't read %s", choice->options.baseline);
    known->fingerprint = fingerprint;
    HASH_ADD(hh, choice->known, fingerprint, sizeof known->fingerprint, known);
    return 0;
}

/* A line of another kind than a finding says nothing here. */
static int read_baseline_line(struct choice *choice, const char *text, int line, struct error *err)
{
    json_error_t why;
    json_t *object = json_loads(text, 0, &why);
    if (!object)
        return error_set(err, "%s:%d: this is no line of 'ddpcheck report --json': %s",
                         choice->options.baseline, line, why.text);
    const char *schema = json_string_value(json_object_get(object, "schema"));
    const char *fingerprint = json_string_value(json_object_get(object, "fingerprint"));
    int result = 0;
    char *end = NULL;
    if (!schema || strncmp(schema, "ddpcheck.", 9))
        result = error_set(
            err, "%s:%d: this is no line of 'ddpcheck report --json': it has no ddpcheck schema",
            choice->options.baseline, line);
    else if (!strncmp(schema, "ddpcheck.finding/", 17)) {
        uint64_t value = fingerprint ? strtoull(fingerprint, &end, 16) : 0;
        result = end && end != fingerprint && !*end
                     ? add_known(choice, value, err)
                     : error_set(err, "%s:%d: a finding without a fingerprint",
                                 choice->options.baseline, line);
    }
    json_decref(object);
    return result;
}

static int read_baseline(struct choice *choice, struct error *err)
{
    FILE *in = fopen(choice->options.baseline, "re");
    if (!in)
        return error_set(err, "can't read the baseline %s: %s", choice->options.baseline,
                         strerror(errno));
    char *text = NULL;
    size_t room = 0;
    int result = 0;
    errno = 0;
    for (int line = 1; result == 0 && getline(&text, &room, in) >= 0; line++)
        if (text[strspn(text, " \t\r\n")])
            result = read_baseline_line(choice, text, line, err);
    if (result == 0 && ferror(in))
        result = error_set(err, "can't read the baseline %s: %s", choice->options.baseline,
                           strerror(errno));
    free(text);
    fclose(in);
    return result;
}

int choice_load(struct choice *choice, const struct choice_options *options, struct error *err)
{
    *choice = (struct choice){.options = *options};
    if (!choice->options.suppressions)
        choice->options.suppressions = getenv("DDPCHECK_SUPPRESSIONS");
    const char *file = choice->options.suppressions;
    if (!check_codes("only", options->only, err) &&
        !check_codes("disable", options->disable, err) &&
        (!file || !*file || !suppressions_load(&choice->suppressions, file, err)) &&
        (!options->baseline || !read_baseline(choice, err)))
        return 0;
    choice_free(choice);
    return -1;
}

void choice_free(struct choice *choice)
{
    struct known_finding *known, *next;
    HASH_ITER(hh, choice->known, known, next) {
        HASH_DEL(choice->known, known);
        free(known);
    }
    suppressions_free(&choice->suppressions);
    *choice = (struct choice){0};
}

static bool is_wanted(const struct choice_options *options, const struct finding *finding)
{
    return codes_have(options->only, finding->code) &&
           !(options->disable && codes_have(options->disable, finding->code)) &&
           !(options->certain && finding->certainty == POSSIBLE);
}

static enum verdict judge_finding_options(const struct choice *choice,
                                          const struct finding *finding, struct trace *trace,
                                          struct suppression **line, struct known_finding **known)
{
    if (!is_wanted(&choice->options, finding))
        return NOT_WANTED;
    HASH_FIND(hh, choice->known, &finding->fingerprint, sizeof finding->fingerprint, *known);
    *line = suppressions_find(&choice->suppressions, finding, trace);
    if (*line)
        return SUPPRESSED;
    return *known ? KNOWN : REPORTED;
}

enum verdict choice_judge(const struct choice *choice, const struct finding *finding,
                          struct trace *trace)
{
    struct suppression *line;
    struct known_finding *known;
    return judge_finding_options(choice, finding, trace, &line, &known);
}

enum verdict choice_count(struct choice *choice, const struct finding *finding, struct trace *trace)
{
    struct suppression *line = NULL;
    struct known_finding *known = NULL;
    enum verdict verdict = judge_finding_options(choice, finding, trace, &line, &known);
    if (line)
        line->used++;
    if (known)
        known->met = true;
    choice->suppressed += verdict == SUPPRESSED;
    choice->known_again += verdict == KNOWN;
    return verdict;
}

int choice_gone(const struct choice *choice)
{
    int gone = 0;
    for (const struct known_finding *known = choice->known; known; known = known->hh.next)
        gone += !known->met;
    return gone;
}

int choice_words(const struct choice_options *options, const char **argv)
{
    const struct {
        const char *option, *value;
    } words[] = {{"--only", options->only},
                 {"--disable", options->disable},
                 {"--suppressions", options->suppressions},
                 {"--baseline", options->baseline}};
    int count = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!words[i].value)
            continue;
        argv[count++] = words[i].option;
        argv[count++] = words[i].value;
    }
    if (options->certain)
        argv[count++] = "--certain";
    return count;
}
