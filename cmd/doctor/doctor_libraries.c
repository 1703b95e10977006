/* doctor: the libraries of a program, as ld.so finds them (as ldd has it do, which maps them and
 * runs nothing). */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/doctor/doctor.h"

enum { LIST_SECONDS = 20, LINE_MAX_BYTES = 8192 };

static void become_list(const char *program, const char *interpreter, int output)
{
    int null = open("/dev/null", O_WRONLY);
    dup2(output, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    unsetenv("LD_PRELOAD");
    alarm(LIST_SECONDS);
    setenv("LD_TRACE_LOADED_OBJECTS", "1",
           1); /* unlike --list it goes on where a library is missing */
    execl(interpreter, interpreter, program, (char *)NULL);
    _exit(127);
}

/* "\tlibfoo.so.1 => /lib/libfoo.so.1 (0x00007f...)", "\tlibfoo.so.1 => not found",
 * "\t/lib64/ld-linux... (0x...)" */
static void visit_line(char *line,
                       void (*visit)(void *context, const char *path, const char *missing),
                       void *context)
{
    char *name = line + strspn(line, " \t"), *arrow = strstr(name, " => ");
    if (!arrow)
        return;
    *arrow = 0;
    char *path = arrow + strlen(" => ");
    if (strncmp(path, "not found", strlen("not found")) == 0) {
        visit(context, NULL, name);
        return;
    }
    char *address = strstr(path, " (0x");
    if (address)
        *address = 0;
    visit(context, path, NULL);
}

bool doctor_libraries(const char *program, const char *interpreter,
                      void (*visit)(void *context, const char *path, const char *missing),
                      void *context)
{
    int ends[2], status = 0;
    char line[LINE_MAX_BYTES];
    /* Only glibc's ld.so is known to run nothing. */
    if (!strstr(interpreter, "/ld-linux") || pipe2(ends, O_CLOEXEC) < 0)
        return false;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        become_list(program, interpreter, ends[1]);
    close(ends[1]);
    FILE *list = fdopen(ends[0], "r");
    while (child > 0 && list && fgets(line, sizeof line, list)) {
        line[strcspn(line, "\n")] = 0;
        visit_line(line, visit, context);
    }
    if (list)
        fclose(list);
    else
        close(ends[0]);
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
           WEXITSTATUS(status) != 127;
}
