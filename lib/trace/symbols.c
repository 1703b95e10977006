/* symbols.c: finds the function, file and line of an address by the object files on disk. */
#include "lib/trace/symbols.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t build_id_parse(const char *text, uint8_t *build_id, size_t size)
{
    size_t bytes = strlen(text) / 2;
    if (bytes > size)
        return 0;
    for (size_t i = 0; i < bytes; i++) {
        unsigned value;
        if (sscanf(text + 2 * i, "%2x", &value) != 1)
            return 0;
        build_id[i] = (uint8_t)value;
    }
    return bytes;
}

/* What can be said without debug information. */
static void name_offset(const struct symbols_module *module, uint64_t address, const char *why,
                        struct frame *frame)
{
    frame->function[0] = frame->file[0] = 0;
    frame->line = 0;
    snprintf(frame->module, sizeof frame->module, "%s+0x%" PRIx64 "%s", module->path,
             address - module->base, why);
}

#ifdef HAVE_LIBDW

#include <dwarf.h>
#include <elfutils/libdwfl.h>

#include "lib/trace/symbol_index.h"

enum object_state { OBJECT_GOOD, OBJECT_GONE, OBJECT_CHANGED };

/* An object file, opened once. */
struct object {
    char *path;
    Dwfl *dwfl;
    Dwfl_Module *module;
    GElf_Addr bias;
    const unsigned char *build_id;
    int build_id_bytes;
    struct symbol_index *index; /* of a large object, else NULL */
    struct object *next;
};

struct symbols {
    struct object *objects;
};

/* Separate debug files below /usr/lib/debug by build id; never asks a server on the network. */
static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = dwfl_build_id_find_debuginfo,
    .section_address = dwfl_offline_section_address,
};

struct symbols *symbols_new(void)
{
    return calloc(1, sizeof(struct symbols));
}

void symbols_free(struct symbols *symbols)
{
    if (!symbols)
        return;
    for (struct object *object = symbols->objects; object;) {
        struct object *next = object->next;
        symbol_index_free(object->index);
        if (object->dwfl)
            dwfl_end(object->dwfl);
        free(object->path);
        free(object);
        object = next;
    }
    free(symbols);
}

static void open_object(struct object *object)
{
    object->dwfl = dwfl_begin(&callbacks);
    if (!object->dwfl)
        return;
    dwfl_report_begin(object->dwfl);
    object->module = dwfl_report_offline(object->dwfl, object->path, object->path, -1);
    dwfl_report_end(object->dwfl, NULL, NULL);
    if (!object->module || !dwfl_module_getelf(object->module, &object->bias)) {
        object->module = NULL;
        return;
    }
    GElf_Addr address;
    object->build_id_bytes = dwfl_module_build_id(object->module, &object->build_id, &address);
    if (dwfl_module_getsymtab(object->module) >= SYMBOL_INDEX_WORTH)
        object->index = symbol_index_new(object->module);
}

static struct object *find_object(struct symbols *symbols, const char *path)
{
    for (struct object *object = symbols->objects; object; object = object->next)
        if (strcmp(object->path, path) == 0)
            return object;
    struct object *object = calloc(1, sizeof *object);
    if (!object || !(object->path = strdup(path))) {
        free(object);
        return NULL;
    }
    open_object(object);
    object->next = symbols->objects;
    symbols->objects = object;
    return object;
}

static enum object_state compare(const struct object *object, const struct symbols_module *module)
{
    if (!object || !object->module)
        return OBJECT_GONE;
    if (module->build_id_bytes == 0)
        return OBJECT_GOOD;
    bool same = object->build_id_bytes == (int)module->build_id_bytes &&
                memcmp(object->build_id, module->build_id, module->build_id_bytes) == 0;
    return same ? OBJECT_GOOD : OBJECT_CHANGED;
}

static void set_line(struct frame *frame, const char *directory, const char *file, int line)
{
    if (!file)
        return;
    frame->line = line;
    if (file[0] == '/' || !directory)
        snprintf(frame->file, sizeof frame->file, "%s", file);
    else
        snprintf(frame->file, sizeof frame->file, "%s/%s", directory, file);
}

/* The unit of an address. GCC writes .debug_aranges, by which libdw finds it; clang does not: ask
 * each unit. */
static Dwarf_Die *find_unit(struct object *object, GElf_Addr at, Dwarf_Addr *bias)
{
    Dwarf_Die *unit = dwfl_module_addrdie(object->module, at, bias);
    if (unit && dwarf_haspc(unit, at - *bias) > 0)
        return unit;
    for (unit = NULL; (unit = dwfl_module_nextcu(object->module, unit, bias));)
        if (dwarf_haspc(unit, at - *bias) > 0)
            return unit;
    return NULL;
}

