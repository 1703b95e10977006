/* otlp.c: what is served, as OpenTelemetry has it. Metrics are made of the text for Prometheus, so
 * that both have the same. */
#include "cmd/serve/otlp.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/serve/send.h"
#include "lib/base/clock.h"

enum {
    HEADERS_MOST = 16,
    HEADER_BYTES = 1024,
    NAME_BYTES = 128,
    INTERVAL_MS = 60000, /* the specification's default of OTEL_METRIC_EXPORT_INTERVAL */
    CUMULATIVE = 2       /* AGGREGATION_TEMPORALITY_CUMULATIVE of metrics.proto */
};

struct otlp {
    char *logs, *metrics; /* addresses */
    char header[HEADERS_MOST][HEADER_BYTES];
    const char *headers[HEADERS_MOST + 1];
    json_t *resource;
    uint64_t interval_ns, sent_ns, began_ns; /* began_ns: realtime; counters began at 0 then */
};

static json_t *text_attribute(const char *name, const char *text)
{
    return json_pack("{s:s,s:{s:s}}", "key", name, "value", "stringValue", text);
}

/* "%2C" becomes ",", in place. */
static void decode_percent(char *text)
{
    char *to = text;
    for (; *text; text++)
        if (*text == '%' && isxdigit((unsigned char)text[1]) && isxdigit((unsigned char)text[2])) {
            const char hex[] = {text[1], text[2], '\0'};
            *to++ = (char)strtol(hex, NULL, 16);
            text += 2;
        } else
            *to++ = *text;
    *to = '\0';
}

/* Calls take(context, name, value) for each of "name=value,name=value", which is W3C Baggage. */
static void visit_pairs(const char *pairs, void (*take)(void *, const char *, const char *),
                        void *context)
{
    char *copy = pairs ? strdup(pairs) : NULL, *rest = copy, *pair;
    while (rest && (pair = strsep(&rest, ","))) {
        char *value = strchr(pair, '=');
        pair += strspn(pair, " ");
        if (!value)
            continue;
        *value++ = '\0';
        pair[strcspn(pair, " ")] = '\0';
        decode_percent(value);
        take(context, pair, value + strspn(value, " "));
    }
    free(copy);
}

static void take_header(void *context, const char *name, const char *value)
{
    struct otlp *otlp = context;
    int count = 0;
    while (otlp->headers[count])
        count++;
    if (count == HEADERS_MOST || strpbrk(value, "\r\n"))
        return;
    snprintf(otlp->header[count], HEADER_BYTES, "%s: %s", name, value);
    otlp->headers[count] = otlp->header[count];
}

static void take_attribute(void *context, const char *name, const char *value)
{
    json_array_append_new(context, text_attribute(name, value));
}

static json_t *make_resource(void)
{
    const char *service = getenv("OTEL_SERVICE_NAME");
    json_t *attributes = json_array();
    take_attribute(attributes, "service.name", service && *service ? service : "ddpcheck");
    visit_pairs(getenv("OTEL_RESOURCE_ATTRIBUTES"), take_attribute, attributes);
    return json_pack("{s:o}", "attributes", attributes);
}

int otlp_open(struct otlp **result, struct error *err)
{
    const char *endpoint = getenv("OTEL_EXPORTER_OTLP_ENDPOINT");
    const char *interval = getenv("OTEL_METRIC_EXPORT_INTERVAL");
    *result = NULL;
    if (!endpoint || !*endpoint)
        return 0;
    if (strncmp(endpoint, "http://", 7) != 0 && strncmp(endpoint, "https://", 8) != 0)
        return error_set(err, "OTEL_EXPORTER_OTLP_ENDPOINT is no address of HTTP, such as "
                              "http://localhost:4318");
    if (send_check(endpoint, err) < 0)
        return -1;
    struct otlp *otlp = calloc(1, sizeof *otlp);
    int length = (int)strlen(endpoint);
    length -= endpoint[length - 1] == '/';
    if (!otlp || asprintf(&otlp->logs, "%.*s/v1/logs", length, endpoint) < 0 ||
        asprintf(&otlp->metrics, "%.*s/v1/metrics", length, endpoint) < 0 ||
        !(otlp->resource = make_resource())) {
        otlp_close(otlp);
        return error_memory(err, "can't send what OTEL_EXPORTER_OTLP_ENDPOINT asks for");
    }
    otlp->interval_ns = (uint64_t)(interval ? strtol(interval, NULL, 10) : INTERVAL_MS) * 1000000;
    otlp->began_ns = realtime_now_ns();
    visit_pairs(getenv("OTEL_EXPORTER_OTLP_HEADERS"), take_header, otlp);
    *result = otlp;
    return 0;
}

void otlp_close(struct otlp *otlp)
{
    if (!otlp)
        return;
    json_decref(otlp->resource);
    free(otlp->logs);
    free(otlp->metrics);
    free(otlp);
}

const char *otlp_logs_address(const struct otlp *otlp)
{
    return otlp->logs;
}

const char *const *otlp_headers(const struct otlp *otlp)
{
    return otlp->headers;
}

