/* model_rules.c: reads the settings of the model from the environment. */
#include "emu/core/model_rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRY_BYTES = 128 };

static const char *const examples[] = {
    [MODEL_FACTOR] = "1=0.5,2=0.25@30",
    [MODEL_RATE] = "0-1=50M,2=1G,all=4G@30",
    [MODEL_SECONDS] = "all=0.001,1=0.002",
    [MODEL_PAUSE] = "1=0.2/50,2=0.1/5s",
};

/* A number above 0, at *text, which goes on behind it. */
static bool read_positive(const char **text, double *number)
{
    char *end;
    errno = 0;
    *number = strtod(*text, &end);
    bool is_number = end > *text && !errno && *number > 0 && *number < 1e15;
    *text = end;
    return is_number;
}

/* With a unit of the metric system, as rates have. */
static void read_unit(const char **text, double *number)
{
    static const struct {
        char unit;
        double factor;
    } units[] = {{'K', 1e3}, {'M', 1e6}, {'G', 1e9}};
    for (unsigned i = 0; i < sizeof units / sizeof units[0]; i++)
        if ((**text & ~0x20) == units[i].unit) {
            *number *= units[i].factor;
            ++*text;
            return;
        }
}

static bool read_device(const char **text, int *device)
{
    char *end;
    long number = strtol(*text, &end, 10);
    bool is_device = **text >= '0' && **text <= '9' && number < 1 << 16;
    *device = (int)number;
    *text = end;
    return is_device;
}

static bool read_where(const char **text, enum model_value value, struct model_rule *rule)
{
    rule->device = rule->peer = MODEL_ANY;
    if (strncmp(*text, "all", 3) == 0)
        *text += 3;
    else if (!read_device(text, &rule->device))
        return false;
    if (value == MODEL_RATE && rule->device != MODEL_ANY && **text == '-') {
        ++*text;
        return read_device(text, &rule->peer);
    }
    return true;
}

static bool read_every(const char **text, struct model_rule *rule)
{
    double every;
    if (*(*text)++ != '/' || !read_positive(text, &every))
        return false;
    rule->is_time = **text == 's';
    *text += rule->is_time;
    rule->every = (uint64_t)(rule->is_time ? every * 1e9 : every);
    return rule->every > 0;
}

static bool read_rule(const char *text, enum model_value value, struct model_rule *rule)
{
    double from;
    *rule = (struct model_rule){0};
    if (!read_where(&text, value, rule) || *text++ != '=' || !read_positive(&text, &rule->value))
        return false;
    if (value == MODEL_RATE)
        read_unit(&text, &rule->value);
    if (value == MODEL_PAUSE && !read_every(&text, rule))
        return false;
    if (*text == '@') {
        text++;
        if (!read_positive(&text, &from))
            return false;
        if (strncmp(text, "th", 2) == 0) {
            rule->from_operation = (uint64_t)from;
            text += 2;
        } else {
            rule->from_ns = (uint64_t)(from * 1e9);
        }
    }
    return *text == 0;
}

void model_rules_read(struct model_rules *rules, const char *variable, enum model_value value)
{
    const char *text = getenv(variable);
    rules->count = 0;
    while (text && *text) {
        size_t length = strcspn(text, ",");
        char entry[ENTRY_BYTES];
        bool fits = length < sizeof entry && rules->count < MODEL_RULES_MAX;
        snprintf(entry, sizeof entry, "%.*s", (int)length, text);
        if (fits && read_rule(entry, value, &rules->rule[rules->count]))
            rules->count++;
        else
            fprintf(stderr, "ddpcheck emu: %s: '%s' makes no sense; an example is %s\n", variable,
                    entry, examples[value]);
        text += length + (text[length] == ',');
    }
}

/* The last one in force of (device, peer). */
static const struct model_rule *find_model_rule(const struct model_rules *rules, int device,
                                                int peer, struct model_time now)
{
    for (int i = rules->count; i-- > 0;) {
        const struct model_rule *rule = &rules->rule[i];
        if (rule->device == device && rule->peer == peer && now.ns >= rule->from_ns &&
            now.operations >= rule->from_operation)
            return rule;
    }
    return NULL;
}

const struct model_rule *model_rules_of_device(const struct model_rules *rules, int device,
                                               struct model_time now)
{
    const struct model_rule *rule = find_model_rule(rules, device, MODEL_ANY, now);
    return rule ? rule : find_model_rule(rules, MODEL_ANY, MODEL_ANY, now);
}

const struct model_rule *model_rules_of_pair(const struct model_rules *rules, int device, int peer,
                                             struct model_time now)
{
    const struct model_rule *rule = find_model_rule(rules, device, peer, now);
    return rule ? rule : find_model_rule(rules, peer, device, now);
}
