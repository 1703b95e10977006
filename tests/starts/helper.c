/* helper.c: what a job starts that is linked with another C library: it uses what the shim
 * replaces. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void print_last(void)
{
    puts("atexit");
    fflush(stdout);
}

int main(void)
{
    int status = 0;
    atexit(print_last);
    printf("%d%d%d\n", dlsym(RTLD_DEFAULT, "malloc") != NULL, dlsym(RTLD_NEXT, "strlen") != NULL,
           dlsym(RTLD_DEFAULT, "ncclAllReduce") != NULL);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(3);
    return waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3 ? 0 : 1;
}
