/* bundle.c: opens archives with libarchive, above what gzip and zstd pack (packed_file.h). */
#include "lib/import/bundle.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef HAVE_LIBARCHIVE
#include <archive.h>
#include <archive_entry.h>
#endif

#include "lib/import/packed_file.h"

enum {
    HEAD_BYTES = 512, /* a block of tar, which has its name at the end */
    PIECE_BYTES = 1 << 17,
    NAME_BYTES = 512,
    MEMBERS_MAX = 1 << 16, /* as many as a zip without extensions has (APPNOTE.TXT, 4.4.21) */
    RATIO_MAX = 1032       /* deflate packs no better (zlib's technical details) */
};

static const uint64_t ratio_from_bytes = UINT64_C(1) << 26; /* less may grow as it likes */

struct bundle {
    struct packed_file *packed; /* the file */
    struct packed_file *member; /* what is read */
    char head[HEAD_BYTES];      /* of the file, until it is read */
    size_t head_bytes, head_read;
    bool is_plain, begun;
    uint64_t members, unpacked, left_out;
    char name[NAME_BYTES];
#ifdef HAVE_LIBARCHIVE
    struct archive *archive;
    struct error err; /* of the file below the archive */
    char piece[PIECE_BYTES];
#endif
};

static const struct archive_kind {
    size_t offset;
    const char *magic;
    size_t bytes;
    const char *title, *unpack;
} archive_kinds[] = {
    {0, "PK\x03\x04", 4, "a zip archive", "unzip"},
    {0, "PK\x05\x06", 4, "a zip archive", "unzip"}, /* an empty one */
    {257, "ustar", 5, "a tar archive", "tar -xf"},
    {0,
     "\xfd"
     "7zXZ\0",
     6, "packed by xz", "xz -d"},
    {4, "1AY&SY", 6, "packed by bzip2", "bzip2 -d"}, /* behind "BZh9" */
};

static const struct archive_kind *find_archive_kind(const char *head, size_t bytes)
{
    for (size_t i = 0; i < sizeof archive_kinds / sizeof *archive_kinds; i++) {
        const struct archive_kind *kind = &archive_kinds[i];
        if (bytes >= kind->offset + kind->bytes &&
            !memcmp(head + kind->offset, kind->magic, kind->bytes))
            return kind;
    }
    return NULL;
}

/* What was looked at comes first. */
static int64_t read_below(void *context, void *buffer, size_t bytes, struct error *err)
{
    struct bundle *file = context;
    size_t left = file->head_bytes - file->head_read;
    if (!left)
        return packed_read(file->packed, buffer, bytes, err);
    if (left > bytes)
        left = bytes;
    memcpy(buffer, file->head + file->head_read, left);
    file->head_read += left;
    return (int64_t)left;
}

static int peek_head(struct bundle *file, struct error *err)
{
    int64_t got = 1;
    while (file->head_bytes < HEAD_BYTES && got > 0) {
        got = packed_read(file->packed, file->head + file->head_bytes,
                          HEAD_BYTES - file->head_bytes, err);
        file->head_bytes += got > 0 ? (size_t)got : 0;
    }
    return got < 0 && !file->head_bytes ? -1 : 0; /* else the reader will meet it again */
}

/* --- the members --- */

#ifdef HAVE_LIBARCHIVE

static int fail_archive(struct bundle *file, struct error *err)
{
    const char *why = archive_error_string(file->archive);
    if (file->err.text[0])
        return error_set(err, "%s", file->err.text);
    return error_set(err, "the archive is damaged or cut: %s", why ? why : "no reason is given");
}

static la_ssize_t give_piece(struct archive *archive, void *context, const void **piece)
{
    struct bundle *file = context;
    int64_t got = read_below(file, file->piece, sizeof file->piece, &file->err);
    *piece = file->piece;
    if (got < 0)
        archive_set_error(archive, EIO, "%s", file->err.text);
    return got;
}

static int begin_archive(struct bundle *file, struct error *err)
{
    struct archive *archive = file->archive = archive_read_new();
    if (!archive)
        return error_memory(err, "can't unpack");
    int result = archive_read_support_filter_xz(archive);
    result |= archive_read_support_filter_bzip2(archive);
    result |= archive_read_support_filter_gzip(archive); /* a tar.gz that gzip has packed again */
    result |= archive_read_support_format_tar(archive);
    result |= archive_read_support_format_zip_streamable(archive);
    result |= archive_read_support_format_raw(archive);
    result |= archive_read_support_format_empty(archive);
    if (result < ARCHIVE_WARN || archive_read_open(archive, file, NULL, give_piece, NULL))
        return fail_archive(file, err);
    return 0;
}

