/* run_environment.c: sets the environment variables of a watched program. */
#include "cmd/run_environment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

int tool_path(char path[PATH_MAX], struct error *err)
{
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    path[length < 0 ? 0 : length] = 0;
    if (length < 0 && !realpath((const char *)getauxval(AT_EXECFN), path)) /* there is no /proc */
        return error_set(err, "cannot locate the ddpcheck installation: /proc/self/exe: %s",
                         strerror(errno));
    return 0;
}

/* The folder of the running ddpcheck. Returns 0, or -1 with err. */
static int tool_folder(char folder[PATH_MAX], struct error *err)
{
    if (tool_path(folder, err) < 0)
        return -1;
    *strrchr(folder, '/') = 0;
    return 0;
}

/* A file below lib/, where the build or the installation put it as seen from bin/. */
static int below_lib(char path[PATH_MAX], const char *name, struct error *err)
{
    static const char *const folders[] = {"../lib", DDPCHECK_LIBDIR_FROM_BINDIR};
    static const char emulated[] = "ddpcheck/";
    char folder[PATH_MAX], relative[PATH_MAX + 128];
    if (tool_folder(folder, err) < 0)
        return -1;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        snprintf(relative, sizeof relative, "%s/%s/%s", folder, folders[i], name);
        if (realpath(relative, path))
            return 0;
    }
    return error_set(err, "can't find %s: %s; install the package %s, or keep lib/ beside bin/",
                     relative, strerror(errno),
                     strncmp(name, emulated, sizeof emulated - 1) ? "libddpcheck-preload"
                                                                  : "ddpcheck-emulator");
}

int shim_path(char shim[PATH_MAX], struct error *err)
{
    return below_lib(shim, "libddpcheck.so", err);
}

int emulated_folder(char folder[PATH_MAX], struct error *err)
{
    return below_lib(folder, "ddpcheck/emu", err);
}

int demo_path(char demo[PATH_MAX], struct error *err)
{
    return below_lib(demo, "ddpcheck/ddpcheck_demo", err);
}

static int set_variable(const char *name, const char *value, struct error *err)
{
    return setenv(name, value, 1) == 0 ? 0
                                       : error_set(err, "can't set %s: %s", name, strerror(errno));
}

/* Puts `first` before what the variable holds, separated by a colon. */
static int prepend(const char *name, const char *first, struct error *err)
{
    const char *rest = getenv(name);
    if (!rest || !rest[0])
        return set_variable(name, first, err);
    char *joined;
    if (asprintf(&joined, "%s:%s", first, rest) < 0)
        return error_memory(err, "can't set %s", name);
    int result = set_variable(name, joined, err);
    free(joined);
    return result;
}

/* GCC 12's ThreadSanitizer needs 785,760 bytes, more than any other library that is known. */
enum { STATIC_TLS_BYTES = 1 << 20 };
static const char static_tls[] = "glibc.rtld.optional_static_tls";

/* LD_AUDIT puts the emulated libraries before those that a program brings along: libraries that
 * name their own folders (PyTorch's do) find them before LD_LIBRARY_PATH. With it, ld.so lays out
 * thread-local storage before it knows a program's libraries, and has to be configured to leave
 * room for theirs: without, a program that is linked with jemalloc, say, does not start. A library
 * beside the others gives each thread that much more stack (emu/loader/threads.c). LeakSanitizer
 * does not find its way in that layout and would end a sanitized program with status 1. */
static int set_redirection(const char *redirect, const char *threads, struct error *err)
{
    char tunable[64];
    const char *tunables = getenv("GLIBC_TUNABLES");
    snprintf(tunable, sizeof tunable, "%s=%d", static_tls, STATIC_TLS_BYTES);
    if (prepend("LD_AUDIT", redirect, err) < 0 || prepend("LD_PRELOAD", threads, err) < 0 ||
        prepend("LSAN_OPTIONS", "detect_leaks=0", err) < 0)
        return -1;
    return tunables && strstr(tunables, static_tls) ? 0 : prepend("GLIBC_TUNABLES", tunable, err);
}

static int set_emulation(const struct run_environment *environment, struct error *err)
{
    char folder[PATH_MAX], redirect[PATH_MAX], threads[PATH_MAX], number[24], names[PATH_MAX + 32];
    if (emulated_folder(folder, err) < 0 ||
        below_lib(redirect, "ddpcheck/emu/libddpcheck_emu_redirect.so", err) < 0 ||
        below_lib(threads, "ddpcheck/emu/libddpcheck_emu_threads.so", err) < 0)
        return error_prefix(err, "--emulate needs the emulated CUDA libraries");
    snprintf(number, sizeof number, "%ld", environment->emulate);
    snprintf(names, sizeof names, "%s/not_computed.txt", environment->directory);
    unlink(names); /* of the run before */
    return prepend("LD_LIBRARY_PATH", folder, err) < 0 ||
                   set_redirection(redirect, threads, err) < 0 ||
                   set_variable("DDPCHECK_EMU_NOT_COMPUTED", names, err) < 0 ||
                   (environment->emulate_memory &&
                    set_variable("DDPCHECK_EMU_MEMORY", environment->emulate_memory, err) < 0) ||
                   set_variable("DDPCHECK_EMU_DEVICES", number, err) < 0
               ? -1
               : 0;
}

/* The bare name finds the shim that is preloaded. NCCL 2.27.3 (PyTorch 2.8) takes no path. */
static const char plugin_name[] = "libddpcheck.so";

int run_environment_set(const struct run_environment *environment, struct error *err)
{
    char shim[PATH_MAX];
    if (shim_path(shim, err) < 0)
        return -1;
    /* ld.so splits LD_PRELOAD at spaces and colons and knows no way to quote them. */
    if (strpbrk(shim, " :"))
        return error_set(err,
                         "can't preload %s: LD_PRELOAD allows no space and no colon in a path; "
                         "install ddpcheck elsewhere",
                         shim);
    const char *injection = getenv("NVTX_INJECTION64_PATH");
    if (environment->emulate && set_emulation(environment, err) < 0)
        return -1;
    const struct {
        const char *name, *value; /* NULL: it stays as it is */
    } variables[] = {
        {"DDPCHECK_DIR", environment->directory},
        {"DDPCHECK_DISABLE", environment->is_unrecorded ? "1" : NULL},
        {"DDPCHECK_COLLECT", environment->has_collector ? "run" : NULL},
        {"NVTX_INJECTION64_PATH", injection && injection[0] ? NULL : shim},
        {"NCCL_PROFILER_PLUGIN", environment->plugin ? plugin_name : NULL},
        {"DDPCHECK_HASH", environment->hash ? "1" : NULL},
        {"DDPCHECK_GUARD", environment->guard ? "1" : NULL},
        {"DDPCHECK_TIMING", environment->timing ? "1" : NULL},
        {"DDPCHECK_STACKS", environment->stacks},
        {"DDPCHECK_CUDA", environment->cuda},
        {"DDPCHECK_KEEP", environment->keep},
        {"DDPCHECK_HANG_AFTER", environment->hang_after},
    };
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (variables[i].value && set_variable(variables[i].name, variables[i].value, err) < 0)
            return -1;
    /* AddressSanitizer's shared runtime ends a program that has another library before it. The shim
     * replaces none of its functions but dlsym's and exit's, which it calls. */
    return prepend("ASAN_OPTIONS", "verify_asan_link_order=0", err) < 0 ||
                   prepend("LD_PRELOAD", shim, err) < 0
               ? -1
               : 0;
}
