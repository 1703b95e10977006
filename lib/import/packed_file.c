/* packed_file.c: reads files that may be compressed by gzip or zstd. */
#include "lib/import/packed_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#ifdef HAVE_ZSTD
#include <zstd.h>
#endif

enum { INPUT_BYTES = 1 << 17 };

enum packing { PACKING_NONE, PACKING_GZIP, PACKING_ZSTD };

struct packed_file {
    packed_source *source;
    void *context;
    int fd; /* of packed_open; -1 */
    enum packing packing;
    uint64_t taken;
    const unsigned char *at, *end; /* what is left of `input` */
    bool drained;                  /* the file is at its end */
    bool inside;                   /* a packed stream began and is not over */
    z_stream zlib;
#ifdef HAVE_ZSTD
    ZSTD_DStream *zstd;
#endif
    unsigned char input[INPUT_BYTES];
};

static int64_t read_fd(void *context, void *buffer, size_t bytes, struct error *err)
{
    const struct packed_file *file = context;
    ssize_t got;
    do
        got = read(file->fd, buffer, bytes);
    while (got < 0 && errno == EINTR);
    return got < 0 ? error_set(err, "can't read on: %s", strerror(errno)) : got;
}

static int refill_packed(struct packed_file *file, struct error *err)
{
    int64_t got = file->source(file->context, file->input, sizeof file->input, err);
    if (got < 0)
        return -1;
    file->taken += (uint64_t)got;
    file->drained = got == 0;
    file->at = file->input;
    file->end = file->input + got;
    return 0;
}

static enum packing packing_of(const struct packed_file *file)
{
    static const unsigned char gzip[] = {0x1f, 0x8b}, zstd[] = {0x28, 0xb5, 0x2f, 0xfd};
    size_t bytes = (size_t)(file->end - file->at);
    if (bytes >= sizeof gzip && !memcmp(file->at, gzip, sizeof gzip))
        return PACKING_GZIP;
    return bytes >= sizeof zstd && !memcmp(file->at, zstd, sizeof zstd) ? PACKING_ZSTD
                                                                        : PACKING_NONE;
}

static int begin_unpacking(struct packed_file *file, struct error *err)
{
    if (file->packing == PACKING_GZIP && inflateInit2(&file->zlib, 15 + 16) != Z_OK)
        return error_memory(err, "can't unpack");
    if (file->packing != PACKING_ZSTD)
        return 0;
#ifdef HAVE_ZSTD
    file->zstd = ZSTD_createDStream();
    return file->zstd ? 0 : error_memory(err, "can't unpack");
#else
    return error_set(err, "it is packed by zstd, and this ddpcheck was built without libzstd: "
                          "unpack it first (zstd -d)");
#endif
}

static int begin_packed(struct packed_file *file, struct error *err)
{
    int result = refill_packed(file, err);
    if (!result) {
        file->packing = packing_of(file);
        result = begin_unpacking(file, err);
    }
    if (result)
        file->packing = PACKING_NONE;
    return result;
}

/* Takes over `fd`, also where it fails. context NULL: the file itself. */
static int open_source(struct packed_file **file, int fd, packed_source *source, void *context,
                       struct error *err)
{
    struct packed_file *new = *file = calloc(1, sizeof *new);
    if (!new) {
        if (fd >= 0)
            close(fd);
        return error_memory(err, "can't unpack");
    }
    new->fd = fd;
    new->source = source;
    new->context = context ? context : new;
    if (!begin_packed(new, err))
        return 0;
    packed_close(new);
    *file = NULL;
    return -1;
}

int packed_open(struct packed_file **file, const char *path, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    *file = NULL;
    if (fd < 0)
        return error_set(err, "can't open %s: %s", path, strerror(errno));
    posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return open_source(file, fd, read_fd, NULL, err) ? error_prefix(err, "can't read %s", path) : 0;
}

int packed_open_source(struct packed_file **file, packed_source *source, void *context,
                       struct error *err)
{
    return open_source(file, -1, source, context, err);
}

void packed_close(struct packed_file *file)
{
    if (!file)
        return;
    if (file->packing == PACKING_GZIP)
        inflateEnd(&file->zlib);
#ifdef HAVE_ZSTD
    ZSTD_freeDStream(file->zstd);
#endif
    if (file->fd >= 0)
        close(file->fd);
    free(file);
}

/* One step: how many bytes came out, which may be none, or -1. A gzip file may hold several streams
 * after each other. */
static int64_t unpack_gzip(struct packed_file *file, void *buffer, size_t bytes, struct error *err)
{
    z_stream *zlib = &file->zlib;
    if (!file->inside && inflateReset(zlib) != Z_OK)
        return error_set(err, "can't unpack: zlib failed");
    file->inside = true;
    zlib->next_in = (unsigned char *)file->at;
    zlib->avail_in = (unsigned)(file->end - file->at);
    zlib->next_out = buffer;
    zlib->avail_out = (unsigned)bytes;
    int result = inflate(zlib, Z_NO_FLUSH);
    file->at = zlib->next_in;
    if (result == Z_STREAM_END)
        file->inside = false;
    else if (result != Z_OK && result != Z_BUF_ERROR)
        return error_set(err, "the gzip data is damaged: %s",
                         zlib->msg ? zlib->msg : "zlib gives no reason");
    return (int64_t)(bytes - zlib->avail_out);
}

#ifdef HAVE_ZSTD
static int64_t unpack_zstd(struct packed_file *file, void *buffer, size_t bytes, struct error *err)
{
    ZSTD_inBuffer in = {file->at, (size_t)(file->end - file->at), 0};
    ZSTD_outBuffer out = {buffer, bytes, 0};
    size_t result = ZSTD_decompressStream(file->zstd, &out, &in);
    if (ZSTD_isError(result))
        return error_set(err, "the zstd data is damaged: %s", ZSTD_getErrorName(result));
    file->at += in.pos;
    file->inside = result != 0;
    return (int64_t)out.pos;
}
#endif

static int64_t unpack_bytes(struct packed_file *file, void *buffer, size_t bytes, struct error *err)
{
#ifdef HAVE_ZSTD
    if (file->packing == PACKING_ZSTD)
        return unpack_zstd(file, buffer, bytes, err);
#endif
    return unpack_gzip(file, buffer, bytes, err);
}

static int64_t copy_plain(struct packed_file *file, void *buffer, size_t bytes)
{
    size_t left = (size_t)(file->end - file->at), count = left < bytes ? left : bytes;
    memcpy(buffer, file->at, count);
    file->at += count;
    return (int64_t)count;
}

int64_t packed_read(void *context, void *buffer, size_t bytes, struct error *err)
{
    struct packed_file *file = context;
    for (;;) {
        if (file->at == file->end && !file->drained && refill_packed(file, err))
            return -1;
        bool ended = file->at == file->end;
        if (file->packing == PACKING_NONE)
            return ended ? 0 : copy_plain(file, buffer, bytes);
        if (ended && !file->inside)
            return 0;
        int64_t got = unpack_bytes(file, buffer, bytes,
                                   err); /* what was taken before may not all have come out */
        if (got)
            return got;
        if (ended && file->inside)
            return error_set(err, "the packed data ends in the middle: the file was cut");
    }
}

uint64_t packed_taken(const struct packed_file *file)
{
    return file->taken - (uint64_t)(file->end - file->at);
}
