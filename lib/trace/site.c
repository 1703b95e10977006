/* site.c: reduces call stacks to the program's own frames. */
#include "lib/trace/site.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/path.h"
#include "lib/trace/cxx_name.h"
#include "lib/trace/names.h"

/* Objects in which a call ends or a thread begins; "libnccl" stands for libnccl.so.2 as well as
 * libnccl-net.so. AMD's names come last. */
static const char *const plumbing[] = {
    "libddpcheck", "libnccl",  "libcudart", "libcuda.",  "libcupti", "libc.so", "libc-",
    "libpthread",  "ld-linux", "libm.so",   "libstdc++", "libc++",   "librccl", "libamdhip64",
};

/* The interpreter, and PyTorch's part in it: as it shuts down, it frees objects and is in no line
 * of the program's. */
static const char *const interpreter[] = {"libpython", "python3", "libtorch_python"};

/* What is beneath Python frames, and says nothing there. */
static const char *const beneath_python[] = {"_ctypes", "libffi", "libtorch", "libc10"};

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool is_among(const char *module, const char *const *beginnings, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!strncmp(module, beginnings[i], strlen(beginnings[i])))
            return true;
    return false;
}

static bool contains_one_of(const char *path, const char *const *parts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strstr(path, parts[i]))
            return true;
    return false;
}

/* PyTorch's own Python and what Python starts programs by: the training program's line is the one
 * beneath. */
static bool is_framework(const char *file)
{
    static const char *const parts[] = {"-packages/torch/", "/torch/distributed/", "/torch/nn/",
                                        "/torch/autograd/"};
    return contains_one_of(file, parts, sizeof parts / sizeof parts[0]) ||
           !strncmp(file, "<frozen ", strlen("<frozen "));
}

/* What stands in a stack besides native frames: it decides what of those is worth showing. */
enum python { PYTHON_ABSENT, PYTHON_FRAMEWORK, PYTHON_OWN };

static enum python python_in(const struct frame *frames, int count)
{
    enum python found = PYTHON_ABSENT;
    for (int i = 0; i < count && !frames[i].address; i++) {
        if (!is_framework(frames[i].file))
            return PYTHON_OWN;
        found = PYTHON_FRAMEWORK;
    }
    return found;
}

/* NVTX, and what programs announce data to ddpcheck with, are inline functions of headers. */
static bool is_of_tool_header(const struct frame *frame)
{
    return strstr(frame->file, "/nvtx3/") || !strcmp(base_name(frame->file), "ddpcheck.h");
}

/* Templates and inline functions of the C++ library, CUDA's toolkit, Thrust and CUB are compiled
 * into the program, and their names need not say so where an argument is a type of a function. */
static bool is_of_library_header(const struct frame *frame)
{
    static const char *const parts[] = {"/include/c++/",
                                        "/usr/include/",
                                        "/usr/local/include/",
                                        "/targets/x86_64-linux/include/",
                                        "/include/cccl/",
                                        "/include/thrust/",
                                        "/include/cub/",
                                        "/thrust/thrust/",
                                        "/cub/cub/"};
    return contains_one_of(frame->file, parts, sizeof parts / sizeof parts[0]);
}

static bool is_interpreter(const struct frame *frame)
{
    return is_among(base_name(frame->module), interpreter,
                    sizeof interpreter / sizeof interpreter[0]);
}

static bool is_plumbing(const struct frame *frame, enum python python)
{
    const char *module = base_name(frame->module);
    if (!frame->address)
        return python == PYTHON_OWN && is_framework(frame->file);
    if (is_of_tool_header(frame) || is_of_library_header(frame))
        return true;
    if (is_among(module, plumbing, sizeof plumbing / sizeof plumbing[0]) || is_interpreter(frame) ||
        (python != PYTHON_ABSENT &&
         (is_among(module, beneath_python, sizeof beneath_python / sizeof beneath_python[0]) ||
          strstr(frame->module, "/lib-dynload/"))))
        return true;
    return !strcmp(frame->function, "_start") || !strcmp(frame->function, "__libc_start_main") ||
           cxx_name_is_standard(frame->function);
}

/* What nvcc makes of kernel<<<...>>>(...), in a file of its own: the index of the first frame
 * beyond. The function of the kernel's name that calls it stands where the kernel is defined. */
static int end_of_launch(const struct frame *frames, int count)
{
    int end = 0;
    for (int i = 0; i < count; i++)
        if (frames[i].address && strstr(frames[i].function, "device_stub_"))
            end = i + 1;
    for (int i = 0; i < end && end < count && *frames[end].function; i++)
        if (strstr(frames[i].function, frames[end].function))
            return end + 1;
    return end;
}

