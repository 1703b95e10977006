/* doctor's checks of a program: where its NCCL and CUDA come from, and whether LD_PRELOAD reaches it. */
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/doctor.h"
#include "cmd/elf_file.h"

enum { SCRIPTS_MAX = 4 };

struct printing {
    void (*print)(void *context, const char *name, const struct diagnosis *diagnosis);
    void *context;
};

static void say(const struct printing *printing, const char *name, const struct diagnosis *diagnosis)
{
    printing->print(printing->context, name, diagnosis);
}

/* Looks a program up as execvp does. */
static bool find_program(const char *name, char path[PATH_MAX])
{
    if (strchr(name, '/'))
        return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX && access(path, F_OK) == 0;
    const char *folders = getenv("PATH");
    for (const char *folder = folders ? folders : "/usr/local/bin:/usr/bin:/bin"; *folder;) {
        int length = (int)strcspn(folder, ":");
        if (snprintf(path, PATH_MAX, "%.*s/%s", length, folder, name) < PATH_MAX && access(path, X_OK) == 0)
            return true;
        folder += length + (folder[length] == ':');
    }
    return false;
}

static bool is_python(const char *path)
{
    const char *base = strrchr(path, '/');
    return strncmp(base ? base + 1 : path, "python", 6) == 0;
}

/* The nvidia-nccl package beside a Python: PREFIX/lib/python3.x/site-packages/nvidia/nccl/lib/libnccl.so.2. */
static bool find_python_nccl(const char *python, char found[PATH_MAX])
{
    char real[PATH_MAX], pattern[PATH_MAX + 128];
    const char *candidates[] = {python, realpath(python, real)};
    for (int i = 0; i < 2; i++) {
        char prefix[PATH_MAX];
        if (!candidates[i] || snprintf(prefix, sizeof prefix, "%s", candidates[i]) >= (int)sizeof prefix)
            continue;
        for (int up = 0; up < 2; up++) {
            char *slash = strrchr(prefix, '/');
            if (slash)
                *slash = 0;
        }
        const char *const folders[] = {"site-packages", "dist-packages"};
        for (int j = 0; j < 2; j++) {
            glob_t matches;
            snprintf(pattern, sizeof pattern, "%s/lib/python3*/%s/nvidia/nccl/lib/libnccl.so*", prefix, folders[j]);
            bool is_found = glob(pattern, 0, NULL, &matches) == 0 && matches.gl_pathc > 0;
            if (is_found)
                snprintf(found, PATH_MAX, "%s", matches.gl_pathv[0]);
            globfree(&matches);
            if (is_found)
                return true;
        }
    }
    return false;
}

static void check_preload(struct diagnosis *diagnosis, const struct elf_file *elf)
{
    if (elf->is_32_bit || elf->is_foreign)
        diagnose(diagnosis, VERDICT_FAIL, "only 64-bit x86 programs can be watched", "the program is for another kind of machine");
    else if (elf->is_setuid)
        diagnose(diagnosis, VERDICT_FAIL, "run it without the set-user-ID bit, or watch the program that it starts",
                 "the program is set-user-ID or set-group-ID: ld.so ignores LD_PRELOAD");
    else if (elf->is_static)
        diagnose(diagnosis, VERDICT_FAIL, "link it dynamically: ld.so, which reads LD_PRELOAD, has no part in it", "the program is linked statically");
    else if (strstr(elf->interpreter, "musl"))
        diagnose(diagnosis, VERDICT_FAIL, "use a glibc build of the program; the shim is for glibc", "the program runs on musl (%s)", elf->interpreter);
    else
        diagnose(diagnosis, VERDICT_OK, NULL, "LD_PRELOAD reaches it (%s)", elf->interpreter[0] ? elf->interpreter : "no own ld.so");
}

