/* otlp.h: OpenTelemetry's protocol over HTTP with JSON: metrics, and findings as log records
 * (https://opentelemetry.io/docs/specs/otlp, "OTLP/HTTP"). Where and as what: by the variables that
 * all programs with OpenTelemetry read
 * (https://opentelemetry.io/docs/specs/otel/protocol/exporter). */
#ifndef DDPCHECK_SERVE_OTLP_H
#define DDPCHECK_SERVE_OTLP_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"

struct otlp;

/* Reads OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS, OTEL_RESOURCE_ATTRIBUTES,
 * OTEL_SERVICE_NAME and OTEL_METRIC_EXPORT_INTERVAL. Returns 0 (otlp_close it; NULL where there is
 * no endpoint), or -1 with err. */
int otlp_open(struct otlp **otlp, struct error *err);
void otlp_close(struct otlp *otlp);

/* Where log records go. Valid as long as otlp. */
const char *otlp_logs_address(const struct otlp *otlp);
/* "Name: value", NULL at the end. */
const char *const *otlp_headers(const struct otlp *otlp);
/* A finding of `report --json` as the body of a request; the caller frees it. NULL: no memory. */
char *otlp_log(const struct otlp *otlp, const json_t *finding);
/* Sends the metrics of /metrics, at most once an interval unless this is the last time. */
void otlp_take_metrics(struct otlp *otlp, const char *metrics, size_t bytes, bool is_last);

#endif