/* "ncclAllReduce", "pncclAllReduce": a call of NCCL's. */
static bool is_nccl_call(const char *function)
{
    const char *name = function + (*function == 'p');
    if (strncmp(name, "nccl", 4) != 0)
        return false;
    for (unsigned api = 1; api < API_COUNT; api++)
        if (api_class_of(api) <= CLASS_REDOP && !strcmp(api_name(api), name))
            return true;
    return false;
}

/* "MPI_Barrier", also of "PMPI_Barrier": what MPI does to wait, in libraries of its own, says
 * nothing. Open MPI's end leaves no frame of the call. NULL: it is none of MPI's. */
static const char *mpi_call(const char *function)
{
    if (!strcmp(function, "ompi_mpi_finalize"))
        return "MPI_Finalize";
    const char *name = function + (*function == 'P');
    return !strncmp(name, "MPI_", strlen("MPI_")) ? name : NULL;
}

/* Where NCCL is linked into the program, MPI called or a kernel launched, their frames end at the
 * call: the index of the first frame beyond, or 0. */
static int end_of_call(const struct frame *frames, int count)
{
    int end = end_of_launch(frames, count);
    for (int i = end; i < count; i++)
        if (frames[i].address && (is_nccl_call(frames[i].function) || mpi_call(frames[i].function)))
            end = i + 1;
    return end;
}

int site_own_frames(struct frame *frames, int count)
{
    enum python python = python_in(frames, count);
    int end = end_of_call(frames, count), kept = 0;
    for (int i = 0; i < count; i++)
        kept += (i >= end || !frames[i].address) && !is_plumbing(&frames[i], python);
    if (kept == 0)
        return count;
    kept = 0;
    for (int i = 0; i < count; i++)
        if ((i >= end || !frames[i].address) && !is_plumbing(&frames[i], python))
            frames[kept++] = frames[i];
    return kept;
}

int site_frames(struct trace *trace, int process, uint64_t stack, bool is_address,
                struct frame *frames)
{
    if (!stack || process < 0)
        return 0;
    return site_own_frames(
        frames, trace_frames(trace, process, stack, is_address, frames, SITE_FRAMES_MAX));
}

/* "__name@VERSION" and "name.part.0" as "name", NCCL's "pncclGroupEnd" as "ncclGroupEnd". */
static void call_name(const char *function, char *text, size_t bytes)
{
    char name[sizeof((struct frame *)NULL)->function];
    if (cxx_name_is(function)) {
        snprintf(text, bytes, "%s", cxx_name(function, name, sizeof name));
        return;
    }
    function += strspn(function, "_");
    function += !strncmp(function, "pnccl", 5);
    snprintf(text, bytes, "%.*s", (int)strcspn(function, "@(."), function);
}

/* Of the C library: what a thread is begun by, which nobody called. */
static bool starts_threads(const char *function)
{
    function += strspn(function, "_");
    return !strcmp(function, "start_thread") || !strcmp(function, "clone") ||
           !strcmp(function, "clone3");
}

/* The call of MPI that they are in; else the outermost of the native frames that lie in those
 * libraries, before the program's own. */
char *site_called(const struct frame *frames, int count, char *text, size_t bytes)
{
    *text = '\0';
    for (int i = count - 1; i >= 0; i--)
        if (frames[i].address && mpi_call(frames[i].function)) {
            snprintf(text, bytes, "%s", mpi_call(frames[i].function));
            return text;
        }
    for (int i = 0; i < count; i++) {
        if (!frames[i].address)
            continue;
        if (is_interpreter(&frames[i]) || !is_plumbing(&frames[i], PYTHON_ABSENT) ||
            starts_threads(frames[i].function))
            break;
        if (frames[i].function[strspn(frames[i].function, "_")] &&
            strncmp(base_name(frames[i].module), "libddpcheck", strlen("libddpcheck")))
            call_name(frames[i].function, text, bytes);
    }
    return text;
}

static bool is_of_module(const struct frame *frame, const char *beginning)
{
    return frame->address && !strncmp(base_name(frame->module), beginning, strlen(beginning));
}

/* The index of the frame in which ddpcheck's wrapper of a call of NCCL stands; 0: there is none. */
static int find_wrapper(const struct frame *frames, int count)
{
    for (int i = 1; i < count; i++)
        if (is_of_module(&frames[i], "libddpcheck") && is_nccl_call(frames[i].function))
            return i;
    return 0;
}

char *site_inside_nccl(const struct frame *frames, int count, char *text, size_t bytes)
{
    enum { SHOWN = 3 };
    int wrapper = find_wrapper(frames, count), shown = 0;
    size_t used = 0;
    *text = '\0';
    for (int i = 0; i < count && shown < SHOWN && used < bytes; i++) {
        const struct frame *frame = &frames[i];
        bool is_inside = is_of_module(frame, "libnccl") || is_of_module(frame, "librccl") ||
                         (i < wrapper && !is_plumbing(frame, PYTHON_ABSENT));
        char name[sizeof frame->function];
        if (!is_inside || !*frame->function || is_nccl_call(frame->function))
            continue;
        call_name(frame->function, name, sizeof name);
        used += (size_t)snprintf(text + used, bytes - used, "%s%s()", shown++ ? " of " : "", name);
    }
    return text;
}

