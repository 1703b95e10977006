/* filtered.c: becomes another program for which some system calls fail, as a container's seccomp
 * filter makes them.
 *
 *     torture_filtered CALLS PROGRAM [ARGUMENT..]
 *
 * Bit i of CALLS (hexadecimal) stands for the i-th call of the table; each fails with EPERM. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A job can do without these; ddpcheck uses them, or might. */
static const unsigned refusable[] = {
    SYS_fallocate,        SYS_flock,  SYS_fcntl, SYS_statfs,        SYS_getdents64,
    SYS_process_vm_readv, SYS_ptrace, SYS_kcmp,  SYS_inotify_init1, SYS_sched_getaffinity,
    SYS_fchmod,           SYS_statx,  SYS_prctl, SYS_sysinfo,       SYS_pidfd_open,
    SYS_prlimit64,
};

enum { CALLS = sizeof refusable / sizeof *refusable };

static int install_filter(unsigned long wanted)
{
    struct sock_filter filter[2 * CALLS + 2];
    unsigned short length = 0;
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                                    (unsigned)offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; i < CALLS; i++) {
        if (!(wanted >> i & 1))
            continue;
        filter[length++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, refusable[i], 0, 1);
        filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    }
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {.len = length, .filter = filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: torture_filtered CALLS PROGRAM [ARGUMENT..]\n");
        return 2;
    }
    if (install_filter(strtoul(argv[1], NULL, 16))) {
        perror("seccomp");
        return 9;
    }
    execv(argv[2], argv + 2);
    perror(argv[2]);
    return 9;
}
