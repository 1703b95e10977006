/* log_ends.c: how launchers saw processes end: exit statuses and signals. Who ended first is
 * torchelastic's to say (log_elastic.c). */
#include "lib/import/log_ends.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "lib/import/log_messages.h"
#include "lib/import/scan.h"

enum { SHELL_SIGNALS = 128, SIGNAL_MOST = 64, ENDED_BYTES = 64 };

static const char todo_killed[] =
    "SIGKILL comes from outside: as a rule from the kernel, which ran out of host memory (dmesg), "
    "or from the scheduler.";
static const char todo_terminal[] =
    "The terminal or connection in which it was started was closed: start it inside of tmux or "
    "screen, or from the scheduler. nohup does not help, since torchrun handles SIGHUP itself.";

static const struct end_meaning {
    int status;
    int how; /* of log_messages_add */
    const char *signal, *text, *todo;
} end_meanings[] = {
    {-SIGKILL, SAID_ERROR, "SIGKILL", "was killed by SIGKILL", todo_killed},
    {-SIGBUS, SAID_ERROR, "SIGBUS", "was killed by SIGBUS",
     "As a rule /dev/shm is full: docker run --shm-size or "
     "--ipc=host."},
    {-SIGSEGV, SAID_ERROR, "SIGSEGV", "was killed by SIGSEGV",
     "It crashed: look at its core dump, or run with PYTHONFAULTHANDLER=1."},
    {-SIGABRT, LOG_SAID_ENDED, "SIGABRT", "ended by SIGABRT",
     "PyTorch's watchdog and uncaught C++ exceptions end a process so: what it printed before "
     "counts."},
    {-SIGHUP, SAID_ERROR, "SIGHUP", "was ended by SIGHUP", todo_terminal},
    {-SIGINT, SAID_NOTE, "SIGINT", "was ended by SIGINT (Ctrl-C)",
     "Somebody ended it: look for why it did not go on before."},
    {-SIGTERM, LOG_SAID_ENDED, "SIGTERM", "was ended by SIGTERM",
     "Somebody else ended it: the scheduler, or the launcher of "
     "another node. Look for what came before."},
    {1, LOG_SAID_ENDED, NULL, "exited with status 1",
     "As a rule an exception: its traceback is above in the log, or in that rank's own file."},
};

static const struct end_meaning *find_meaning(int status)
{
    for (size_t i = 0; i < sizeof end_meanings / sizeof *end_meanings; i++)
        if (end_meanings[i].status == status)
            return &end_meanings[i];
    return NULL;
}

int log_end_describe(int status, char *text, size_t bytes, const char **todo)
{
    if (status > SHELL_SIGNALS && status <= SHELL_SIGNALS + SIGNAL_MOST)
        status = SHELL_SIGNALS - status;
    const struct end_meaning *meaning = find_meaning(status);
    *todo = meaning ? meaning->todo : "Look at what that rank printed last.";
    if (meaning)
        snprintf(text, bytes, "%s", meaning->text);
    else if (status < 0)
        snprintf(text, bytes, "was killed by signal %d", -status);
    else
        snprintf(text, bytes, "exited with status %d", status);
    return meaning ? meaning->how : LOG_SAID_ENDED;
}

/* {i:status}, {i:signal} or {w:name} or {r:how} of a signal says how it ended; {i:rank} which rank,
 * {i:local} which local one, {i:process} which of those that it started, {r:task} of srun. */