static bool has_ending(const char *text, const char *ending)
{
    size_t length = strlen(text), bytes = strlen(ending);
    return length >= bytes && !strcmp(text + length - bytes, ending);
}

/* Of the headers of C++ some have no ending. */
static bool is_header(const char *file)
{
    static const char *const endings[] = {".h", ".hh", ".hpp", ".hxx", ".cuh", ".inl"};
    const char *slash = strrchr(file, '/');
    if (!strchr(slash ? slash : file, '.'))
        return true;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (has_ending(file, endings[i]))
            return true;
    return false;
}

/* The line from which the inlined function was called. False if it is not known. */
static bool find_inlining_line(Dwarf_Die *unit, Dwarf_Die *inlined, const char *directory,
                               struct frame *frame)
{
    Dwarf_Attribute attribute;
    Dwarf_Word line, file;
    Dwarf_Files *files;
    size_t file_count;
    if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &line) ||
        dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &file) ||
        dwarf_getsrcfiles(unit, &files, &file_count) || file >= file_count)
        return false;
    set_line(frame, directory, dwarf_filesrc(files, file, NULL, NULL), (int)line);
    return true;
}

static void name_inlined(Dwarf_Die *inlined, struct frame *frame)
{
    Dwarf_Attribute attribute;
    const char *name =
        dwarf_formstring(dwarf_attr_integrate(inlined, DW_AT_linkage_name, &attribute));
    name = name ? name : dwarf_diename(inlined);
    if (name)
        snprintf(frame->function, sizeof frame->function, "%s", name);
}

/* Of functions that were inlined one into the other there, the innermost that stands in a source:
 * what headers do is of no interest, and a name goes with a line of its own function. */
static void leave_inlined_headers(Dwarf_Die *unit, Dwarf_Addr at, const char *directory,
                                  struct frame *frame)
{
    /* dwarf_getscopes goes on with the scopes of the inlined function's definition; its tree has
     * the callers. */
    Dwarf_Die *innermost = NULL, *scopes = NULL;
    int count =
        dwarf_getscopes(unit, at, &innermost) > 0 ? dwarf_getscopes_die(&innermost[0], &scopes) : 0;
    free(innermost);
    for (int i = 0; i < count; i++) {
        if (dwarf_tag(&scopes[i]) != DW_TAG_inlined_subroutine)
            continue;
        if (*frame->file && !is_header(frame->file)) {
            name_inlined(&scopes[i], frame);
            break;
        }
        if (!find_inlining_line(unit, &scopes[i], directory, frame))
            break;
    }
    free(scopes);
}

static void find_line(struct object *object, GElf_Addr at, struct frame *frame)
{
    Dwarf_Addr bias = 0;
    Dwarf_Die *unit = find_unit(object, at, &bias);
    if (!unit)
        return;
    Dwarf_Attribute attribute;
    const char *directory = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attribute));
    int number = 0;
    Dwarf_Line *line = dwarf_getsrc_die(unit, at - bias);
    if (line && !dwarf_lineno(line, &number))
        set_line(frame, directory, dwarf_linesrc(line, NULL, NULL), number);
    leave_inlined_headers(unit, at - bias, directory, frame);
}

void symbols_find(struct symbols *symbols, const struct symbols_module *module, uint64_t address,
                  struct frame *frame)
{
    *frame = (struct frame){.address = address};
    static const char *const why[] = {
        [OBJECT_GOOD] = "",
        [OBJECT_GONE] = " (no such object file here)",
        [OBJECT_CHANGED] = " (the file has changed since)",
    };
    struct object *object = find_object(symbols, module->path);
    enum object_state state = compare(object, module);
    name_offset(module, address, why[state], frame);
    if (state != OBJECT_GOOD)
        return;
    GElf_Addr at = address - module->base + object->bias - 1; /* inside the call, not behind it */
    const char *function = object->index ? symbol_index_find(object->index, at)
                                         : dwfl_module_addrname(object->module, at);
    if (!function)
        return;
    snprintf(frame->function, sizeof frame->function, "%s", function);
    snprintf(frame->module, sizeof frame->module, "%s", module->path);
    find_line(object, at, frame);
}

#else

struct symbols {
    char unused;
};

struct symbols *symbols_new(void)
{
    return calloc(1, sizeof(struct symbols));
}

void symbols_free(struct symbols *symbols)
{
    free(symbols);
}

void symbols_find(struct symbols *symbols, const struct symbols_module *module, uint64_t address,
                  struct frame *frame)
{
    (void)symbols;
    *frame = (struct frame){.address = address};
    name_offset(module, address, "", frame);
}

#endif
