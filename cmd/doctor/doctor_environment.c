/* doctor's checks of the environment that a program inherits, and what is known of programs that
 * start others. */
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cmd/doctor/doctor.h"
#include "cmd/run_environment.h"

static const char *get_nonempty(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static bool is_our_shim(const char *path)
{
    const char *base = strrchr(path, '/');
    return strcmp(base ? base + 1 : path, "libddpcheck.so") == 0;
}

const char *doctor_other_plugin(void)
{
    const char *plugin = get_nonempty("NCCL_PROFILER_PLUGIN");
    return plugin && strcasecmp(plugin, "none") != 0 && !is_our_shim(plugin) ? plugin : NULL;
}

static void check_switch(struct diagnosis *diagnosis)
{
    const char *value = get_nonempty("DDPCHECK_DISABLE");
    if (value && strcmp(value, "1") == 0)
        diagnose(diagnosis, VERDICT_FAIL, "unset DDPCHECK_DISABLE",
                 "DDPCHECK_DISABLE=1 is set: the shim stays off");
    else
        diagnose(diagnosis, VERDICT_OK, NULL, "enabled");
}

static void check_preloaded(struct diagnosis *diagnosis)
{
    const char *value = get_nonempty("LD_PRELOAD");
    if (!value)
        diagnose(diagnosis, VERDICT_OK, NULL, "LD_PRELOAD is free");
    else
        diagnose(diagnosis, VERDICT_OK, NULL,
                 "LD_PRELOAD already has %.400s; the shim goes before it", value);
}

static void check_plugin(struct diagnosis *diagnosis)
{
    const char *value = get_nonempty("NCCL_PROFILER_PLUGIN"), *other = doctor_other_plugin();
    if (other)
        diagnose(diagnosis, VERDICT_WARN,
                 "preloading does not need it; for a program with NCCL linked in, unset it: NCCL "
                 "takes one plugin",
                 "NCCL_PROFILER_PLUGIN is taken by %.400s", other);
    else
        diagnose(diagnosis, VERDICT_OK, NULL,
                 value ? "NCCL_PROFILER_PLUGIN is %.400s" : "NCCL_PROFILER_PLUGIN is free%s",
                 value ? value : "");
}

static void check_nvtx(struct diagnosis *diagnosis)
{
    const char *value = get_nonempty("NVTX_INJECTION64_PATH");
    if (value && !is_our_shim(value))
        diagnose(diagnosis, VERDICT_WARN,
                 "findings will name no phases of the program (forward, backward ...); unset it "
                 "for them",
                 "NVTX ranges go to %.400s", value);
    else
        diagnose(diagnosis, VERDICT_OK, NULL, "NVTX ranges are captured");
}

/* It stays loaded: CUPTI does not give back what it allocates when it is loaded. */
static bool has_library(const char *name)
{
    return dlopen(name, RTLD_LAZY) != NULL;
}

/* CUPTI has one subscriber per process; ddpcheck is it with --timing alone. */
static void check_cupti(struct diagnosis *diagnosis)
{
    static const char *const names[] = {"CUDA_INJECTION64_PATH", "NSYS_PROFILING_SESSION_ID",
                                        "NV_NSIGHT_INJECTION_TRANSPORT_TYPE",
                                        "NV_COMPUTE_PROFILER_PERFWORKS_DIR"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (get_nonempty(names[i])) {
            diagnose(
                diagnosis, VERDICT_OK, NULL,
                "a profiler has CUPTI (%s): both work, and run --timing leaves it to the profiler",
                names[i]);
            return;
        }
    static const char *const libraries[] = {"libcupti.so.13", "libcupti.so.12"};
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
        if (has_library(libraries[i])) {
            diagnose(diagnosis, VERDICT_OK, NULL, "%s is there: run --timing gives exact times",
                     libraries[i]);
            return;
        }
    diagnose(diagnosis, VERDICT_OK, NULL,
             "no libcupti.so.13 and no libcupti.so.12 here: run --timing gives exact times only to "
             "a program that brings its own, as PyTorch does");
}

const struct machine_check environment_checks[] = {
    {"switch", check_switch}, {"LD_PRELOAD", check_preloaded}, {"profiler plugin", check_plugin},
    {"NVTX", check_nvtx},     {"CUPTI", check_cupti},
};
const int environment_check_count = sizeof environment_checks / sizeof environment_checks[0];

bool doctor_launcher(struct diagnosis *diagnosis, const char *name)
{
    static const char within[] =
        "run ddpcheck inside it: the shim, its trace directory and the collector have to be there";
    static const char ask[] =
        "ask again for the program that it starts: ddpcheck doctor -- PROGRAM";
    static const struct {
        const char *name;
        enum verdict verdict;
        const char *text, *hint;
    } launchers[] = {
        {"sudo", VERDICT_FAIL, "sudo clears LD_PRELOAD", "sudo ddpcheck run -- PROGRAM"},
        {"su", VERDICT_FAIL, "su clears LD_PRELOAD",
         "become the user first, then ddpcheck run -- PROGRAM"},
        {"docker", VERDICT_FAIL, "a container does not inherit this environment", within},
        {"podman", VERDICT_FAIL, "a container does not inherit this environment", within},
        {"kubectl", VERDICT_FAIL, "a pod does not inherit this environment", within},
        {"ssh", VERDICT_FAIL, "another host does not inherit this environment", within},
        {"mpirun", VERDICT_OK,
         "a launcher: ranks on this host inherit the shim; other hosts' with -x LD_PRELOAD -x "
         "DDPCHECK_DIR "
         "(Open MPI) or -genvlist LD_PRELOAD,DDPCHECK_DIR (MPICH)",
         ask},
        {"mpiexec", VERDICT_OK,
         "a launcher: ranks on this host inherit the shim; other hosts' with -x LD_PRELOAD -x "
         "DDPCHECK_DIR "
         "(Open MPI) or -genvlist LD_PRELOAD,DDPCHECK_DIR (MPICH)",
         ask},
        {"srun", VERDICT_OK, "a launcher: all ranks inherit the shim (unless with --export=NONE)",
         ask},
        {"env", VERDICT_OK, "a launcher: what it starts is watched (unless with env -i)", ask},
        {"timeout", VERDICT_OK, "a launcher: what it starts is watched", ask},
        {"nice", VERDICT_OK, "a launcher: what it starts is watched", ask},
        {"numactl", VERDICT_OK, "a launcher: what it starts is watched", ask},
        {"taskset", VERDICT_OK, "a launcher: what it starts is watched", ask},
        {"make", VERDICT_OK, "a launcher: what it starts is watched", ask},
        {"sh", VERDICT_OK, "a shell: what it starts is watched", ask},
        {"bash", VERDICT_OK, "a shell: what it starts is watched", ask},
        {"dash", VERDICT_OK, "a shell: what it starts is watched", ask},
        {"zsh", VERDICT_OK, "a shell: what it starts is watched", ask},
    };
    const char *base = strrchr(name, '/');
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
        if (strcmp(base ? base + 1 : name, launchers[i].name) == 0) {
            diagnose(diagnosis, launchers[i].verdict, launchers[i].hint, "%s", launchers[i].text);
            return true;
        }
    return false;
}
