/* ddpcheck mcp: lets an agent ask about a trace: JSON-RPC on standard input and output, by the
 * Model Context Protocol (https://modelcontextprotocol.io, its transport "stdio"). Each answer is
 * what a command of ddpcheck prints, so that it is the same as people get. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "cmd/commands.h"
#include "cmd/options/options.h"

enum {
    ANSWER_BYTES = 256 << 10, /* more is cut: an agent reads about 64,000 tokens of it */
    WORDS_MOST = 8,
    QUERY_SECONDS = 60, /* of a processor: a query that never ends would keep the agent waiting */
    QUERY_BYTES = 64 << 20,
    /* https://www.jsonrpc.org/specification, "Error object" */
    ERROR_PARSE = -32700,
    ERROR_REQUEST = -32600,
    ERROR_METHOD = -32601,
    ERROR_PARAMETERS = -32602
};

/* The first is the newest; a client that asks for another of them gets that. */
static const char *const versions[] = {"2025-06-18", "2025-03-26", "2024-11-05"};

static const struct mcp_tool {
    const char *name, *description;
    const char *words[4];  /* of the command, before the trace */
    bool takes_trace;      /* the trace is a word */
    const char *schema;    /* of the lines that are kept; NULL: all are */
    const char *parameter; /* a text, the last word; NULL: none */
    const char *meaning;   /* of the parameter */
} tools[] = {
    {"findings",
     "What is wrong with the job, worst first: JSON lines, each with what happened, which ranks "
     "did what and where, and how to fix it. Call it first. None: nothing was found.",
     {"report", "--json", "--allow-missing"},
     true,
     "ddpcheck.finding/",
     NULL,
     NULL},
    {"ranks",
     "Where every rank is, by communicator: calls made, started and done, the call that it is in, "
     "and its source location.",
     {"report", "--json", "--allow-missing"},
     true,
     "ddpcheck.member/",
     NULL,
     NULL},
    {"stacks",
     "Where threads were when the job hung, equal stacks as one group.",
     {"report", "--json", "--allow-missing"},
     true,
     "ddpcheck.stack/",
     NULL,
     NULL},
    {"sql",
     "Rows of the trace as JSON, read-only. Views: v_collective (label, rank, name, count, "
     "begin_ns, end_ns, state), v_finding and others; \"SELECT name, sql FROM sqlite_schema\" "
     "lists them.",
     {"sql", "--json", "--"},
     true,
     NULL,
     "query",
     "One SELECT of SQLite."},
    {"explain",
     "What a finding's code means: cause, minimal reproducer, fix.",
     {"explain", "--"},
     false,
     NULL,
     "code",
     "A code such as DC201."},
};
enum { TOOLS = sizeof tools / sizeof *tools };

static json_t *list_tools(void)
{
    json_t *list = json_array();
    for (int i = 0; i < TOOLS; i++) {
        const struct mcp_tool *tool = &tools[i];
        json_t *properties = json_object(), *required = json_array();
        if (tool->parameter) {
            json_object_set_new(
                properties, tool->parameter,
                json_pack("{s:s,s:s}", "type", "string", "description", tool->meaning));
            json_array_append_new(required, json_string(tool->parameter));
        }
        json_array_append_new(
            list, json_pack("{s:s,s:s,s:{s:s,s:o,s:o,s:b},s:{s:b}}", "name", tool->name,
                            "description", tool->description, "inputSchema", "type", "object",
                            "properties", properties, "required", required, "additionalProperties",
                            0, "annotations", "readOnlyHint", 1));
    }
    return json_pack("{s:o}", "tools", list);
}

/* Runs this program with the words. *text is what it prints, for the caller to free; what it prints
 * to stderr where it failed. Returns its status, or -1. */
static int run_words(const char *const *words, char **text)
{
    struct stat size[2] = {{0}};
    int output[2] = {memfd_create("ddpcheck", MFD_CLOEXEC), memfd_create("ddpcheck", MFD_CLOEXEC)};
    int status = -1;
    fflush(stdout);
    pid_t pid = output[0] >= 0 && output[1] >= 0 ? fork() : -1;
    if (pid == 0) {
        const struct rlimit seconds = {QUERY_SECONDS, QUERY_SECONDS};
        const struct rlimit bytes = {QUERY_BYTES, QUERY_BYTES};
        setrlimit(RLIMIT_CPU, &seconds);
        setrlimit(RLIMIT_FSIZE, &bytes);
        if (dup2(output[0], STDOUT_FILENO) >= 0 && dup2(output[1], STDERR_FILENO) >= 0 &&
            freopen("/dev/null", "r", stdin))
            execv("/proc/self/exe", (char *const *)(uintptr_t)words);
        _exit(STATUS_USAGE);
    }
    if (pid > 0 && waitpid(pid, &status, 0) == pid)
        status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    int shown = status == STATUS_USAGE || status < 0;
    *text = fstat(output[shown], &size[shown]) == 0 ? calloc(1, (size_t)size[shown].st_size + 1)
                                                    : NULL;
    if (*text && pread(output[shown], *text, (size_t)size[shown].st_size, 0) < 0)
        status = -1;
    close(output[0]);
    close(output[1]);
    return status;
}

