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

int tool_folder(char folder[PATH_MAX], struct error *err)
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
        return error_set(err, "can't set %s: out of memory", name);
    int result = set_variable(name, joined, err);
    free(joined);
    return result;
}

/* LD_AUDIT puts the emulated libraries before those that a program brings along: libraries that
 * name their own folders (PyTorch's do) find them before LD_LIBRARY_PATH. With it, ld.so lays out
 * thread-local storage before it knows a program's libraries, and has to be configured to leave
 * room for theirs: without, a program that is linked with jemalloc, say, does not start.
 * LeakSanitizer does not find its way in that layout and would end a sanitized program with
 * status 1. */
static int set_redirection(const char *redirect, struct error *err)
{
    const char *tunables = getenv("GLIBC_TUNABLES");
    if (prepend("LD_AUDIT", redirect, err) < 0 ||
        prepend("LSAN_OPTIONS", "detect_leaks=0", err) < 0)
        return -1;
    return tunables && tunables[0]
               ? 0
               : set_variable("GLIBC_TUNABLES", "glibc.rtld.optional_static_tls=16384", err);
}

static int set_emulation(const struct run_environment *environment, struct error *err)
{
    char folder[PATH_MAX], redirect[PATH_MAX], number[24], names[PATH_MAX + 32];
    if (below_lib(folder, "ddpcheck/emu", err) < 0 ||
        below_lib(redirect, "ddpcheck/emu/libddpcheck_emu_redirect.so", err) < 0)
        return error_prefix(err, "--emulate needs the emulated CUDA libraries");
    snprintf(number, sizeof number, "%ld", environment->emulate);
    snprintf(names, sizeof names, "%s/not_computed.txt", environment->directory);
    unlink(names); /* of the run before */
    return prepend("LD_LIBRARY_PATH", folder, err) < 0 || set_redirection(redirect, err) < 0 ||
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
    if (prepend("LD_PRELOAD", shim, err) < 0 ||
        set_variable("DDPCHECK_DIR", environment->directory, err) < 0 ||
        (environment->has_collector && set_variable("DDPCHECK_COLLECT", "run", err) < 0) ||
        (!(injection && injection[0]) && set_variable("NVTX_INJECTION64_PATH", shim, err) < 0) ||
        (environment->plugin && set_variable("NCCL_PROFILER_PLUGIN", plugin_name, err) < 0) ||
        (environment->hash && set_variable("DDPCHECK_HASH", "1", err) < 0) ||
        (environment->timing && set_variable("DDPCHECK_TIMING", "1", err) < 0) ||
        (environment->stacks && set_variable("DDPCHECK_STACKS", environment->stacks, err) < 0) ||
        (environment->cuda && set_variable("DDPCHECK_CUDA", environment->cuda, err) < 0) ||
        (environment->keep && set_variable("DDPCHECK_KEEP", environment->keep, err) < 0) ||
        (environment->hang_after &&
         set_variable("DDPCHECK_HANG_AFTER", environment->hang_after, err) < 0))
        return -1;
    return environment->emulate ? set_emulation(environment, err) : 0;
}
