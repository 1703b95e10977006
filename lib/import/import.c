/* import.c: finds files, asks which format each is of, lets its reader read it. */
#include "lib/import/import.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/partial_file.h"
#include "lib/import/input.h"
#include "lib/import/sink.h"
#include "lib/import/unread.h"

enum { DEPTH_MAX = 32, SURE_ENOUGH = 1 };

#define SOURCE(name) extern const struct import_source import_source_##name;
#include "lib/import/sources.def"
#undef SOURCE

const struct import_source *const import_sources[] = {
#define SOURCE(name) &import_source_##name,
#include "lib/import/sources.def"
#undef SOURCE
    NULL,
};

const struct import_source *import_source_find(const char *name)
{
    for (const struct import_source *const *source = import_sources; *source; source++)
        if (!strcmp((*source)->name, name))
            return *source;
    return NULL;
}

static const struct import_source *sniff_source(const struct import_input *input)
{
    struct import_head head;
    const struct import_source *best = NULL;
    int best_sure = SURE_ENOUGH - 1;
    input_head(input, &head);
    for (const struct import_source *const *source = import_sources; *source; source++) {
        int sure = (*source)->sniff(&head);
        if (sure > best_sure) {
            best = *source;
            best_sure = sure;
        }
    }
    return best;
}

/* What no format knows by its beginning may be a log that has something to say only later. */
static const struct import_source *find_text_source(const struct import_input *input)
{
    struct import_head head;
    input_head(input, &head);
    bool is_text = head.count && !memchr(head.bytes, 0, head.count);
    for (const struct import_source *const *source = import_sources; is_text && *source; source++)
        if ((*source)->reads_any_text)
            return *source;
    return NULL;
}

/* The source whose reader works next, and where that keeps its state. */
static void select_source(struct import *import, size_t index)
{
    import->source = import_sources[index];
    import->source_state = &import->state[index];
}

static size_t source_index(const struct import_source *source)
{
    size_t index = 0;
    while (import_sources[index] != source)
        index++;
    return index;
}

/* What only all files together say. */
static int end_sources(struct import *import)
{
    int result = 0;
    for (size_t i = 0; import_sources[i]; i++) {
        select_source(import, i);
        import->refused_here = 0;
        if (import->source->end && import->source->end(import))
            result = -1;
        if (import->refused_here && import->result.refused_files < import->result.files)
            import->result.refused_files++;
    }
    return result;
}

static int import_input_data(struct import *import, struct import_input *input, struct error *err)
{
    const struct import_source *source = import->options->source ? import->options->source
                                                                 : sniff_source(input);
    bool is_sure = source;
    if (!source)
        source = find_text_source(input);
    if (source)
        select_source(import, source_index(source));
    import->input = input;
    import->refused_here = 0;
    int result = source ? source->read(import, input, err) : IMPORT_NOTHING;
    if (result == IMPORT_NOTHING && is_sure)
        result = error_set(err, "%s: it says nothing as %s", input_path(input), source->title);
    import->bytes += input_offset(input);
    import->input = NULL;
    return result;
}

static void note_taken(void *context, uint64_t taken)
{
    struct import *import = context;
    import->standing.bytes = import->standing_before + taken;
    import->options->progress(import->options->context, &import->standing);
}

/* A file, or a member of an archive. `is_named`: by the user; what was only found may be anything.
 * Only a failure of the sink ends the import. */
static int import_opened(struct import *import, struct import_input *input, int opened,
                         bool is_named, struct error *err)
{
    import->refused_here = 0;
    int result = opened > 0 ? import_input_data(import, input, err) : -1;
    if (import->failure.text[0])
        return -1;
    if (result == IMPORT_NOTHING) {
        const char *what = unread_what(input);
        if (!is_named && !unread_add(import, what, input_path(input))) {
            struct import_head head; /* an empty file may have been a rank's dump */
            input_head(input, &head);
            import->result.files += !head.count;
            import->result.refused_files += !head.count;
            return 0;
        }
        error_set(err, "%s: it is %s", input_path(input), what);
    }
    import->result.files++;
    refusals_end_file(import);
    if (result)
        import_print(import, err->text[0] ? err->text : "a file could not be read");
    import->result.refused_files += result || import->refused_here;
    import->standing.files = import->result.files;
    return 0;
}

static void print_left_out(struct import *import, const struct import_input *input,
                           const char *path)
{
    struct error text;
    error_set(&text, "%s: left out %llu of its members, which are links or devices", path,
              (unsigned long long)input_left_out(input));
    if (input_left_out(input))
        import_print(import, text.text);
}

static int import_file(struct import *import, const char *path, bool is_named)
{
    struct error err = {{0}};
    struct import_input *input = input_open(path, &err);
    int opened = input ? input_next(input, &err) : -1, result = 0;
    if (input && import->options->progress)
        input_watch(input, note_taken, import);
    while (opened && !result) {
        bool is_file = is_named && !(input && input_is_member(input));
        result = import_opened(import, input, opened, is_file, &err);
        err = (struct error){{0}};
        opened = opened > 0 && !result ? input_next(input, &err) : 0;
    }
    if (input)
        print_left_out(import, input, path);
    input_close(input);
    import->standing_before = import->standing.bytes;
    return result;
}

