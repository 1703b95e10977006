/* doctor's checks of a program: where its NCCL and CUDA come from, and whether LD_PRELOAD reaches
 * it. */
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/doctor/doctor.h"
#include "cmd/doctor/elf_file.h"

enum { SCRIPTS_MAX = 4 };

struct printing {
    void (*print)(void *context, const char *name, const struct diagnosis *diagnosis);
    void *context;
};

static void print_diagnosis(const struct printing *printing, const char *name,
                            const struct diagnosis *diagnosis)
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
        if (snprintf(path, PATH_MAX, "%.*s/%s", length, folder, name) < PATH_MAX &&
            access(path, X_OK) == 0)
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

/* A file of a package beside a Python: PREFIX/lib/python3.x/site-packages/`file`. */
static bool find_in_packages(const char *python, const char *file, char found[PATH_MAX])
{
    char real[PATH_MAX], pattern[PATH_MAX + 128];
    const char *candidates[] = {python, realpath(python, real)};
    for (int i = 0; i < 2; i++) {
        char prefix[PATH_MAX];
        if (!candidates[i] ||
            snprintf(prefix, sizeof prefix, "%s", candidates[i]) >= (int)sizeof prefix)
            continue;
        for (int up = 0; up < 2; up++) {
            char *slash = strrchr(prefix, '/');
            if (slash)
                *slash = 0;
        }
        const char *const folders[] = {"site-packages", "dist-packages"};
        for (int j = 0; j < 2; j++) {
            glob_t matches;
            snprintf(pattern, sizeof pattern, "%s/lib/python3*/%s/%s", prefix, folders[j], file);
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

static bool check_preload(struct diagnosis *diagnosis, const struct elf_file *elf)
{
    if (elf->is_32_bit || elf->is_foreign)
        diagnose(diagnosis, VERDICT_FAIL, "only 64-bit x86 programs can be watched",
                 "the program is for another kind of machine");
    else if (elf->is_setuid)
        diagnose(diagnosis, VERDICT_FAIL,
                 "run it without the set-user-ID bit, or watch the program that it starts",
                 "the program is set-user-ID or set-group-ID: ld.so ignores LD_PRELOAD");
    else if (elf->is_static)
        diagnose(diagnosis, VERDICT_FAIL,
                 "link it dynamically: ld.so, which reads LD_PRELOAD, has no part in it, nor can "
                 "NCCL load plugins",
                 "the program is linked statically");
    else if (strstr(elf->interpreter, "musl"))
        diagnose(diagnosis, VERDICT_FAIL, "use a glibc build of the program; the shim is for glibc",
                 "the program runs on musl (%s)", elf->interpreter);
    else
        diagnose(diagnosis, VERDICT_OK, NULL, "LD_PRELOAD reaches it (%s)",
                 elf->interpreter[0] ? elf->interpreter : "no own ld.so");
    return diagnosis->verdict != VERDICT_FAIL;
}

/* NCCL inside `what`: wrappers don't see its calls, its profiler interface does. */
static enum front_end check_inside(struct diagnosis *diagnosis, const char *what,
                                   bool holds_plugins)
{
    if (!holds_plugins) {
        diagnose(diagnosis, VERDICT_FAIL,
                 "link libnccl.so instead of libnccl_static.a, or NCCL 2.23 or newer, which loads "
                 "profiler plugins",
                 "NCCL is linked into %s, and it is too old for profiler plugins: its calls can't "
                 "be seen",
                 what);
        return FRONT_END_NONE;
    }
    const char *other = doctor_other_plugin();
    if (other) {
        diagnose(diagnosis, VERDICT_FAIL,
                 "unset NCCL_PROFILER_PLUGIN, or link libnccl.so instead of libnccl_static.a",
                 "NCCL is linked into %s; only its profiler plugin interface can see it, which is "
                 "taken by %.300s",
                 what, other);
        return FRONT_END_NONE;
    }
    diagnose(diagnosis, VERDICT_WARN,
             "start it by 'ddpcheck run --plugin'; see docs/front-ends.md for its limits",
             "NCCL is linked into %s: LD_PRELOAD can't see its calls, NCCL's profiler plugin "
             "interface can",
             what);
    return FRONT_END_PLUGIN;
}

/* What the libraries of a program say of its NCCL. */
struct libraries {
    char inside[PATH_MAX]; /* one that NCCL is linked into */
    bool inside_holds_plugins;
    char nccl[PATH_MAX];      /* libnccl.so */
    char sanitizer[PATH_MAX]; /* AddressSanitizer's runtime */
    char cudart[PATH_MAX];    /* one with a CUDA runtime that no emulated library stands for */
    char missing[256];        /* the first that ld.so can't find */
};

static void visit_library(void *context, const char *path, const char *missing)
{
    struct libraries *libraries = context;
    struct elf_file elf;
    struct error err;
    if (missing) {
        if (!libraries->missing[0])
            snprintf(libraries->missing, sizeof libraries->missing, "%s", missing);
        return;
    }
    const char *base = strrchr(path, '/');
    bool is_nccl = base && strncmp(base, "/libnccl.so", strlen("/libnccl.so")) == 0;
    if (base && (strncmp(base, "/libasan.so", strlen("/libasan.so")) == 0 ||
                 strncmp(base, "/libclang_rt.asan", strlen("/libclang_rt.asan")) == 0))
        snprintf(libraries->sanitizer, sizeof libraries->sanitizer, "%s", path);
    if (is_nccl)
        snprintf(libraries->nccl, sizeof libraries->nccl, "%s", path);
    if (is_nccl || elf_file_read(&elf, path, &err) < 0)
        return;
    if (elf.holds_cudart && !doctor_emulates(path))
        snprintf(libraries->cudart, sizeof libraries->cudart, "%s", path);
    if (!libraries->inside[0] && elf.defines_nccl && elf.holds_nccl) {
        snprintf(libraries->inside, sizeof libraries->inside, "%s", path);
        libraries->inside_holds_plugins = elf.holds_plugins;
    }
}

static enum front_end check_libraries(struct diagnosis *diagnosis, const struct elf_file *elf,
                                      const struct libraries *libraries)
{
    if (libraries->inside[0])
        return check_inside(diagnosis, libraries->inside, libraries->inside_holds_plugins);
    if (libraries->missing[0] && !libraries->nccl[0] &&
        strncmp(libraries->missing, "libnccl.so", strlen("libnccl.so")) != 0)
        diagnose(diagnosis, VERDICT_WARN, "set LD_LIBRARY_PATH as for the run and ask again",
                 "ld.so finds no %s, so the program can't start here", libraries->missing);
    else if (elf_file_needs(elf, "libnccl.so"))
        diagnose(diagnosis, VERDICT_OK, NULL, "linked dynamically with libnccl.so%s%.400s",
                 libraries->nccl[0] ? ": " : "", libraries->nccl);
    else if (libraries->nccl[0])
        diagnose(diagnosis, VERDICT_OK, NULL,
                 "a library of the program is linked dynamically with %.400s", libraries->nccl);
    else if (elf->imports_nccl)
        diagnose(diagnosis, VERDICT_OK, NULL, "calls NCCL through another library");
    else if (elf->imports_dlopen)
        diagnose(diagnosis, VERDICT_OK,
                 "a library that it opens, with NCCL linked in, would need 'ddpcheck run --plugin'",
                 "not linked with NCCL; dlopen and dlsym of libnccl.so, by it or by libraries that "
                 "it loads, are seen");
    else
        diagnose(diagnosis, VERDICT_WARN,
                 "a launcher is fine: the programs that it starts are watched",
                 "not linked with NCCL, loads nothing by dlopen");
    return FRONT_END_PRELOAD;
}

static enum front_end check_program_nccl(struct diagnosis *diagnosis, const struct elf_file *elf,
                                         const struct libraries *libraries)
{
    if (elf->defines_nccl && elf->holds_nccl)
        return check_inside(diagnosis, "the program", elf->holds_plugins);
    if (elf->holds_plugins && elf->is_stripped && !elf->imports_nccl)
        return check_inside(diagnosis, "the program (stripped, but NCCL's texts are in it)", true);
    if (elf->defines_nccl) {
        diagnose(diagnosis, VERDICT_OK, NULL,
                 "it has functions of NCCL's names, but not NCCL: the libnccl.so that they load is "
                 "seen");
        return FRONT_END_PRELOAD;
    }
    if (elf->holds_nccl && elf->is_stripped && !elf->imports_nccl) {
        diagnose(diagnosis, VERDICT_WARN,
                 "check a build that is not stripped; so old a NCCL can't be watched when it is "
                 "linked in",
                 "the program is stripped and has texts of NCCL's in it: it may be linked in");
        return FRONT_END_PRELOAD;
    }
    return check_libraries(diagnosis, elf, libraries);
}

static void check_program_cudart(struct diagnosis *diagnosis, const struct elf_file *elf,
                                 const struct libraries *libraries)
{
    bool is_inside = elf->defines_cudart || elf->holds_cudart;
    if (is_inside && !doctor_has_driver())
        diagnose(diagnosis, VERDICT_FAIL,
                 "build it with nvcc -cudart shared, or run it where there is a GPU",
                 "the CUDA runtime is linked in (nvcc's default): it needs a GPU's driver, so on "
                 "emulated GPUs its calls fail with error 36");
    else if (is_inside)
        diagnose(diagnosis, VERDICT_OK, NULL,
                 "the CUDA runtime is linked in (nvcc's default): its calls are seen where they "
                 "reach the driver, under the driver's names");
    else if (libraries->cudart[0] && !doctor_has_driver())
        diagnose(diagnosis, VERDICT_WARN,
                 "if the program uses it, build it with nvcc -cudart shared, or run the program "
                 "where there is a GPU",
                 "%s has a CUDA runtime of its own inside: on emulated GPUs its calls fail with "
                 "error 36",
                 libraries->cudart);
    else if (elf_file_needs(elf, "libcudart.so"))
        diagnose(diagnosis, VERDICT_OK, NULL, "linked dynamically with libcudart.so");
    else
        diagnose(diagnosis, VERDICT_OK, NULL, "not linked with the CUDA runtime itself");
}

/* It ends a program that has another library before it. */
static void check_sanitizer(const struct printing *printing, const char *runtime)
{
    struct diagnosis diagnosis = {0};
    char hint[PATH_MAX + 128];
    if (!*runtime)
        return;
    snprintf(hint, sizeof hint,
             "'ddpcheck run' does what is needed; without it: LD_PRELOAD=%s:/path/libddpcheck.so",
             runtime);
    diagnose(&diagnosis, VERDICT_WARN, hint,
             "AddressSanitizer's runtime has to come before every other library");
    print_diagnosis(printing, "its sanitizer", &diagnosis);
}

/* PyTorch's wheels had NCCL linked into libtorch_cuda.so once, and builds of one's own still may.
 */
static enum front_end check_torch(const struct printing *printing, const char *path)
{
    struct diagnosis diagnosis = {0};
    struct elf_file elf;
    struct error err;
    enum front_end front_end = FRONT_END_PRELOAD;
    char torch[PATH_MAX];
    if (!find_in_packages(path, "torch/lib/libtorch_cuda.so", torch)) {
        if (find_in_packages(path, "torch/lib/libtorch_cpu.so", torch)) {
            diagnose(&diagnosis, VERDICT_WARN,
                     "install the CUDA build, which works on emulated GPUs as well: pip install "
                     "torch",
                     "a build without CUDA: its jobs use gloo, and there is no NCCL to watch");
            print_diagnosis(printing, "Python's PyTorch", &diagnosis);
        }
        return FRONT_END_PRELOAD;
    }
    if (elf_file_read(&elf, torch, &err) < 0)
        diagnose(&diagnosis, VERDICT_FAIL, "reinstall PyTorch", "%s", err.text);
    else if (elf.defines_nccl && elf.holds_nccl)
        front_end = check_inside(&diagnosis, "PyTorch's libtorch_cuda.so", elf.holds_plugins);
    else
        diagnose(&diagnosis, VERDICT_OK, NULL,
                 "its libtorch_cuda.so calls the libnccl.so that it finds: seen");
    print_diagnosis(printing, "Python's PyTorch", &diagnosis);
    return front_end;
}

/* Python binds all functions of an extension when it is imported. */
static void check_torch_emulated(const struct printing *printing, const char *path,
                                 const char *interpreter)
{
    static const char *const names[] = {"torch/lib/libtorch_cuda.so",
                                        "torch/lib/libtorch_python.so",
                                        "torch/lib/libtorch_cuda_linalg.so"};
    enum { NAMES = sizeof names / sizeof *names };
    char found[NAMES][PATH_MAX];
    const char *files[NAMES];
    struct diagnosis diagnosis = {0};
    size_t count = 0;
    for (int i = 0; i < NAMES; i++)
        if (find_in_packages(path, names[i], found[count])) {
            files[count] = found[count];
            count++;
        }
    if (count > 0 && doctor_emulated(&diagnosis, files, count, interpreter))
        print_diagnosis(printing, "PyTorch, emulated", &diagnosis);
}

static enum front_end check_python(const struct printing *printing, const char *path,
                                   const char *interpreter)
{
    struct diagnosis diagnosis;
    struct elf_file elf;
    struct error err;
    char nccl[PATH_MAX];
    if (!find_in_packages(path, "nvidia/nccl/lib/libnccl.so*", nccl))
        diagnose(
            &diagnosis, VERDICT_WARN,
            "torch.distributed with its own NCCL needs it: pip install nvidia-nccl-cu12 (or -cu13)",
            "no nvidia-nccl package beside %s", path);
    else if (elf_file_read(&elf, nccl, &err) < 0)
        diagnose(&diagnosis, VERDICT_FAIL, "reinstall the package", "%s", err.text);
    else
        diagnose(&diagnosis, VERDICT_OK, NULL,
                 "%s, loaded dynamically: seen, by ctypes and dlsym as well", nccl);
    print_diagnosis(printing, "Python's NCCL", &diagnosis);
    enum front_end front_end = check_torch(printing, path);
    check_torch_emulated(printing, path, interpreter);
    return front_end;
}

static enum front_end check_elf(const struct printing *printing, const char *path,
                                const struct elf_file *elf)
{
    struct diagnosis diagnosis = {0};
    bool is_reached = check_preload(&diagnosis, elf);
    print_diagnosis(printing, "LD_PRELOAD", &diagnosis);
    if (!is_reached)
        return FRONT_END_NONE;
    if (is_python(path))
        return check_python(printing, path, elf->interpreter);
    if (doctor_launcher(&diagnosis, path)) {
        print_diagnosis(printing, "what it starts", &diagnosis);
        return diagnosis.verdict == VERDICT_FAIL ? FRONT_END_NONE : FRONT_END_PRELOAD;
    }
    struct libraries libraries = {0};
    doctor_libraries(path, elf->interpreter, visit_library, &libraries);
    enum front_end front_end = check_program_nccl(&diagnosis, elf, &libraries);
    print_diagnosis(printing, "its NCCL", &diagnosis);
    check_program_cudart(&diagnosis, elf, &libraries);
    print_diagnosis(printing, "its CUDA runtime", &diagnosis);
    check_sanitizer(printing, libraries.sanitizer);
    if (doctor_emulated(&diagnosis, &path, 1, elf->interpreter))
        print_diagnosis(printing, "its calls, emulated", &diagnosis);
    return front_end;
}

enum front_end doctor_program(char *const *program,
                              void (*print)(void *context, const char *name,
                                            const struct diagnosis *diagnosis),
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
            diagnose(&diagnosis, VERDICT_FAIL, "give its path, or check PATH",
                     "there is no program %s", name);
            print_diagnosis(&printing, "program", &diagnosis);
            return FRONT_END_NONE;
        }
        if (elf_file_read(&elf, path, &err) < 0 || elf.kind == ELF_NONE) {
            diagnose(&diagnosis, VERDICT_FAIL, "name the program itself", "%s",
                     elf.kind == ELF_NONE ? "neither an ELF program nor a script" : err.text);
            print_diagnosis(&printing, "program", &diagnosis);
            return FRONT_END_NONE;
        }
        diagnose(&diagnosis, VERDICT_OK, NULL,
                 elf.kind == ELF_SCRIPT ? "%s, a script for %s" : "%s", path, elf.interpreter);
        print_diagnosis(&printing, "program", &diagnosis);
        if (elf.kind == ELF_PROGRAM)
            return check_elf(&printing, path, &elf);
        snprintf(name, sizeof name, "%s", elf.interpreter);
    }
    diagnose(&diagnosis, VERDICT_FAIL, "name the program itself",
             "scripts that run scripts, %d deep", SCRIPTS_MAX);
    print_diagnosis(&printing, "program", &diagnosis);
    return FRONT_END_NONE;
}
