/* notify.c: finds which errors of a report are new, and sends them. */
#include "cmd/serve/notify.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "cmd/serve/otlp.h"
#include "cmd/serve/send.h"
#include "lib/base/array.h"

struct notified {
    json_t *finding;
    bool is_open; /* in the report at hand */
};

static void send_finding(const struct notifier *notifier, const json_t *finding)
{
    char *text = notifier->otlp ? otlp_log(notifier->otlp, finding)
                                : json_dumps(finding, JSON_COMPACT);
    send_text(notifier->target, notifier->otlp ? otlp_headers(notifier->otlp) : NULL, text,
              notifier->otlp ? "a finding as OTEL_EXPORTER_OTLP_ENDPOINT asks"
                             : "a finding as --notify asks");
    free(text);
}

static bool has_text(const json_t *finding, const char *name, const char *text)
{
    const char *value = json_string_value(json_object_get(finding, name));
    return value && !strcmp(value, text);
}

static struct notified *find_notified(struct notifier *notifier, const json_t *finding)
{
    const char *fingerprint = json_string_value(json_object_get(finding, "fingerprint"));
    for (size_t i = 0; fingerprint && i < notifier->count; i++)
        if (has_text(notifier->sent[i].finding, "fingerprint", fingerprint))
            return &notifier->sent[i];
    return NULL;
}

static void take_finding(struct notifier *notifier, json_t *finding)
{
    struct notified *known = find_notified(notifier, finding);
    bool is_certain = has_text(finding, "severity", "error") &&
                      has_text(finding, "certainty", "certain");
    if (!has_text(finding, "state", "open") || (!is_certain && !notifier->otlp))
        return;
    if (known) {
        known->is_open = true;
        return;
    }
    if (ARRAY_RESERVE(notifier->sent, notifier->capacity, notifier->count + 1)) {
        notifier->sent[notifier->count++] = (struct notified){json_incref(finding), true};
        send_finding(notifier, finding);
    }
}

static void drop_withdrawn(struct notifier *notifier)
{
    for (size_t i = notifier->count; i-- > 0;) {
        json_t *finding = notifier->sent[i].finding;
        if (notifier->sent[i].is_open)
            continue;
        json_object_set_new(finding, "state", json_string("resolved"));
        send_finding(notifier, finding);
        json_decref(finding);
        notifier->sent[i] = notifier->sent[--notifier->count];
    }
}

void notifier_take(struct notifier *notifier, const char *report, size_t bytes)
{
    static const char begin[] = "{\"schema\":\"ddpcheck.finding/";
    const char *end = report + bytes;
    for (size_t i = 0; i < notifier->count; i++)
        notifier->sent[i].is_open = false;
    while (notifier->target && report < end) {
        const char *line_end = memchr(report, '\n', (size_t)(end - report));
        size_t length = (size_t)((line_end ? line_end : end) - report);
        json_t *finding = length > strlen(begin) && !memcmp(report, begin, strlen(begin))
                              ? json_loadb(report, length, 0, NULL)
                              : NULL;
        if (finding)
            take_finding(notifier, finding);
        json_decref(finding);
        report += length + 1;
    }
    drop_withdrawn(notifier);
}

void notifier_free(struct notifier *notifier)
{
    for (size_t i = 0; i < notifier->count; i++)
        json_decref(notifier->sent[i].finding);
    free(notifier->sent);
}