static const struct end_text {
    const char *template, *who;
    const char *whose, *behind; /* whose end it is; what is to be known about it */
    bool is_launcher;           /* it is no rank: what ended it comes from outside */
} end_texts[] = {
    {"{w:host} [20{r:}--local_rank={i:local}{r:}exits with return code = {i:status}", /* by pdsh */
     "DeepSpeed's launcher", "the process of",
     " (the last that it printed, perhaps not the first that failed)", false},
    {"--local_rank={i:local}{r:}exits with return code = {i:status}", "DeepSpeed's launcher",
     "the process of", " (the last that it printed, perhaps not the first that failed)", false},
    {"exits with return code = {i:status}", "DeepSpeed's launcher", "a process", "", false},
    {"rocess {i:process} terminated with signal {w:name}", "torch.multiprocessing", "", "", false},
    {"rocess {i:process} terminated with exit code {i:status}", "torch.multiprocessing", "", "",
     false},
    {"Received Signals.{w:name} death signal", "torchelastic", "the launcher", "", true},
    {"Received {i:signal} death signal", "torchelastic", "the launcher", "", true},
    {"command terminated with exit code {i:status}", "kubectl", "the container", "", false},
    {"srun: error: {r:host}: task{r:task}: Exited with exit code {i:status}", "srun", "", "",
     false},
    {"srun: error: {r:host}: task{r:task}: {r:how}", "srun", "", "", false},
    {"YOUR APPLICATION TERMINATED WITH THE EXIT STRING", "", "", "", false}, /* said before */
    {"mpirun noticed that process rank {i:rank} with PID {i:pid} on node {w:host} exited on "
     "signal {i:signal}",
     "mpirun", "", "", false},
    {"prterun noticed that process rank {i:rank} with PID {i:pid} on node {w:host} exited on "
     "signal {i:signal}",
     "prterun", "", "", false},
    {"MPI_ABORT was invoked on rank {i:rank} in communicator MPI_COMM_WORLD", "MPI", "",
     "called MPI_Abort", false},
    {"(rank {i:rank} in comm 0): application called MPI_Abort", "MPI", "", "called MPI_Abort",
     false},
    {"application called MPI_Abort(MPI_COMM_WORLD, {r:}) - process {i:rank}", "MPI", "",
     "called MPI_Abort", false},
};

/* Launchers of MPI write a block: the process, and in a later line how it ended. */
static const char *const block_processes[] = {
    "RANK {i:rank} PID {i:pid} RUNNING AT {w:host}", /* Intel MPI */
    "PID {i:pid} RUNNING AT {w:host}",               /* MPICH */
    "Process name: [[{r:}],{i:rank}]",               /* Open MPI 4 */
    "Process name: [prterun{r:}@{i:},{i:rank}]",     /* and 5 */
    "noticed that process rank {i:rank} with PID {i:pid} on node {w:host} exited on", /* broken */
};
static const struct end_text block_ends[] = {
    {"KILLED BY SIGNAL: {i:signal}", "mpiexec", "", "", false},
    {"EXIT STATUS: {i:status}", "mpiexec", "", "", false},
    {"EXIT CODE: {i:status}", "mpiexec", "", "", false},
    {"Exit code: {i:status}", "mpirun", "", "", false},
    {"signal {i:signal} (", "mpirun", "", "", false},
};

enum { LINES_BETWEEN = 4 };

struct log_ends {
    int open; /* lines until when the block's process counts */
    int64_t rank, pid;
    char host[ENDED_BYTES];
};

static const struct scanned_field *scanned_end_field(const struct scanned *found, const char *name)
{
    for (int i = 0; i < found->fields; i++)
        if (found->field[i].name_bytes == strlen(name) &&
            !memcmp(found->field[i].name, name, strlen(name)))
            return &found->field[i];
    return NULL;
}

/* As strsignal() has it, perhaps with more behind: "Segmentation fault (core dumped)". */
static int described_signal(const struct scanned *found)
{
    const struct scanned_field *how = scanned_end_field(found, "how");
    for (int signal = 1; how && signal < NSIG; signal++) {
        const char *words = strsignal(signal);
        if (words && how->bytes >= strlen(words) && !memcmp(how->text, words, strlen(words)))
            return signal;
    }
    return how && how->bytes >= 13 && !memcmp(how->text, "Out Of Memory", 13) ? SIGKILL : 0;
}

static int named_signal(const struct scanned *found)
{
    const struct scanned_field *name = scanned_end_field(found, "name");
    for (size_t i = 0; name && i < sizeof end_meanings / sizeof *end_meanings; i++) {
        const char *signal = end_meanings[i].signal;
        if (signal && name->bytes == strlen(signal) && !memcmp(name->text, signal, name->bytes))
            return -end_meanings[i].status;
    }
    return 0;
}

