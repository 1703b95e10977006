#include "cmd/export/export.h"

const struct export_format export_formats[] = {
    {"jsonl", ".jsonl", "findings and members, JSON lines for scripts (docs/json.md)",
     export_jsonl},
    {"sarif", ".sarif", "findings for code scanning (SARIF 2.1.0)", export_sarif},
    {"junit", ".xml", "findings as test results, a case for each code", export_junit},
    {"github", "", "findings as workflow commands, which annotate a pull request", export_github},
    {"chrome", ".trace.json .json",
     "a timeline for Perfetto's UI, chrome://tracing, scripts for Kineto", export_chrome},
    {"perfetto", ".pftrace .perfetto-trace", "the same timeline, smaller (protobuf)",
     export_perfetto},
    {"prometheus", ".prom", "counts for node_exporter's textfile directory", export_prometheus},
    {"html", ".html .htm", "a page for tickets: findings, ranks, timeline; one file, no network",
     export_html},
    {"csv", ".csv", "operations, a row each", export_csv},
    {0},
};