/* Stays below the limits, which only what is made to be large goes beyond. */
static int64_t give_member(void *context, void *buffer, size_t bytes, struct error *err)
{
    struct bundle *file = context;
    la_ssize_t got = archive_read_data(file->archive, buffer, bytes);
    if (got < 0)
        return fail_archive(file, err);
    file->unpacked += (uint64_t)got;
    if (file->unpacked > ratio_from_bytes &&
        file->unpacked / RATIO_MAX > packed_taken(file->packed))
        return error_set(err,
                         "it unpacks to more than %d times its size, which no log does; if it is "
                         "what you think, unpack it and import the files",
                         RATIO_MAX);
    return got;
}

/* Of any bytes, what a terminal and a message can hold. */
static void copy_printable(char *to, size_t bytes, const char *from)
{
    size_t used = 0;
    for (; from && *from && used + 1 < bytes; from++)
        to[used++] = (unsigned char)*from < ' ' || *from == 0x7f ? '?' : *from;
    to[used] = '\0';
}

static bool is_whole_file(const struct bundle *file)
{
    return archive_format(file->archive) == ARCHIVE_FORMAT_RAW;
}

/* Returns 1 if it is a file that can be read, 0 if it is left out, -1 with err. */
static int open_member(struct bundle *file, struct archive_entry *entry,
                       struct bundle_member *member, struct error *err)
{
    const char *name = archive_entry_pathname(entry);
    bool is_link = archive_entry_hardlink(entry) || archive_entry_symlink(entry);
    const char *last = name ? strrchr(name, '/') : NULL;
    bool is_hidden = !is_whole_file(file) && name && (last ? last[1] : *name) == '.';
    if (archive_entry_filetype(entry) == AE_IFDIR || is_hidden)
        return 0;
    if (is_link || archive_entry_filetype(entry) != AE_IFREG) {
        file->left_out++;
        return 0;
    }
    copy_printable(file->name, sizeof file->name, name ? name : "a member without a name");
    *member = (struct bundle_member){.name = is_whole_file(file) ? NULL : file->name};
    if (archive_entry_mtime_is_set(entry) && archive_entry_mtime(entry) > 0)
        member->modified_ns = (uint64_t)archive_entry_mtime(entry) * 1000000000u;
    return packed_open_source(&file->member, give_member, file, err) ? -1 : 1;
}

static int next_in_archive(struct bundle *file, struct bundle_member *member, struct error *err)
{
    struct archive_entry *entry;
    int result = 0;
    packed_close(file->member);
    file->member = NULL;
    while (!result) {
        int found = archive_read_next_header(file->archive, &entry);
        if (found == ARCHIVE_EOF)
            return 0;
        if (found < ARCHIVE_WARN)
            return fail_archive(file, err);
        if (++file->members > MEMBERS_MAX)
            return error_set(err, "it has more than %d members: unpack it and import the files",
                             MEMBERS_MAX);
        result = open_member(file, entry, member, err);
    }
    return result;
}

#endif

/* --- the file --- */

static int begin_file(struct bundle *file, struct error *err)
{
    if (peek_head(file, err))
        return -1;
    const struct archive_kind *kind = find_archive_kind(file->head, file->head_bytes);
    file->is_plain = !kind;
#ifdef HAVE_LIBARCHIVE
    return kind ? begin_archive(file, err) : 0;
#else
    return kind ? error_set(err,
                            "it is %s, and this ddpcheck was built without libarchive: unpack it "
                            "first (%s)",
                            kind->title, kind->unpack)
                : 0;
#endif
}

int bundle_open(struct bundle **file, const char *path, struct error *err)
{
    struct bundle *new = calloc(1, sizeof *new);
    *file = NULL;
    if (!new)
        return error_memory(err, "can't read %s", path);
    if (packed_open(&new->packed, path, err)) {
        free(new);
        return -1;
    }
    if (begin_file(new, err)) {
        error_prefix(err, "can't read %s", path);
        bundle_close(new);
        return -1;
    }
    *file = new;
    return 0;
}

void bundle_close(struct bundle *file)
{
    if (!file)
        return;
    packed_close(file->member);
#ifdef HAVE_LIBARCHIVE
    archive_read_free(file->archive);
#endif
    packed_close(file->packed);
    free(file);
}

int bundle_next(struct bundle *file, struct bundle_member *member, struct error *err)
{
    *member = (struct bundle_member){0};
#ifdef HAVE_LIBARCHIVE
    if (file->archive)
        return next_in_archive(file, member, err);
#endif
    bool is_first = !file->begun;
    (void)err;
    file->begun = true;
    return is_first;
}

int64_t bundle_read(void *context, void *buffer, size_t bytes, struct error *err)
{
    struct bundle *file = context;
    return file->is_plain ? read_below(file, buffer, bytes, err)
                          : packed_read(file->member, buffer, bytes, err);
}

uint64_t bundle_taken(const struct bundle *file)
{
    return packed_taken(file->packed);
}

uint64_t bundle_left_out(const struct bundle *file)
{
    return file->left_out;
}