/* Without what gcc adds to the names of functions that it made of others: ".part.0",
 * ".constprop.0", ".isra.0". */
static int plain_length(const char *function)
{
    const char *dot = strchr(function + (*function == '.'), '.');
    bool added = dot && !strchr(function, '(') && dot[1] >= 'a' && dot[1] <= 'z';
    return (int)(added ? (size_t)(dot - function) : strlen(function));
}

char *frame_function(const struct frame *frame, char *text, size_t bytes)
{
    char name[sizeof frame->function];
    if (frame->function[0] && !frame->address) /* Python's: "Model.step()", "<module>" */
        snprintf(text, bytes, "%s%s", frame->function, frame->function[0] == '<' ? "" : "()");
    else if (cxx_name_is(frame->function))
        snprintf(text, bytes, "%s()", cxx_name(frame->function, name, sizeof name));
    else if (frame->function[0])
        snprintf(text, bytes, strchr(frame->function, '(') ? "%.*s" : "%.*s()",
                 plain_length(frame->function), frame->function);
    else if (frame->module[0])
        snprintf(text, bytes, "0x%" PRIx64 " in %s", frame->address, base_name(frame->module));
    else
        snprintf(text, bytes, "0x%" PRIx64, frame->address);
    return text;
}

/* The path without the working directory before it. */
static const char *below_here(const char *path)
{
    char here[PATH_MAX];
    size_t bytes = getcwd(here, sizeof here) ? strlen(here) : 0;
    return bytes > 1 && !strncmp(path, here, bytes) && path[bytes] == '/' ? path + bytes + 1 : path;
}

char *frame_place(const struct frame *frame, int width, char *text, size_t bytes)
{
    char line[16] = "";
    *text = '\0';
    if (!frame->file[0])
        return text;
    if (frame->line > 0)
        snprintf(line, sizeof line, ":%d", frame->line);
    char plain[sizeof frame->file];
    snprintf(plain, sizeof plain, "%s", frame->file);
    path_normalize(plain);
    const char *path = below_here(plain);
    /* Whole directories go first: what is left is still a path that an editor finds. */
    const char *rest = path;
    int spare = width - (int)strlen(line);
    while ((int)strlen(rest) + (rest == path ? 0 : 4) > spare && strchr(rest, '/'))
        rest = strchr(rest, '/') + 1;
    snprintf(text, bytes, "%s%s%s", rest == path ? "" : ".../", rest, line);
    return text;
}

/* Sources of packages, and what they compiled (Cython): nobody fixes a program there. */
static bool is_of_package(const struct frame *frame)
{
    static const char *const parts[] = {"/site-packages/", "/dist-packages/", "/lib/python3"};
    const size_t count = sizeof parts / sizeof parts[0];
    return contains_one_of(frame->file, parts, count) ||
           contains_one_of(frame->module, parts, count) || is_framework(frame->file) ||
           *frame->file == '<'; /* "<frozen runpy>" */
}

/* Named after what it communicates, launches or waits for, as functions that only wrap such a call
 * are. */
static bool is_named_as_wrapper(const char *function)
{
    static const char *const words[] = {
        "barrier",  "allreduce",  "all_reduce", "broadcast", "bcast",   "gather", "scatter",
        "alltoall", "all_to_all", "send",       "recv",      "receive", "nccl",   "wait",
        "sync",     "launch",     "kernel",     "_cuda",     "memcpy",  "memset"};
    char name[sizeof((struct frame *)NULL)->function];
    const char *last = cxx_name_last(cxx_name(function, name, sizeof name));
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcasestr(last, words[i]))
            return true;
    return false;
}

static bool is_of_program(const struct frame *frame)
{
    return *frame->file && !is_of_package(frame);
}

/* The first frame beyond the file of frames[inner] that has a source of the program; -1 if there is
 * none. */
static int caller_in_other_file(const struct frame *frames, int count, int inner)
{
    for (int i = inner + 1; i < count; i++)
        if (is_of_program(&frames[i]) && strcmp(frames[i].file, frames[inner].file) != 0)
            return i;
    return -1;
}

/* Where a program begins. */
static bool is_in_main(const struct frame *frames, int i)
{
    return i >= 0 && !strcmp(frames[i].function, frames[i].address ? "main" : "<module>");
}

/* The first frame beyond frames[inner] that has a source of the program and is of no wrapper. What
 * main() calls in another file is the program itself, whatever its name. */
