/* modules.c: emits the executable files that are mapped into this process (notice_module). */
#include "interpose/stacks/modules.h"

#include <elf.h>
#include <link.h>
#include <string.h>

#include "interpose/real/library_name.h"
#include "interpose/ring/emit.h"
#include "interpose/shim/forget.h"
#include "interpose/stacks/library_version.h"
#include "interpose/stacks/mapped_files.h"

enum { MODULES_MAX = 2048 };

/* The executable mappings that were emitted, by the time of that. */
static struct {
    _Atomic uint64_t start[MODULES_MAX], end[MODULES_MAX];
    _Atomic uint64_t frames[MODULES_MAX]; /* address of the module's .eh_frame_hdr, 0 none */
    _Atomic uint32_t count;
    _Atomic uint32_t scanning; /* one thread at a time searches for new ones */
} modules;

void modules_forked(void)
{
    forget_state(&modules, sizeof modules);
}

static void find_build_id(const struct dl_phdr_info *info, struct record *record)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_NOTE)
            continue;
        const char *at = (const char *)(info->dlpi_addr + header->p_vaddr),
                   *end = at + header->p_memsz;
        while (end - at > (long)sizeof(ElfW(Nhdr))) {
            ElfW(Nhdr) note;
            memcpy(&note, at, sizeof note);
            const char *name = at + sizeof note;
            const char *data = name + ((note.n_namesz + 3) & ~3u);
            if (data > end || note.n_descsz > (uint64_t)(end - data))
                break;
            if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && !memcmp(name, "GNU", 4)) {
                uint32_t bytes = note.n_descsz < sizeof record->module.build_id
                                     ? note.n_descsz
                                     : sizeof record->module.build_id;
                memcpy(record->module.build_id, data, bytes);
                record->module.build_id_bytes = bytes;
                return;
            }
            at = data + ((note.n_descsz + 3) & ~3u);
        }
    }
}

static bool is_emitted(uint64_t start, uint64_t end)
{
    uint32_t count = atomic_load_explicit(&modules.count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++)
        if (atomic_load_explicit(&modules.start[i], memory_order_relaxed) == start &&
            atomic_load_explicit(&modules.end[i], memory_order_relaxed) == end)
            return true;
    return false;
}

static uint64_t find_frame_table(const struct dl_phdr_info *info)
{
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME)
            return info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    return 0;
}

static void emit_module(struct shim_thread *thread, const struct dl_phdr_info *info, uint64_t start,
                        uint64_t end)
{
    size_t bytes = library_name_bytes(info);
    const char *path = bytes ? info->dlpi_name : shim.process.program;
    struct record record = {
        .module = {.base = info->dlpi_addr,
                   .start = start,
                   .end = end,
                   .path = emit_string(thread, path, bytes ? bytes : strlen(path))}};
    find_build_id(info, &record);
    uint32_t count = atomic_load(&modules.count);
    if (!emit_notice(thread, &record, API_notice_module) || count == MODULES_MAX)
        return;
    atomic_store_explicit(&modules.start[count], start, memory_order_relaxed);
    atomic_store_explicit(&modules.end[count], end, memory_order_relaxed);
    atomic_store_explicit(&modules.frames[count], find_frame_table(info), memory_order_relaxed);
    atomic_store_explicit(&modules.count, count + 1, memory_order_release);
}

/* Returns whether one of its mappings is new. */
static bool emit_new_mappings(struct shim_thread *thread, const struct dl_phdr_info *info)
{
    bool is_new = false;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uint64_t start = info->dlpi_addr + header->p_vaddr;
        if (header->p_type != PT_LOAD || !(header->p_flags & PF_X) ||
            is_emitted(start, start + header->p_memsz))
            continue;
        emit_module(thread, info, start, start + header->p_memsz);
        is_new = true;
    }
    return is_new;
}

static int see_loaded(struct dl_phdr_info *info, size_t size, void *argument)
{
    (void)size;
    if (emit_new_mappings(argument, info))
        library_version_record(argument, info->dlpi_name, library_name_bytes(info));
    return 0;
}

static void see_mapped(const struct dl_phdr_info *info, void *argument)
{
    emit_new_mappings(argument, info);
}

static void record_new(struct shim_thread *thread, bool in_crash)
{
    if (atomic_exchange(&modules.scanning, 1))
        return; /* another thread does it; what it does not find is searched for again */
    if (in_crash)
        mapped_files_see(see_mapped, thread);
    else
        dl_iterate_phdr(see_loaded, thread);
    atomic_store(&modules.scanning, 0);
}

void modules_record(struct shim_thread *thread)
{
    record_new(thread, false);
}

void modules_record_in_crash(struct shim_thread *thread)
{
    record_new(thread, true);
}

/* Its number, -1 if it is in none; of two at one address the first was unloaded. */
static int find_module(uint64_t address)
{
    uint32_t count = atomic_load_explicit(&modules.count, memory_order_acquire);
    for (uint32_t i = count; i-- > 0;)
        if (address >= atomic_load_explicit(&modules.start[i], memory_order_relaxed) &&
            address < atomic_load_explicit(&modules.end[i], memory_order_relaxed))
            return (int)i;
    return -1;
}

bool modules_have(uint64_t address)
{
    return find_module(address) >= 0;
}

bool modules_are_same(uint64_t address, uint64_t other)
{
    int module = find_module(address);
    return module >= 0 && module == find_module(other);
}

uint64_t modules_frame_table(uint64_t address)
{
    int module = find_module(address);
    return module < 0 ? 0 : atomic_load_explicit(&modules.frames[module], memory_order_relaxed);
}

void modules_cover(struct shim_thread *thread, uint64_t address)
{
    uint64_t page = address / RING_PAGE;
    uint64_t *known = &thread->caches->page[page % PAGE_CACHE];
    if (*known == page)
        return;
    if (!modules_have(address))
        modules_record(thread);
    *known = page; /* code that no file holds (made at run time) is searched for once per page */
}
