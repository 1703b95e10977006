/* native.c: native frames by libdw: threads are stopped one by one, unwound, and let go; names are
 * looked up after that. */
#include "lib/live/live_internal.h"

#ifdef HAVE_LIBDW

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/trace/symbols.h"

struct addresses {
    uint64_t address[LIVE_FRAMES_MAX]; /* as return addresses: one behind the instruction */
    int count;
};

static int read_native_frame(Dwfl_Frame *state, void *context)
{
    struct addresses *addresses = context;
    Dwarf_Addr pc;
    bool is_activation;
    if (!dwfl_frame_pc(state, &pc, &is_activation) || addresses->count == LIVE_FRAMES_MAX)
        return DWARF_CB_ABORT;
    addresses->address[addresses->count++] = pc + is_activation;
    return DWARF_CB_OK;
}

struct unwinding {
    struct live_process *process;
    struct addresses *of; /* for each thread */
};

static int take_thread(Dwfl_Thread *thread, void *context)
{
    const struct unwinding *unwinding = context;
    struct live_thread *known =
        live_find_thread(unwinding->process, (uint32_t)dwfl_thread_tid(thread));
    /* A thread that ends meanwhile, or whose frames can't be followed to the end, keeps what was
     * found. */
    if (known)
        dwfl_thread_getframes(thread, read_native_frame,
                              &unwinding->of[known - unwinding->process->thread]);
    return DWARF_CB_OK;
}

/* The file as this process sees it: in a container of its own it lies below /proc/PID/root. */
static const char *visible_path(int pid, const char *path, char *text, size_t bytes)
{
    if (path[0] != '/' || !access(path, R_OK))
        return path;
    snprintf(text, bytes, "/proc/%d/root%s", pid, path);
    return text;
}

/* At most ADDRESS_FRAMES_MAX. */
static int name_frames_of(int pid, Dwfl *dwfl, struct symbols *symbols, uint64_t address,
                          struct frame *frame)
{
    char path[600];
    const char *name = NULL;
    const unsigned char *build_id = NULL;
    GElf_Addr bias, build_id_at;
    Dwfl_Module *module = dwfl_addrmodule(dwfl, address - 1);
    *frame = (struct frame){.address = address};
    if (!module || !dwfl_module_getelf(module, &bias))
        return 1;
    dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, &name, NULL);
    int build_id_bytes = dwfl_module_build_id(module, &build_id, &build_id_at);
    struct symbols_module where = {.path = visible_path(pid, name ? name : "", path, sizeof path),
                                   .base = bias,
                                   .build_id = build_id,
                                   .build_id_bytes = build_id_bytes > 0 ? (size_t)build_id_bytes
                                                                        : 0};
    int count = symbols_find(symbols, &where, address, frame, ADDRESS_FRAMES_MAX);
    if (!frame->function[0]) { /* the vdso, a file that is gone: what its image in memory says */
        const char *function = dwfl_module_addrname(module, address - 1);
        snprintf(frame->function, sizeof frame->function, "%s", function ? function : "");
        if (function)
            snprintf(frame->module, sizeof frame->module, "%s", name ? name : "");
    }
    return count;
}

static int name_frames(struct live_process *process, Dwfl *dwfl, struct symbols *symbols,
                       const struct addresses *of, struct error *err)
{
    bool short_of_memory = false;
    for (int i = 0; i < process->threads && !short_of_memory; i++) {
        struct live_thread *thread = &process->thread[i];
        for (int at = 0; at < of[i].count && !short_of_memory; at++) {
            struct frame *frame = live_more_frames(thread, ADDRESS_FRAMES_MAX);
            short_of_memory = !frame;
            if (frame)
                thread->frames +=
                    name_frames_of(process->pid, dwfl, symbols, of[i].address[at], frame);
        }
    }
    return short_of_memory ? error_set(err, OUT_OF_MEMORY) : 0;
}

int live_read_native(struct live_process *process, Dwfl *dwfl, struct symbols *symbols,
                     struct error *err)
{
    int failed = dwfl_linux_proc_attach(dwfl, process->pid, false);
    if (failed)
        return error_set(err, "cannot stop the threads of process %d for a moment: %s",
                         process->pid, failed > 0 ? strerror(failed) : dwfl_errmsg(-1));
    struct unwinding unwinding = {process, calloc((size_t)process->threads, sizeof *unwinding.of)};
    if (!unwinding.of)
        return error_set(err, OUT_OF_MEMORY);
    dwfl_errno(); /* forget older errors */
    int found = 0;
    if (dwfl_getthreads(dwfl, take_thread, &unwinding) < 0)
        failed = error_set(err, "cannot list the threads of process %d: %s", process->pid,
                           dwfl_errmsg(-1));
    for (int i = 0; i < process->threads; i++)
        found += unwinding.of[i].count > 0;
    if (!failed &&
        !found) /* a debugger has it, or ptrace is forbidden while reading memory is not */
        failed = error_set(err,
                           "cannot stop the threads of process %d (%s); is a debugger attached? "
                           "--python reads Python's "
                           "frames without stopping anything",
                           process->pid, dwfl_errmsg(-1));
    if (!failed)
        failed = name_frames(process, dwfl, symbols, unwinding.of, err);
    free(unwinding.of);
    return failed;
}

#endif
