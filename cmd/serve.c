/* ddpcheck serve: a live page of a trace, its metrics and its report, for browsers and
 * Prometheus. */
#include <stdio.h>
#include <string.h>

#include "cmd/commands.h"
#include "cmd/options/options.h"
#include "cmd/serve/serve_loop.h"

static char usual_trace[] = "ddpcheck-trace"; /* where `ddpcheck run` puts it without -o */

int command_serve(int argc, char **argv)
{
    struct serve_request request = {.listen = "127.0.0.1:4280"};
    char *usual[] = {usual_trace, NULL};
    const struct option_entry entries[] = {
        {"listen", 'l', OPTION_TEXT, "ADDRESS:PORT",
         "where readers come (default: 127.0.0.1:4280; port 0: one that is free; '': nowhere)",
         &request.listen},
        {"token-file", 0, OPTION_TEXT, "FILE",
         "file with the token that readers bring (default: for other than local addresses a random "
         "one)",
         &request.token_file},
        {"tls-cert", 0, OPTION_TEXT, "FILE", "certificate of this host: HTTPS", &request.tls_cert},
        {"tls-key", 0, OPTION_TEXT, "FILE", "its private key", &request.tls_key},
        {"notify", 0, OPTION_TEXT, "COMMAND|URL",
         "run or POST to once for each certain error and its withdrawal, with the JSON finding",
         &request.notify},
        {"metrics-file", 0, OPTION_TEXT, "FILE",
         "also write /metrics into FILE, for the textfile directory of node_exporter",
         &request.metrics_file},
        {"beside-program", 0, OPTION_FLAG, NULL, NULL, &request.is_beside_program},
        CHOICE_ENTRIES(request.reading.choice, true),
        {"hang-after", 0, OPTION_SECONDS, "S",
         "seconds without progress that are a hang (default: as when recorded)",
         &request.reading.hang_after_s},
    };
    const struct command_options options = {
        .command = "serve",
        .arguments = "[DIR|DATABASE|nats://...]",
        .summary = "Shows a trace as a page that stays up to date, also while the job runs, until "
                   "it is interrupted.\n"
                   "DIR defaults to ddpcheck-trace; it may come later.",
        .details =
            "Prints the page's address. Beside the page there are:\n"
            "  /metrics       counters, gauges and findings for Prometheus\n"
            "  /report.jsonl  what 'report --json' prints\n"
            "  /healthz       \"ok\", without a token\n"
            "\n"
            "A local address needs no token. Any other address does: the printed one has it; "
            "programs send\n"
            "'Authorization: Bearer TOKEN'. It needs libmicrohttpd (Debian: "
            "libmicrohttpd12).\n"
            "With OTEL_EXPORTER_OTLP_ENDPOINT in the environment, metrics and findings are sent "
            "there as well.\n"
            "See docs/operate.md.\n",
        .entries = entries,
        .count = OPTION_COUNT(entries),
    };
    int status = options_parse(&options, &argc, &argv);
    if (status != OPTIONS_GO)
        return status;
    if (!request.tls_cert != !request.tls_key)
        return options_usage_error(&options, "--tls-cert and --tls-key belong together");
    request.reading.paths = argc ? argv : usual;
    request.reading.count = argc ? argc : 1;
    struct error err = {{0}};
    return serve_until_stopped(&request, &err) < 0 ? command_fail(&err) : STATUS_CLEAN;
}
