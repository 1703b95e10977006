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
#include <unistd.h>

#include "lib/base/plain_file.h"
#include "lib/trace/symbol_index.h"

enum object_state { OBJECT_GOOD, OBJECT_GONE, OBJECT_CHANGED, OBJECT_FOREIGN };

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

static void open_object(struct object *object, bool follows_links)
{
    int fd = plain_file_open(object->path, follows_links);
    object->dwfl = fd >= 0 ? dwfl_begin(&callbacks) : NULL;
    if (!object->dwfl) {
        if (fd >= 0)
            close(fd);
        return;
    }
    dwfl_report_begin(object->dwfl);
    object->module = dwfl_report_offline(object->dwfl, object->path, object->path, fd);
    if (!object->module) /* else it owns the file */
        close(fd);
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

static struct object *find_object(struct symbols *symbols, const char *path,
                                  enum symbols_files files)
{
    for (struct object *object = symbols->objects; object; object = object->next)
        if (strcmp(object->path, path) == 0)
            return object;
    struct object *object = calloc(1, sizeof *object);
    if (!object || !(object->path = strdup(path))) {
        free(object);
        return NULL;
    }
    open_object(object, files == SYMBOLS_ALL);
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

/* Its lines say nothing of a program, and to read its debug file takes longer than all the rest
 * (docs/decisions/hangs.md, "An address"). */
static bool is_c_library(const struct object *object)
{
    static const char *const beginnings[] = {"libc.so.", "libc-2.", "ld-linux", "libpthread"};
    const char *slash = strrchr(object->path, '/'), *name = slash ? slash + 1 : object->path;
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (!strncmp(name, beginnings[i], strlen(beginnings[i])))
            return true;
    return false;
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

static void set_call_line(Dwarf_Die *unit, Dwarf_Die *inlined, const char *directory,
                          struct frame *frame)
{
    Dwarf_Attribute attribute;
    Dwarf_Word line, file;
    Dwarf_Files *files;
    size_t file_count;
    frame->file[0] = 0;
    frame->line = 0;
    if (!dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &line) &&
        !dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &file) &&
        !dwarf_getsrcfiles(unit, &files, &file_count) && file < file_count)
        set_line(frame, directory, dwarf_filesrc(files, file, NULL, NULL), (int)line);
}

static void name_inlined(Dwarf_Die *inlined, struct frame *frame)
{
    Dwarf_Attribute attribute;
    const char *name =
        dwarf_formstring(dwarf_attr_integrate(inlined, DW_AT_linkage_name, &attribute));
    name = name ? name : dwarf_diename(inlined);
    snprintf(frame->function, sizeof frame->function, "%s", name ? name : "");
}

/* The frames of one address. */
struct chain {
    struct frame *frames;
    int count, max;
};

/* In a full chain the new, outermost frame replaces the last one, but never the innermost. */
static void extend_chain(struct chain *chain, const struct frame *frame)
{
    if (chain->count < chain->max)
        chain->count++;
    else if (chain->max == 1)
        return;
    chain->frames[chain->count - 1] = *frame;
}

/* The definition that a function or its inlined copy comes from. */
static Dwarf_Off definition_of(Dwarf_Die *function)
{
    Dwarf_Attribute attribute;
    Dwarf_Die origin;
    bool has = dwarf_formref_die(dwarf_attr(function, DW_AT_abstract_origin, &attribute), &origin);
    return dwarf_dieoffset(has ? &origin : function);
}

/* gcc splits functions, and inlines a part into the rest: both are one function. */
static bool is_part_of_caller(Dwarf_Die *scopes, int count)
{
    for (int i = 1; i < count; i++) {
        int tag = dwarf_tag(&scopes[i]);
        if (tag == DW_TAG_inlined_subroutine || tag == DW_TAG_subprogram)
            return definition_of(&scopes[i]) == definition_of(&scopes[0]);
    }
    return false;
}

/* Adds the functions that were inlined there, and leaves in frame->line where the outermost of them
 * was called. What headers do before the first source is of no interest. */
static void add_inlined(struct chain *chain, Dwarf_Die *unit, Dwarf_Addr at, const char *directory,
                        struct frame *frame)
{
    /* dwarf_getscopes goes on with the scopes of the inlined function's definition; its tree has
     * the callers. */
    Dwarf_Die *innermost = NULL, *scopes = NULL;
    int count =
        dwarf_getscopes(unit, at, &innermost) > 0 ? dwarf_getscopes_die(&innermost[0], &scopes) : 0;
    free(innermost);
    for (int i = 0; i < count; i++) {
        if (dwarf_tag(&scopes[i]) != DW_TAG_inlined_subroutine ||
            is_part_of_caller(&scopes[i], count - i))
            continue;
        name_inlined(&scopes[i], frame);
        if (chain->count || (*frame->file && !is_header(frame->file)))
            extend_chain(chain, frame);
        set_call_line(unit, &scopes[i], directory, frame);
    }
    free(scopes);
}

/* `frame` has the function that the object file names there. */
static void add_chain(struct chain *chain, struct object *object, GElf_Addr at, struct frame *frame)
{
    struct frame inner = *frame;
    Dwarf_Addr bias = 0;
    Dwarf_Die *unit = is_c_library(object) ? NULL : find_unit(object, at, &bias);
    if (unit) {
        Dwarf_Attribute attribute;
        const char *directory = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attribute));
        int number = 0;
        Dwarf_Line *line = dwarf_getsrc_die(unit, at - bias);
        if (line && !dwarf_lineno(line, &number))
            set_line(&inner, directory, dwarf_linesrc(line, NULL, NULL), number);
        add_inlined(chain, unit, at - bias, directory, &inner);
    }
    memcpy(inner.function, frame->function, sizeof inner.function);
    extend_chain(chain, &inner);
}

int symbols_find(struct symbols *symbols, const struct symbols_module *module, uint64_t address,
                 struct frame *frames, int max)
{
    *frames = (struct frame){.address = address};
    static const char *const why[] = {
        [OBJECT_GOOD] = "",
        [OBJECT_GONE] = " (no such object file here)",
        [OBJECT_CHANGED] = " (the file has changed since)",
        [OBJECT_FOREIGN] = " (recorded on another host)",
    };
    struct object *object = NULL;
    enum object_state state = OBJECT_FOREIGN;
    if (module->files != SYMBOLS_NONE) {
        object = find_object(symbols, module->path, module->files);
        state = compare(object, module);
    }
    name_offset(module, address, why[state], frames);
    if (state != OBJECT_GOOD)
        return 1;
    GElf_Addr at = address - module->base + object->bias - 1; /* inside the call, not behind it */
    const char *function = object->index ? symbol_index_find(object->index, at)
                                         : dwfl_module_addrname(object->module, at);
    if (!function)
        return 1;
    struct frame real = {.address = address};
    struct chain chain = {.frames = frames, .max = max};
    snprintf(real.function, sizeof real.function, "%s", function);
    snprintf(real.module, sizeof real.module, "%s", module->path);
    add_chain(&chain, object, at, &real);
    return chain.count;
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

int symbols_find(struct symbols *symbols, const struct symbols_module *module, uint64_t address,
                 struct frame *frames, int max)
{
    (void)symbols, (void)max;
    *frames = (struct frame){.address = address};
    name_offset(module, address, "", frames);
    return 1;
}

#endif