static void check_nccl(struct diagnosis *diagnosis, const struct elf_file *elf)
{
    if (elf->defines_nccl)
        diagnose(diagnosis, VERDICT_FAIL, "link libnccl.so instead of libnccl_static.a", "NCCL is linked statically: its calls can't be seen");
    else if (elf_file_needs(elf, "libnccl.so"))
        diagnose(diagnosis, VERDICT_OK, NULL, "linked dynamically with libnccl.so");
    else if (elf->imports_nccl)
        diagnose(diagnosis, VERDICT_OK, NULL, "calls NCCL through another library");
    else if (elf->imports_dlopen)
        diagnose(diagnosis, VERDICT_WARN, "dlopen and dlsym of NCCL are seen; NCCL linked statically into a library that it loads is not",
                 "not linked with NCCL itself; a library that it loads may be");
    else
        diagnose(diagnosis, VERDICT_WARN, "a launcher is fine: the programs that it starts are watched", "not linked with NCCL, loads nothing by dlopen");
}

static void check_cudart(struct diagnosis *diagnosis, const struct elf_file *elf)
{
    if (elf->defines_cudart)
        diagnose(diagnosis, VERDICT_WARN, "link with nvcc -cudart shared: then copies, kernels and waits are seen as well as NCCL",
                 "the CUDA runtime is linked statically (nvcc's default): its calls can't be seen");
    else if (elf_file_needs(elf, "libcudart.so"))
        diagnose(diagnosis, VERDICT_OK, NULL, "linked dynamically with libcudart.so");
    else
        diagnose(diagnosis, VERDICT_OK, NULL, "not linked with the CUDA runtime itself");
}

static void check_python(const struct printing *printing, const char *path)
{
    struct diagnosis diagnosis;
    struct elf_file elf;
    struct error err;
    char nccl[PATH_MAX];
    if (!find_python_nccl(path, nccl))
        diagnose(&diagnosis, VERDICT_WARN, "torch.distributed with its own NCCL needs it: pip install nvidia-nccl-cu12 (or -cu13)",
                 "no nvidia-nccl package beside %s", path);
    else if (elf_file_read(&elf, nccl, &err) < 0)
        diagnose(&diagnosis, VERDICT_FAIL, "reinstall the package", "%s", err.text);
    else
        diagnose(&diagnosis, VERDICT_OK, NULL, "%s, loaded dynamically: seen", nccl);
    say(printing, "Python's NCCL", &diagnosis);
}

static void check_elf(const struct printing *printing, const char *path, const struct elf_file *elf)
{
    struct diagnosis diagnosis = {0};
    check_preload(&diagnosis, elf);
    say(printing, "LD_PRELOAD", &diagnosis);
    if (diagnosis.verdict == VERDICT_FAIL)
        return;
    if (is_python(path)) {
        check_python(printing, path);
        return;
    }
    check_nccl(&diagnosis, elf);
    say(printing, "its NCCL", &diagnosis);
    check_cudart(&diagnosis, elf);
    say(printing, "its CUDA runtime", &diagnosis);
}

void doctor_program(char *const *program, void (*print)(void *context, const char *name, const struct diagnosis *diagnosis),
                    void *context)
{
    const struct printing printing = {print, context};
    struct diagnosis diagnosis = {0};
    struct elf_file elf;
    struct error err;
    char name[PATH_MAX], path[PATH_MAX];
    snprintf(name, sizeof name, "%s", program[0]);
    for (int depth = 0; depth < SCRIPTS_MAX; depth++) {
        if (!find_program(name, path)) {
            diagnose(&diagnosis, VERDICT_FAIL, "give its path, or look at PATH", "there is no program %s", name);
            say(&printing, "program", &diagnosis);
            return;
        }
        if (elf_file_read(&elf, path, &err) < 0 || elf.kind == ELF_NONE) {
            diagnose(&diagnosis, VERDICT_FAIL, "name the program itself", "%s", elf.kind == ELF_NONE ? "neither an ELF program nor a script" : err.text);
            say(&printing, "program", &diagnosis);
            return;
        }
        diagnose(&diagnosis, VERDICT_OK, NULL, elf.kind == ELF_SCRIPT ? "%s, a script for %s" : "%s", path, elf.interpreter);
        say(&printing, "program", &diagnosis);
        if (elf.kind == ELF_PROGRAM) {
            check_elf(&printing, path, &elf);
            return;
        }
        snprintf(name, sizeof name, "%s", elf.interpreter);
    }
    diagnose(&diagnosis, VERDICT_FAIL, "name the program itself", "scripts that run scripts, %d deep", SCRIPTS_MAX);
    say(&printing, "program", &diagnosis);
}
