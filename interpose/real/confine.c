/* confine.c: see confine.h. */
#include "interpose/real/confine.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "interpose/real/resolve.h"
#include "interpose/shim/shim.h"

typedef int prctl_function(int option, ...);

/* Hidden, not static: the assembly below reads the first. */
struct confine {
    void *real_syscall;
    prctl_function *real_prctl;
    void (*stop)(void);
    _Atomic uint32_t is_set; /* survives a fork, as filters do */
};
extern struct confine confine_state __attribute__((visibility("hidden")));
struct confine confine_state;

static void find_replaced(void)
{
    resolve_dlsym_function *find = resolve_dlsym();
    if (!find)
        return;
    *(void **)&confine_state.real_prctl = find(RTLD_NEXT, "prctl");
    confine_state.real_syscall = find(RTLD_NEXT, "syscall");
}

void confine_load(void (*stop)(void))
{
    confine_state.stop = stop;
    find_replaced();
}

bool confine_is_set(void)
{
    return atomic_load(&confine_state.is_set);
}

/* Whether a filter can end the process, or a thread, for a call. */
static bool can_kill(const struct sock_fprog *program)
{
    for (unsigned i = 0; program && program->filter && i < program->len; i++) {
        const struct sock_filter *step = &program->filter[i];
        uint32_t action = step->k & SECCOMP_RET_ACTION_FULL;
        if (BPF_CLASS(step->code) == BPF_RET &&
            (BPF_RVAL(step->code) != BPF_K || action == SECCOMP_RET_KILL_PROCESS ||
             action == SECCOMP_RET_KILL_THREAD || action == SECCOMP_RET_TRAP))
            return true;
    }
    return false;
}

/* For the first such filter. */
static void see_killing_filter(void)
{
    int error = errno;
    if (!atomic_exchange(&confine_state.is_set, 1) && confine_state.stop)
        confine_state.stop();
    errno = error;
}

/* A call of prctl or seccomp; `first` is the option or the operation. */
static void see_call(long number, unsigned long first, unsigned long second, unsigned long third)
{
    bool is_strict = number == SYS_prctl ? first == PR_SET_SECCOMP && second == SECCOMP_MODE_STRICT
                                         : first == SECCOMP_SET_MODE_STRICT;
    bool is_filter = number == SYS_prctl ? first == PR_SET_SECCOMP && second == SECCOMP_MODE_FILTER
                                         : first == SECCOMP_SET_MODE_FILTER;
    if (is_strict || (is_filter && can_kill((const struct sock_fprog *)third)))
        see_killing_filter();
}

void confine_see(long number, unsigned long first, unsigned long second, unsigned long third)
    __attribute__((visibility("hidden")));
void confine_see(long number, unsigned long first, unsigned long second, unsigned long third)
{
    if (!confine_state.real_syscall)
        find_replaced();
    if (number == SYS_seccomp || number == SYS_prctl)
        see_call(number, first, second, third);
}

EXPORT int prctl(int option, ...)
{
    unsigned long value[4];
    va_list arguments;
    va_start(arguments, option);
    for (int i = 0; i < 4; i++)
        value[i] = va_arg(arguments, unsigned long);
    va_end(arguments);
    if (option == PR_SET_SECCOMP)
        see_call(SYS_prctl, (unsigned long)option, value[0], value[1]);
    if (!confine_state.real_prctl)
        find_replaced();
    if (confine_state.real_prctl)
        return confine_state.real_prctl(option, value[0], value[1], value[2], value[3]);
    errno = ENOSYS;
    return -1;
}

/* A jump, not a call: the child of a clone or vfork that is made in this way has another stack, or
 * the same as its parent. 317 is SYS_seccomp, 157 SYS_prctl; the real function is the first of
 * confine_state. On other processors filters that are set by syscall() are not seen. */
#if defined(__x86_64__)
__asm__(".text\n"
        ".globl syscall\n"
        ".type syscall, @function\n"
        "syscall:\n"
        "    .cfi_startproc\n"
        "    endbr64\n"
        "    cmpq $317, %rdi\n"
        "    je 1f\n"
        "    cmpq $157, %rdi\n"
        "    je 1f\n"
        "    cmpq $0, confine_state(%rip)\n"
        "    je 1f\n"
        "    jmp *confine_state(%rip)\n"
        "1:  pushq %rdi\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    pushq %rsi\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    pushq %rdx\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    pushq %rcx\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    pushq %r8\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    pushq %r9\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    subq $8, %rsp\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    call confine_see\n"
        "    addq $8, %rsp\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %r9\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %r8\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %rcx\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %rdx\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %rsi\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %rdi\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    jmp *confine_state(%rip)\n"
        "    .cfi_endproc\n"
        "    .size syscall, .-syscall\n");
#endif