/* {outer: [{resource, scope: [{scope: ddpcheck, items: [...]}]}]}. Takes the items over. */
static char *wrap(const struct otlp *otlp, const char *outer, const char *scope, const char *items,
                  json_t *list)
{
    json_t *body = json_pack("{s:[{s:O,s:[{s:{s:s,s:s},s:o}]}]}", outer, "resource", otlp->resource,
                             scope, "scope", "name", "ddpcheck", "version", DDPCHECK_VERSION, items,
                             list);
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    json_decref(body);
    return text;
}

static json_t *nanoseconds_text(uint64_t ns)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, ns);
    return json_string(text);
}

char *otlp_log(const struct otlp *otlp, const json_t *finding)
{
    /* https://opentelemetry.io/docs/specs/otel/logs/data-model/#field-severitynumber */
    static const struct {
        const char *severity;
        int number;
    } numbers[] = {{"error", 17}, {"warning", 13}, {"note", 9}};
    static const char *const shown[] = {"code",  "state", "severity", "certainty",
                                        "ranks", "title", "todo",     "fingerprint"};
    const char *severity = json_string_value(json_object_get(finding, "severity"));
    const char *what = json_string_value(json_object_get(finding, "what"));
    json_t *attributes = json_array();
    int number = 0;
    for (size_t i = 0; severity && i < sizeof numbers / sizeof *numbers; i++)
        if (!strcmp(severity, numbers[i].severity))
            number = numbers[i].number;
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        char name[NAME_BYTES];
        const char *value = json_string_value(json_object_get(finding, shown[i]));
        snprintf(name, sizeof name, "ddpcheck.%s", shown[i]);
        if (value)
            json_array_append_new(attributes, text_attribute(name, value));
    }
    uint64_t now_ns = realtime_now_ns();
    return wrap(otlp, "resourceLogs", "scopeLogs", "logRecords",
                json_pack("[{s:o,s:o,s:i,s:s,s:{s:s},s:o}]", "timeUnixNano",
                          nanoseconds_text(now_ns), "observedTimeUnixNano",
                          nanoseconds_text(now_ns), "severityNumber", number, "severityText",
                          severity ? severity : "", "body", "stringValue", what ? what : "",
                          "attributes", attributes));
}

/* `{name="value",...}` as attributes; *at is behind it. */
static json_t *labels_of(const char **at)
{
    json_t *attributes = json_array();
    char name[NAME_BYTES], value[HEADER_BYTES];
    while (**at && **at != '}' && **at != '\n') {
        int bytes = 0;
        size_t length = 0;
        if (sscanf(*at, "%*1[{,]%127[^=]=\"%n", name, &bytes) != 1 || !bytes)
            break;
        for (*at += bytes; **at && **at != '"'; (*at)++) {
            bool is_escaped = **at == '\\' && (*at)[1];
            char byte = *(*at += is_escaped);
            if (length < sizeof value - 1)
                value[length++] = is_escaped && byte == 'n' ? '\n' : byte;
        }
        value[length] = '\0';
        *at += **at == '"';
        json_array_append_new(attributes, text_attribute(name, value));
    }
    *at += **at == '}';
    return attributes;
}

/* A line of a metric: name{labels} value. */
static json_t *point_of(const struct otlp *otlp, const char *line, size_t name_bytes)
{
    const char *at = line + name_bytes;
    json_t *attributes = labels_of(&at);
    return json_pack("{s:o,s:o,s:o,s:f}", "attributes", attributes, "startTimeUnixNano",
                     nanoseconds_text(otlp->began_ns), "timeUnixNano",
                     nanoseconds_text(realtime_now_ns()), "asDouble", strtod(at, NULL));
}

/* The metrics of a text for Prometheus, each with its HELP and TYPE before its lines. */
static json_t *metrics_of(const struct otlp *otlp, const char *line)
{
    json_t *metrics = json_array(), *points = NULL;
    char help[HEADER_BYTES] = "", name[NAME_BYTES], type[16];
    for (; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        if (sscanf(line, "# HELP %*s %1023[^\n]", help) == 1)
            continue;
        if (sscanf(line, "# TYPE %127s %15s", name, type) == 2) {
            points = json_array();
            bool is_counter = !strcmp(type, "counter");
            json_t *data = json_pack("{s:o}", "dataPoints", points);
            if (is_counter) {
                json_object_set_new(data, "aggregationTemporality", json_integer(CUMULATIVE));
                json_object_set_new(data, "isMonotonic", json_true());
            }
            json_array_append_new(metrics, json_pack("{s:s,s:s,s:o}", "name", name, "description",
                                                     help, is_counter ? "sum" : "gauge", data));
        } else if (points && *line != '#')
            json_array_append_new(points, point_of(otlp, line, strcspn(line, "{ ")));
    }
    return metrics;
}

void otlp_take_metrics(struct otlp *otlp, const char *metrics, size_t bytes, bool is_last)
{
    uint64_t now_ns = monotonic_now_ns();
    if (!is_last && otlp->sent_ns && now_ns - otlp->sent_ns < otlp->interval_ns)
        return;
    char *text = strndup(metrics, bytes);
    char *body =
        text ? wrap(otlp, "resourceMetrics", "scopeMetrics", "metrics", metrics_of(otlp, text))
             : NULL;
    send_text(otlp->metrics, otlp->headers, body, "metrics as OTEL_EXPORTER_OTLP_ENDPOINT asks");
    otlp->sent_ns = now_ns;
    free(body);
    free(text);
}
