/* fault_guard.c: leaves an action when a page of a mapped file under it is gone. */
#include "lib/base/fault_guard.h"

#include <setjmp.h>
#include <signal.h>
#include <stddef.h>

/* Where this thread goes on. */
static _Thread_local sigjmp_buf *on_fault;

/* Nobody returns from here, so the signal must not stay blocked, as it is under ThreadSanitizer. */
static void leave_action(int signal_number)
{
    sigset_t caught;
    if (on_fault) {
        sigemptyset(&caught);
        sigaddset(&caught, signal_number);
        pthread_sigmask(SIG_UNBLOCK, &caught, NULL);
        siglongjmp(*on_fault, 1);
    }
    signal(signal_number, SIG_DFL); /* not ours: fault again, and die of it */
}

void fault_guard_install(void)
{
    struct sigaction action = {.sa_handler = leave_action, .sa_flags = SA_NODEFER};
    sigaction(SIGBUS, &action, NULL);
}

int fault_guard_run(int (*action)(void *context), void *context)
{
    sigjmp_buf here;
    volatile int result = FAULT_GUARD_CUT;
    if (sigsetjmp(here, 0) == 0) {
        on_fault = &here;
        result = action(context);
    }
    on_fault = NULL;
    return result;
}