/* "rank 3 (pid 4711 on n02)", "task 12 (on node7)", "local rank 1". */
static void describe_ended(const struct log_ends *ends, const struct scanned *found, char *to,
                           size_t bytes)
{
    const struct scanned_field *task = scanned_end_field(found, "task");
    int64_t local = scanned_number(found, "local", -1),
            process = scanned_number(found, "process", -1);
    size_t used = 0;
    *to = '\0';
    if (ends->rank >= 0)
        used = (size_t)snprintf(to, bytes, "rank %lld", (long long)ends->rank);
    else if (local >= 0)
        used = (size_t)snprintf(to, bytes, " local rank %lld", (long long)local);
    else if (process >= 0)
        used = (size_t)snprintf(to, bytes, "process %lld of those that it started",
                                (long long)process);
    else if (task)
        used = (size_t)snprintf(to, bytes, "%stask%.*s", *task->text == 's' ? "each of " : "",
                                (int)task->bytes, task->text);
    else if (ends->pid > 0)
        used = (size_t)snprintf(to, bytes, "a process");
    if (used >= bytes || (ends->pid <= 0 && !*ends->host))
        return;
    if (ends->pid > 0)
        snprintf(to + used, bytes - used, " (pid %lld on %s)", (long long)ends->pid, ends->host);
    else
        snprintf(to + used, bytes - used, " on %s", ends->host);
}

static void learn_process(struct log_ends *ends, const struct scanned *found)
{
    const struct scanned_field *host = scanned_end_field(found, "host");
    ends->rank = scanned_number(found, "rank", ends->rank);
    ends->pid = scanned_number(found, "pid", ends->pid);
    if (host)
        snprintf(ends->host, sizeof ends->host, "%.*s",
                 (int)(host->bytes - (host->text[host->bytes - 1] == ':')), host->text);
}

static int report_end(struct log_job *job, const struct end_text *end, const struct scanned *found,
                      struct log_ends ends)
{
    char what[MESSAGE_BYTES], ended[ENDED_BYTES] = "", whose[2 * ENDED_BYTES];
    const char *todo = "Look at what that rank printed before: why it gave up.";
    bool has_called = strstr(end->behind, "MPI_Abort");
    learn_process(&ends, found);
    int64_t status = scanned_number(found, "status", 0) - scanned_number(found, "signal", 0) -
                     named_signal(found) - described_signal(found);
    if (!has_called && (!status || status > INT16_MAX || status < -SIGNAL_MOST))
        return 1;
    int how = has_called ? LOG_SAID_ENDED
                         : log_end_describe((int)status, ended, sizeof ended, &todo);
    if (end->is_launcher && how == LOG_SAID_ENDED)
        return 1;
    describe_ended(&ends, found, whose, sizeof whose);
    snprintf(what, sizeof what, "%s%s %s%s", end->whose, whose, ended, end->behind);
    struct log_speaker speaker = LOG_NOBODY;
    speaker.rank = (int)ends.rank;
    return log_messages_add(job, speaker, how, end->who, what, todo);
}

/* The status of the block's process, or the block's process. */
static int read_block_line(struct log_job *job, struct log_ends *ends, const char *text)
{
    struct scanned found;
    for (size_t i = 0; ends->open && i < sizeof block_ends / sizeof *block_ends; i++)
        if (scan(text, block_ends[i].template, &found)) {
            ends->open = 0;
            return report_end(job, &block_ends[i], &found, *ends);
        }
    for (size_t i = 0; i < sizeof block_processes / sizeof *block_processes; i++)
        if (scan(text, block_processes[i], &found)) {
            *ends = (struct log_ends){.open = LINES_BETWEEN, .rank = -1};
            learn_process(ends, &found);
            return 1;
        }
    ends->open -= ends->open > 0;
    return 0;
}

static int read_end_line(struct log_job *job, const char *text, size_t bytes)
{
    struct scanned found;
    (void)bytes;
    for (size_t i = 0; i < sizeof end_texts / sizeof *end_texts; i++)
        if (scan(text, end_texts[i].template, &found))
            return report_end(job, &end_texts[i], &found, (struct log_ends){.rank = -1});
    return read_block_line(job, job->state[LOG_ENDS], text);
}

const struct log_reader log_ends = {sizeof(struct log_ends), read_end_line, NULL};