/* Keeps the lines of the schema, in place. */
static void keep_lines(char *text, const char *schema)
{
    static const char begin[] = "{\"schema\":\"";
    char *to = text;
    for (const char *line = text; *line;) {
        size_t bytes = strcspn(line, "\n");
        bytes += line[bytes] == '\n';
        if (!strncmp(line, begin, strlen(begin)) &&
            !strncmp(line + strlen(begin), schema, strlen(schema))) {
            memmove(to, line, bytes);
            to += bytes;
        }
        line += bytes;
    }
    *to = '\0';
}

/* Ends a text that is too long at the end of a line, and says so. */
static void cut_text(char *text)
{
    static const char note[] = "\n(cut: ask for less, for example with sql and LIMIT)\n";
    if (strlen(text) <= ANSWER_BYTES)
        return;
    char *end = text + ANSWER_BYTES - sizeof note;
    while (end > text && *end != '\n')
        end--;
    memcpy(end, note, sizeof note);
}

static json_t *call_tool(const struct mcp_tool *tool, const char *trace, const char *argument)
{
    const char *words[WORDS_MOST] = {"ddpcheck"};
    char *text = NULL;
    int count = 1;
    for (const char *const *word = tool->words; *word; word++)
        words[count++] = *word;
    if (tool->takes_trace)
        words[count++] = trace;
    if (argument)
        words[count] = argument;
    int status = run_words(words, &text);
    bool failed = status < 0 || status == STATUS_USAGE || !text;
    if (!failed && tool->schema)
        keep_lines(text, tool->schema);
    if (text)
        cut_text(text);
    const char *shown = failed ? "it took more than 60 s or 64 MB, or memory is short" : "none";
    if (text && *text)
        shown = text;
    json_t *result = json_pack("{s:[{s:s,s:s}],s:b}", "content", "type", "text", "text", shown,
                               "isError", failed);
    free(text);
    return result;
}

/* NULL with *code and *why where the parameters are wrong. */
static json_t *take_call(const json_t *parameters, const char *trace, int *code, const char **why)
{
    const char *name = json_string_value(json_object_get(parameters, "name"));
    const json_t *arguments = json_object_get(parameters, "arguments");
    *code = ERROR_PARAMETERS;
    *why = "no such tool";
    for (int i = 0; name && i < TOOLS; i++) {
        if (strcmp(name, tools[i].name) != 0)
            continue;
        const char *argument =
            tools[i].parameter ? json_string_value(json_object_get(arguments, tools[i].parameter))
                               : NULL;
        *why = "a parameter is missing, or is no text";
        if (!tools[i].parameter || argument)
            return call_tool(&tools[i], trace, argument);
    }
    return NULL;
}

static json_t *greet_agent(const json_t *parameters)
{
    const char *asked = json_string_value(json_object_get(parameters, "protocolVersion"));
    const char *version = versions[0];
    for (size_t i = 0; asked && i < sizeof versions / sizeof *versions; i++)
        if (!strcmp(asked, versions[i]))
            version = versions[i];
    return json_pack("{s:s,s:{s:{}},s:{s:s,s:s}}", "protocolVersion", version, "capabilities",
                     "tools", "serverInfo", "name", "ddpcheck", "version", DDPCHECK_VERSION);
}

static void answer_line(const char *line, const char *trace)
{
    json_t *request = json_loads(line, 0, NULL), *result = NULL;
    const json_t *id = json_object_get(request, "id");
    const json_t *parameters = json_object_get(request, "params");
    const char *method = json_string_value(json_object_get(request, "method"));
    const char *why = request ? "no request" : "no JSON";
    int code = request ? ERROR_REQUEST : ERROR_PARSE;
    if (method && !id) { /* a notification: nothing is answered */
        json_decref(request);
        return;
    }
    if (method) {
        code = ERROR_METHOD;
        why = "no such method";
        if (!strcmp(method, "initialize"))
            result = greet_agent(parameters);
        else if (!strcmp(method, "ping"))
            result = json_object();
        else if (!strcmp(method, "tools/list"))
            result = list_tools();
        else if (!strcmp(method, "tools/call"))
            result = take_call(parameters, trace, &code, &why);
    }
    json_t *answer = result
                         ? json_pack("{s:s,s:O?,s:o}", "jsonrpc", "2.0", "id", id, "result", result)
                         : json_pack("{s:s,s:O?,s:{s:i,s:s}}", "jsonrpc", "2.0", "id", id, "error",
                                     "code", code, "message", why);
    if (answer && json_dumpf(answer, stdout, JSON_COMPACT) == 0)
        putchar('\n');
    fflush(stdout);
    json_decref(answer);
    json_decref(request);
}

int command_mcp(int argc, char **argv)
{
    const struct command_options options = {
        .command = "mcp",
        .arguments = "[DIR|DATABASE|nats://...]",
        .summary = "Answers an agent's questions about a trace, by the Model Context Protocol on "
                   "standard input and\noutput. DIR defaults to ddpcheck-trace.",
        .details = "The tools are findings, ranks, stacks, sql (read-only) and explain.\n",
    };
    int status = options_parse(&options, &argc, &argv);
    if (status != OPTIONS_GO)
        return status;
    if (argc > 1)
        return options_usage_error(&options, "it takes one trace");
    const char *trace = argc ? argv[0] : "ddpcheck-trace";
    char *line = NULL;
    size_t capacity = 0;
    while (getline(&line, &capacity, stdin) > 0)
        answer_line(line, trace);
    free(line);
    return STATUS_CLEAN;
}