static int is_visible_entry(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int read_path(struct import *import, const char *path, int depth);

static int read_directory(struct import *import, const char *path, int depth)
{
    struct dirent **entry;
    struct error err;
    int entries = depth < DEPTH_MAX ? scandir(path, &entry, is_visible_entry, versionsort) : -1;
    if (entries < 0) {
        error_set(&err, "%s: can't read the directory: %s", path,
                  depth < DEPTH_MAX ? strerror(errno) : "it is too deep");
        import_print(import, err.text);
        import->result.files++;
        import->result.refused_files++;
        return 0;
    }
    int result = 0;
    for (int i = 0; i < entries; i++) {
        char file[PATH_MAX];
        if (!result &&
            snprintf(file, sizeof file, "%s%s%s", path, path[strlen(path) - 1] == '/' ? "" : "/",
                     entry[i]->d_name) < (int)sizeof file)
            result = read_path(import, file, depth + 1);
        free(entry[i]);
    }
    free(entry);
    return result;
}

/* Links to directories are followed only where the user names them. */
static int read_path(struct import *import, const char *path, int depth)
{
    struct stat status;
    bool is_directory = !(depth ? lstat : stat)(path, &status) && S_ISDIR(status.st_mode);
    if (is_directory)
        return read_directory(import, path, depth);
    bool is_plain = !depth || (!stat(path, &status) && S_ISREG(status.st_mode));
    return is_plain ? import_file(import, path, !depth) : 0;
}

/* Bytes of the files below the path, as read_path finds them. */
static uint64_t measure_path(const char *path)
{
    uint64_t bytes = 0;
    char *const roots[] = {(char *)path, NULL};
    FTS *files = fts_open(roots, FTS_COMFOLLOW | FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    for (FTSENT *file; files && (file = fts_read(files));) {
        if (file->fts_level > 0 && file->fts_name[0] == '.')
            fts_set(files, file, FTS_SKIP);
        else if (file->fts_info == FTS_F)
            bytes += (uint64_t)file->fts_statp->st_size;
    }
    if (files)
        fts_close(files);
    return bytes;
}

/* For its user alone, as what is recorded is; SQLite goes on with the file. */
static int create_private(const char *path, struct error *err)
{
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return error_set(err, "can't create %s: %s", path, strerror(errno));
    close(fd);
    return 0;
}

static int store(struct import *import, const char *path, struct error *err)
{
    char partial[PATH_MAX];
    if (snprintf(partial, sizeof partial, "%s.partial", path) >= (int)sizeof partial)
        return error_set(err, "the name is too long: %s", path);
    partial_file_begin(partial); /* first: a signal may come as soon as the file is there */
    if (create_private(partial, err) < 0) {
        partial_file_end();
        return -1;
    }
    int result = sink_finish(import) ? -1 : sink_store(import, partial);
    if (result)
        *err = import->failure;
    else if (rename(partial, path))
        result = error_set(err, "can't rename %s to %s: %s", partial, path, strerror(errno));
    if (result)
        unlink(partial);
    partial_file_end();
    return result ? -1 : 0;
}

static int nothing_imported(const struct import *import, struct error *err)
{
    if (import->result.files == 0)
        return error_set(err, "nothing was imported: there is no file%s",
                         import->unread_count ? " that says what a rank did" : "");
    if (import->result.refused_files == import->result.files) /* the reasons were printed */
        return error_set(err, "nothing was imported");
    if (import->result.files == 1)
        return error_set(err, "nothing was imported: the file does not say what a rank did");
    return error_set(err, "nothing was imported: none of the %llu files says what a rank did",
                     (unsigned long long)import->result.files);
}

int import_files(const char *const *paths, int count, const char *path,
                 const struct import_options *options, struct import_result *result,
                 struct error *err)
{
    char copy[PATH_MAX];
    snprintf(copy, sizeof copy, "%s", path);
    struct import import = {.options = options, .sorter = sorter_new(dirname(copy))};
    int failed = import.sorter ? 0 : error_memory(err, "can't import");
    for (int i = 0; i < count && options->progress; i++)
        import.standing.of_bytes += measure_path(paths[i]);
    for (int i = 0; i < count && !failed; i++)
        if (read_path(&import, paths[i], 0)) {
            *err = import.failure;
            failed = -1;
        }
    if (end_sources(&import) && !failed) {
        *err = import.failure;
        failed = -1;
    }
    refusals_end(&import);
    unread_print(&import);
    import.result.processes = (uint64_t)import.processes;
    if (!failed && !import.result.records)
        failed = nothing_imported(&import, err);
    if (!failed)
        failed = store(&import, path, err);
    *result = import.result;
    sink_free(&import);
    return failed;
}
