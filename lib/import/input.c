/* input.c: opens and closes the files of an import. */
#include "lib/import/input.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/array.h"
#include "lib/import/bundle.h"

enum { HEAD_BYTES = 64 << 10, LINE_MAX_BYTES = 1 << 20 };

struct import_input {
    const char *path; /* of the file, or of its member in hand */
    const char *file_path;
    char *member_path;
    struct bundle *file;
    uint64_t modified_ns, offset, lines;
    char *head; /* the first bytes, until they are read */
    size_t head_bytes, head_read;
    char *line; /* buffer of input_line: [line_begin, line_end) is not handed out yet */
    size_t line_begin, line_end;
    char line_saved;      /* the byte that the NUL took the place of */
    bool line_cut, ended; /* the piece handed out last was no whole line */
    void (*watcher)(void *context, uint64_t taken);
    void *watcher_context;
};

static long unpack_input(struct import_input *input, void *to, size_t bytes, struct error *err)
{
    int64_t got = bundle_read(input->file, to, bytes, err);
    if (input->watcher)
        input->watcher(input->watcher_context, bundle_taken(input->file));
    return got < 0 ? error_prefix(err, "%s: after byte %llu", input->path,
                                  (unsigned long long)input->offset)
                   : (long)got;
}

static int read_head(struct import_input *input, struct error *err)
{
    while (input->head_bytes < HEAD_BYTES) {
        long got = unpack_input(input, input->head + input->head_bytes,
                                HEAD_BYTES - input->head_bytes, err);
        if (got < 0 && input->head_bytes)
            break; /* the reader will meet it again */
        if (got <= 0)
            return (int)got;
        input->head_bytes += (size_t)got;
    }
    return 0;
}

/* Editors put one before UTF-8 text. No other file that is read here begins like this. */
static void drop_byte_order_mark(struct import_input *input)
{
    static const char mark[] = "\xef\xbb\xbf";
    size_t bytes = strlen(mark);
    if (input->head_bytes < bytes || memcmp(input->head, mark, bytes) != 0)
        return;
    input->head_bytes -= bytes;
    memmove(input->head, input->head + bytes, input->head_bytes);
    input->offset = bytes;
}

/* A member's name stands behind the archive's, as if that were a directory. */
static int begin_member(struct import_input *input, const struct bundle_member *member,
                        struct error *err)
{
    input->path = input->file_path;
    if (member->modified_ns)
        input->modified_ns = member->modified_ns;
    free(input->member_path);
    input->member_path = NULL;
    if (member->name && asprintf(&input->member_path, "%s/%s", input->file_path, member->name) < 0)
        return error_memory(err, "can't read %s", input->file_path);
    if (input->member_path)
        input->path = input->member_path;
    input->offset = input->lines = 0;
    input->head_bytes = input->head_read = 0;
    input->line_begin = input->line_end = 0;
    input->line_cut = input->ended = false;
    if (read_head(input, err))
        return -1;
    drop_byte_order_mark(input);
    input->head[input->head_bytes] = 0;
    return 0;
}

int input_next(struct import_input *input, struct error *err)
{
    struct bundle_member member;
    int result = bundle_next(input->file, &member, err);
    if (result < 0)
        return error_prefix(err, "%s", input->file_path);
    return result && begin_member(input, &member, err) ? -1 : result;
}

uint64_t input_left_out(const struct import_input *input)
{
    return bundle_left_out(input->file);
}

struct import_input *input_open(const char *path, struct error *err)
{
    struct stat status;
    struct import_input *input = calloc(1, sizeof *input);
    bool is_stdin = !strcmp(path, "-");
    if (is_stdin ? fstat(STDIN_FILENO, &status) : stat(path, &status)) {
        error_set(err, "%s: can't read it: %s", path, strerror(errno));
    } else if (S_ISDIR(status.st_mode) || S_ISSOCK(status.st_mode)) {
        error_set(err, "%s: it is no file", path);
    } else if (!input || !(input->head = malloc(HEAD_BYTES + 1))) {
        error_memory(err, "can't read %s", path);
    } else if (!bundle_open(&input->file, is_stdin ? "/dev/stdin" : path, err)) {
        if (!S_ISREG(status.st_mode))
            clock_gettime(CLOCK_REALTIME, &status.st_mtim);
        input->file_path = input->path = is_stdin ? "standard input" : path;
        input->modified_ns = (uint64_t)status.st_mtim.tv_sec * 1000000000u +
                             (uint64_t)status.st_mtim.tv_nsec;
        return input;
    }
    input_close(input);
    return NULL;
}

