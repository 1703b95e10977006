/* start.c: a program's start on glibcs before and after 2.34. The start file of the newer ones
 * leaves the program's constructors to the C library, the older C libraries left them to the start
 * file. Linked in with
 * --wrap=__libc_start_main: a C library that is given a function for them calls that one and does
 * nothing itself. */
typedef int main_function(int, char **, char **);
typedef void function(int, char **, char **);

extern function *__init_array_start[], *__init_array_end[];

int __real___libc_start_main(main_function *, int, char **, function *, void (*)(void),
                             void (*)(void), void *);
int __wrap___libc_start_main(main_function *, int, char **, function *, void (*)(void),
                             void (*)(void), void *);

static void run_constructors(int argc, char **argv, char **environment)
{
    for (function **constructor = __init_array_start; constructor < __init_array_end; constructor++)
        (*constructor)(argc, argv, environment);
}

int __wrap___libc_start_main(main_function *program, int argc, char **argv, function *constructors,
                             void (*destructors)(void), void (*loader_end)(void), void *stack_end)
{
    return __real___libc_start_main(program, argc, argv,
                                    constructors ? constructors : run_constructors, destructors,
                                    loader_end, stack_end);
}
