/* run_failed.c: sends the collector how the job's program failed, and which functions its libraries
 * lack: ld.so ends a program that calls one with status 127, before it can say anything. */
#include "cmd/run_failed.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/doctor/elf_file.h"

enum { FUNCTIONS_BYTES = 120, LINE_BYTES_MAX = 512, LIST_SECONDS = 20, SYMBOL_BYTES = 256 };

/* As `ldd -r`: ld.so maps the libraries, looks all functions up, and runs nothing. */
static void become_search(const char *program, const char *interpreter, int output)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    int null = open("/dev/null", O_WRONLY);
    dup2(null, STDOUT_FILENO); /* the list of libraries */
    dup2(output, STDERR_FILENO);
    alarm(LIST_SECONDS);
    setenv("LD_TRACE_LOADED_OBJECTS", "1", 1);
    setenv("LD_WARN", "yes", 1);
    setenv("LD_BIND_NOW", "yes", 1);
    execl(interpreter, interpreter, program, (char *)NULL);
    _exit(JOB_NOT_FOUND);
}

/* Adds the names of lines such as "undefined symbol: cudaFoo\t(./prog)", separated by commas, as
 * many as there is room for. */
static void read_undefined(FILE *list, char functions[FUNCTIONS_BYTES])
{
    char line[LINE_BYTES_MAX], name[SYMBOL_BYTES];
    while (fgets(line, sizeof line, list)) {
        size_t used = strlen(functions);
        if (sscanf(line, "undefined symbol: %255s", name) == 1 &&
            used + strlen(name) + 1 < FUNCTIONS_BYTES)
            snprintf(functions + used, FUNCTIONS_BYTES - used, "%s%s", used ? "," : "", name);
    }
}

static void find_undefined(const char *program, char functions[FUNCTIONS_BYTES])
{
    struct elf_file elf;
    struct error err;
    int ends[2];
    /* Only glibc's ld.so is known to run nothing. */
    if (!strchr(program, '/') || elf_file_read(&elf, program, &err) < 0 ||
        elf.kind != ELF_PROGRAM || !strstr(elf.interpreter, "/ld-linux") ||
        pipe2(ends, O_CLOEXEC) < 0)
        return;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        become_search(program, elf.interpreter, ends[1]);
    close(ends[1]);
    FILE *list = fdopen(ends[0], "r");
    if (list && child > 0)
        read_undefined(list, functions);
    if (list)
        fclose(list);
    else
        close(ends[0]);
    if (child > 0)
        waitpid(child, NULL, 0);
}

/* What ddpcheck or the user has ended did not fail by itself. */
static bool has_failed(const struct watched_run *run)
{
    bool was_ended = run->ending_since_ns || run->held_signal || run->timed_out;
    return !was_ended && job_exit_status(&run->job) != 0;
}

void run_send_failure(struct watched_run *run, char *const *argv)
{
    char functions[FUNCTIONS_BYTES] = "", line[LINE_BYTES_MAX];
    if (run->shared || run->socket < 0 || !has_failed(run))
        return;
    for (int i = 0; argv[i] && !*functions; i++) /* behind a launcher there is another program */
        find_undefined(argv[i], functions);
    int bytes = snprintf(line, sizeof line, "program %d %d %" PRIu64 " %s %.200s\n",
                         (int)run->job.pid, run->job.status, run->job.start_ticks,
                         *functions ? functions : "-", argv[0]);
    send(run->socket, line, (size_t)bytes, MSG_NOSIGNAL);
}
