/* doctor: whether the emulated libraries have the functions of CUDA and NCCL that a program and its
 * libraries call. They stand for the real ones of the same file name. */
#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/doctor/doctor.h"
#include "cmd/doctor/elf_file.h"
#include "cmd/run_environment.h"
#include "lib/base/array.h"

enum { NAMES_SHOWN = 4 };

struct cuda_names {
    char **name;
    size_t count;
};

/* What the libraries of a program want and have. */
struct emulated_match {
    char folder[PATH_MAX];     /* of the emulated libraries */
    struct cuda_names visited; /* paths of libraries */
    struct cuda_names wanted, defined;
    bool is_emulated;        /* the library that is read: what it wants, it has */
    char first_missing[256]; /* a library that neither ld.so nor the emulator has */
    bool failed;             /* for lack of memory */
};

static void collect_name(struct emulated_match *match, struct cuda_names *list, const char *name)
{
    char *copy = strdup(name);
    if (!copy || !ARRAY_ADD(list->name, list->count)) {
        free(copy);
        match->failed = true;
        return;
    }
    list->name[list->count++] = copy;
}

static void free_names(struct cuda_names *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->name[i]);
    free(list->name);
}

static int order_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort_names(struct cuda_names *list)
{
    if (list->count)
        qsort(list->name, list->count, sizeof *list->name, order_names);
}

static bool has_name(const struct cuda_names *sorted, const char *name)
{
    return sorted->count &&
           bsearch(&name, sorted->name, sorted->count, sizeof *sorted->name, order_names);
}

/* Functions of NCCL, the CUDA runtime, the driver (cuInit) and the libraries of CUDA
 * (cublasCreate). */
static bool is_of_cuda(const char *name)
{
    static const char *const prefixes[] = {"nccl",     "pnccl",    "cuda",  "__cuda",
                                           "cublas",   "cudnn",    "cufft", "curand",
                                           "cusolver", "cusparse", "cupti"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return strncmp(name, "cu", 2) == 0 && name[2] >= 'A' && name[2] <= 'Z';
}

static void visit_symbol(void *context, const char *name, enum elf_symbol_kind kind)
{
    struct emulated_match *match = context;
    if (!is_of_cuda(name))
        return;
    if (kind == ELF_SYMBOL_DEFINED)
        collect_name(match, &match->defined, name);
    else if (kind == ELF_SYMBOL_WANTED && !match->is_emulated)
        collect_name(match, &match->wanted, name);
}

/* The emulated library of this file name. Returns false if there is none. */
static bool find_emulated(const struct emulated_match *match, const char *path,
                          char found[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    return snprintf(found, PATH_MAX, "%s/%s", match->folder, slash ? slash + 1 : path) < PATH_MAX &&
           access(found, R_OK) == 0;
}

static void read_library(struct emulated_match *match, const char *path, bool is_emulated)
{
    struct error err;
    match->is_emulated = is_emulated;
    for (size_t i = 0; i < match->visited.count; i++)
        if (strcmp(match->visited.name[i], path) == 0)
            return;
    collect_name(match, &match->visited, path);
    elf_file_visit_symbols(path, visit_symbol, match, &err);
}

/* All of them: a program may open one before the library that calls it. */
static void read_emulated(struct emulated_match *match)
{
    char path[PATH_MAX];
    DIR *folder = opendir(match->folder);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (strstr(entry->d_name, ".so") && find_emulated(match, entry->d_name, path))
            read_library(match, path, true);
    if (folder)
        closedir(folder);
}

static void visit_needed(void *context, const char *path, const char *missing)
{
    struct emulated_match *match = context;
    char emulated[PATH_MAX];
    if (find_emulated(match, path ? path : missing, emulated))
        return;
    if (path)
        read_library(match, path, false);
    else if (!match->first_missing[0])
        snprintf(match->first_missing, sizeof match->first_missing, "%s", missing);
}

/* "ncclCommGrow, ncclSignal and 3 more"; empty: nothing is missing. */
static void write_missing(struct emulated_match *match, char *text, size_t bytes)
{
    size_t used = 0, count = 0;
    const char *last = "";
    sort_names(&match->wanted);
    sort_names(&match->defined);
    *text = 0;
    for (size_t i = 0; i < match->wanted.count; i++) {
        const char *name = match->wanted.name[i];
        if (strcmp(name, last) == 0 || has_name(&match->defined, name))
            continue;
        last = name;
        if (count++ < NAMES_SHOWN && used < bytes)
            used += (size_t)snprintf(text + used, bytes - used, "%s%s", *text ? ", " : "", name);
    }
    if (count > NAMES_SHOWN && used < bytes)
        snprintf(text + used, bytes - used, " and %zu more", count - NAMES_SHOWN);
}

static void diagnose_match(struct diagnosis *diagnosis, struct emulated_match *match)
{
    enum verdict verdict = doctor_has_driver() ? VERDICT_WARN : VERDICT_FAIL;
    char missing[400];
    write_missing(match, missing, sizeof missing);
    if (match->failed)
        diagnose(diagnosis, VERDICT_WARN, NULL, "there is not enough memory to read its functions");
    else if (match->first_missing[0]) /* a missing function may be its */
        diagnose(diagnosis, VERDICT_WARN, "set LD_LIBRARY_PATH as for the run and ask again",
                 "ld.so finds no %s, so its functions were not compared with those emulated",
                 match->first_missing);
    else if (missing[0])
        diagnose(diagnosis, verdict,
                 "run it where there is a GPU, or with the versions of CUDA and NCCL that are "
                 "emulated (docs/emulator.md)",
                 "it calls what the emulated libraries lack: %s", missing);
    else
        diagnose(diagnosis, VERDICT_OK, NULL,
                 "the emulated libraries have every function of CUDA and NCCL that it calls");
}

bool doctor_emulates(const char *library)
{
    struct emulated_match match = {.failed = false};
    struct error err;
    char found[PATH_MAX];
    return emulated_folder(match.folder, &err) == 0 && find_emulated(&match, library, found);
}

bool doctor_emulated(struct diagnosis *diagnosis, const char *const *files, size_t count,
                     const char *interpreter)
{
    struct emulated_match match = {.failed = false};
    struct error err;
    if (emulated_folder(match.folder, &err) < 0)
        return false;
    read_emulated(&match);
    for (size_t i = 0; i < count; i++) {
        read_library(&match, files[i], false);
        doctor_libraries(files[i], interpreter, visit_needed, &match);
    }
    bool any = match.wanted.count > 0;
    if (any)
        diagnose_match(diagnosis, &match);
    free_names(&match.visited);
    free_names(&match.wanted);
    free_names(&match.defined);
    return any;
}