static int caller_of_wrapper(const struct frame *frames, int count, int inner)
{
    int caller = inner;
    for (int i = inner + 1; i < count && is_named_as_wrapper(frames[caller].function); i++) {
        bool is_other_file = strcmp(frames[i].file, frames[caller].file) != 0;
        if (is_of_program(&frames[i]) && !(is_in_main(frames, i) && is_other_file))
            caller = i;
    }
    return caller;
}

static bool is_of_header(const struct frame *frame)
{
    static const char *const endings[] = {".h",   ".hh",  ".hpp", ".hxx", ".cuh",
                                          ".inl", ".ipp", ".tcc", ".tpp", ".inc"};
    const char *ending = strrchr(base_name(frame->file), '.');
    for (size_t i = 0; ending && i < sizeof endings / sizeof endings[0]; i++)
        if (!strcmp(ending, endings[i]))
            return true;
    return false;
}

/* Inline functions and templates of a header serve many callers, whose lines are those that differ:
 * the first frame beyond frames[inner] that is of no header. Where that is main(), the program
 * itself may be in headers: then the one beyond this header. */
static int caller_of_header(const struct frame *frames, int count, int inner)
{
    int caller = inner;
    while (caller >= 0 && is_of_header(&frames[caller]))
        caller = caller_in_other_file(frames, count, caller);
    if (caller < 0 || is_in_main(frames, caller))
        caller = caller_in_other_file(frames, count, inner);
    bool stays = is_in_main(frames, caller) && !is_named_as_wrapper(frames[inner].function);
    return caller < 0 || stays ? inner : caller;
}

/* An interpreter that was built with its lines is no program of the user's. */
static bool has_user_line(const struct frame *frame)
{
    return *frame->file && !is_of_tool_header(frame) && !(frame->address && is_interpreter(frame));
}

bool site_is_of_program(const struct frame *frame)
{
    return is_of_program(frame) && has_user_line(frame);
}

int site_user_frame(const struct frame *frames, int count)
{
    int found = -1;
    for (int i = count - 1; i >= 0; i--)
        if (has_user_line(&frames[i]) &&
            (found < 0 || !is_of_package(&frames[i]) || is_of_package(&frames[found])))
            found = i;
    if (found >= 0 && is_of_header(&frames[found]))
        found = caller_of_header(frames, count, found);
    return found < 0 ? found : caller_of_wrapper(frames, count, found);
}

void site_shown_frames(struct trace *trace, int process, uint64_t stack, bool is_address,
                       struct shown_frames *frames)
{
    frames->count = site_frames(trace, process, stack, is_address, frames->frame);
    frames->shown = site_user_frame(frames->frame, frames->count);
}

static bool is_same_line(const struct frame *a, const struct frame *b)
{
    return a->line == b->line && !strcmp(a->file, b->file);
}

int site_frame_beside(const struct frame *frames, int count, const struct frame *others,
                      int other_count)
{
    int found = site_user_frame(frames, count), other = site_user_frame(others, other_count);
    if (found < 0 || other < 0 || !is_same_line(&frames[found], &others[other]))
        return found;
    int at = count - 1, other_at = other_count - 1;
    while (at >= 0 && other_at >= 0 && is_same_line(&frames[at], &others[other_at])) {
        at--;
        other_at--;
    }
    while (at >= 0 && !is_of_program(&frames[at]))
        at--;
    return at < 0 || other_at < 0 ? found : at;
}

int site_shown_frame(const struct frame *frames, int count)
{
    int found = site_user_frame(frames, count);
    return found >= 0 || count == 0 ? found : 0;
}

char *site_user_line(struct trace *trace, int process, uint64_t stack, bool is_address, int width,
                     char *text, size_t bytes)
{
    struct frame frame[SITE_FRAMES_MAX];
    char place[sizeof frame->file], function[sizeof frame->function + 8];
    int found = site_user_frame(frame, site_frames(trace, process, stack, is_address, frame));
    *text = '\0';
    if (found < 0)
        return text;
    frame_place(&frame[found], width, place, sizeof place);
    frame_function(&frame[found], function, sizeof function);
    snprintf(text, bytes, "%s, in %s", place, function);
    return text;
}

int site_first_frame(const struct frame *frames, int count, int most)
{
    return site_first_shown(site_user_frame(frames, count), most);
}

int site_first_shown(int wanted, int most)
{
    return wanted >= most ? wanted : 0;
}

void site_write_frames(struct trace *trace, int process, uint64_t stack, bool is_address, FILE *out)
{
    struct frame *frame = stack ? malloc(SITE_FRAMES_MAX * sizeof *frame) : NULL;
    int count = frame ? trace_frames(trace, process, stack, is_address, frame, SITE_FRAMES_MAX) : 0;
    for (int i = 0; i < count; i++)
        fprintf(out, "%s %s\n", frame[i].function, frame[i].file);
    free(frame);
}