void input_close(struct import_input *input)
{
    if (!input)
        return;
    bundle_close(input->file);
    free(input->member_path);
    free(input->head);
    free(input->line);
    free(input);
}

void input_watch(struct import_input *input, void (*read)(void *context, uint64_t taken),
                 void *context)
{
    input->watcher = read;
    input->watcher_context = context;
}

void input_head(const struct import_input *input, struct import_head *head)
{
    *head = (struct import_head){input->path, input->head, input->head_bytes};
}

bool input_is_member(const struct import_input *input)
{
    return input->path != input->file_path;
}

const char *input_path(const struct import_input *input)
{
    return input->path;
}

uint64_t input_line_number(const struct import_input *input)
{
    return input->lines;
}

uint64_t input_offset(const struct import_input *input)
{
    return input->offset;
}

uint64_t input_modified_ns(const struct import_input *input)
{
    return input->modified_ns;
}

long input_read(struct import_input *input, void *to, size_t bytes, struct error *err)
{
    long got;
    if (input->head_read < input->head_bytes) {
        size_t left = input->head_bytes - input->head_read;
        got = (long)(bytes < left ? bytes : left);
        memcpy(to, input->head + input->head_read, (size_t)got);
        input->head_read += (size_t)got;
    } else {
        got = unpack_input(input, to, bytes, err);
    }
    if (got > 0)
        input->offset += (uint64_t)got;
    return got;
}

char *input_whole(struct import_input *input, size_t most, size_t *bytes, struct error *err)
{
    char *text = NULL;
    size_t capacity = 0;
    long got = 1;
    for (*bytes = 0; got > 0 && *bytes <= most; *bytes += got > 0 ? (size_t)got : 0) {
        if (!ARRAY_RESERVE(text, capacity, *bytes + HEAD_BYTES + 1)) {
            got = error_memory(err, "can't read %s", input->path);
            break;
        }
        got = input_read(input, text + *bytes, HEAD_BYTES, err);
    }
    if (got > 0)
        error_set(err, "%s: larger than %zu MiB, which no file of its format is", input->path,
                  most >> 20);
    if (got == 0) {
        text[*bytes] = '\0';
        return text;
    }
    free(text);
    return NULL;
}

/* Moves what is left to the front and reads more behind it. */
static int fill_line(struct import_input *input, struct error *err)
{
    if (!input->line && !(input->line = malloc(2 * LINE_MAX_BYTES + 1)))
        return error_memory(err, "can't read %s", input->path);
    memmove(input->line, input->line + input->line_begin, input->line_end - input->line_begin);
    input->line_end -= input->line_begin;
    input->line_begin = 0;
    long got =
        input_read(input, input->line + input->line_end, 2 * LINE_MAX_BYTES - input->line_end, err);
    if (got < 0)
        return -1;
    input->ended = got == 0;
    input->line_end += (size_t)got;
    return 0;
}

static char *cut_line(struct import_input *input, size_t bytes, bool whole, size_t *given)
{
    char *line = input->line + input->line_begin;
    input->lines += !input->line_cut;
    input->line_cut = !whole;
    input->line_begin += bytes + whole;
    input->line_saved = line[bytes];
    line[bytes] = 0;
    if (whole && bytes && line[bytes - 1] == '\r')
        line[--bytes] = 0;
    *given = bytes;
    return line;
}

char *input_line(struct import_input *input, size_t *bytes, struct error *err)
{
    size_t looked = 0;
    if (input->line_cut && input->line)
        input->line[input->line_begin] = input->line_saved;
    for (;;) {
        size_t have = input->line_end - input->line_begin;
        char *begin = input->line ? input->line + input->line_begin : NULL;
        char *end = have > looked ? memchr(begin + looked, '\n', have - looked) : NULL;
        if (end)
            return cut_line(input, (size_t)(end - begin), true, bytes);
        if (have >= LINE_MAX_BYTES)
            return cut_line(input, LINE_MAX_BYTES, false, bytes);
        if (input->ended)
            return have ? cut_line(input, have, false, bytes) : NULL;
        looked = have;
        if (fill_line(input, err))
            return NULL;
    }
}
