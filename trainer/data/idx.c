/* idx.c: reads a data set from IDX files, plain or gzipped. */
#include "trainer/data/idx.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "trainer/check.h"

enum { UNSIGNED_BYTE = 8, MAX_DIMENSIONS = 3, MAX_FILE_BYTES = 1 << 30 };

struct idx {
    unsigned char *bytes; /* the whole file, owned */
    const unsigned char *data;
    size_t size[MAX_DIMENSIONS];
};

struct idx_pair {
    struct idx images, labels; /* labels.bytes: NULL without labels */
};

static int read_gzip_file(const char *path, unsigned char **bytes, size_t *length,
                          struct error *err)
{
    struct stat status;
    FILE *file = fopen(path, "rb");
    if (!file)
        return error_set(err, "can't open %s: %s", path, strerror(errno));
    int result = -1;
    if (fstat(fileno(file), &status) != 0 || !S_ISREG(status.st_mode))
        error_set(err, "%s is not a regular file", path);
    else if (status.st_size > MAX_FILE_BYTES)
        error_set(err, "%s has %lld bytes; at most %d are supported", path,
                  (long long)status.st_size, MAX_FILE_BYTES);
    else {
        *length = (size_t)status.st_size;
        *bytes = allocate(*length, 1);
        result = fread(*bytes, 1, *length, file) == *length
                     ? 0
                     : error_set(err, "can't read %s: %s", path,
                                 ferror(file) ? strerror(errno) : "it got shorter");
    }
    fclose(file);
    return result;
}

static size_t big_endian(const unsigned char *bytes)
{
    return (size_t)bytes[0] << 24 | (size_t)bytes[1] << 16 | (size_t)bytes[2] << 8 | bytes[3];
}

static int parse_idx(struct idx *idx, const char *path, size_t length, int dimensions,
                     struct error *err)
{
    const unsigned char *bytes = idx->bytes;
    size_t header = 4 + 4 * (size_t)dimensions, expected = 1;
    if (length >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b)
        return error_set(err, "%s is compressed: gunzip it first", path);
    if (length < 4 || bytes[0] != 0 || bytes[1] != 0)
        return error_set(err, "%s is not an IDX file: it does not start with two zero bytes", path);
    if (bytes[2] != UNSIGNED_BYTE)
        return error_set(err,
                         "%s has elements of type 0x%02x; only unsigned bytes (0x08) are supported",
                         path, bytes[2]);
    if (bytes[3] != dimensions)
        return error_set(err, "%s has %d dimensions, expected %d: are images and labels exchanged?",
                         path, bytes[3], dimensions);
    if (length < header)
        return error_set(err, "%s is cut off within its header (%zu of %zu bytes)", path, length,
                         header);
    for (int i = 0; i < dimensions; i++) {
        idx->size[i] = big_endian(bytes + 4 + 4 * i);
        if (idx->size[i] == 0 || idx->size[i] > MAX_FILE_BYTES / expected)
            return error_set(err, "%s has a damaged header: dimension %d is %zu", path, i,
                             idx->size[i]);
        expected *= idx->size[i];
    }
    if (length - header != expected)
        return error_set(err, "%s is %s: its header promises %zu bytes of data, it has %zu", path,
                         length - header < expected ? "cut off" : "too long", expected,
                         length - header);
    idx->data = bytes + header;
    return 0;
}

static int load_idx(struct idx *idx, const char *path, int dimensions, struct error *err)
{
    size_t length = 0;
    if (read_gzip_file(path, &idx->bytes, &length, err) != 0)
        return -1;
    return parse_idx(idx, path, length, dimensions, err);
}

static void idx_read_image(const struct dataset *dataset, size_t index, float *pixels,
                           int32_t *label)
{
    const struct idx_pair *pair = dataset->state;
    size_t rows = pair->images.size[1], columns = pair->images.size[2],
           image = (size_t)dataset->image;
    size_t top = (image - rows) / 2, left = (image - columns) / 2;
    const unsigned char *data = pair->images.data + index * rows * columns;
    for (size_t i = 0; i < image * image; i++)
        pixels[i] = -1.0f;
    for (size_t row = 0; row < rows; row++)
        for (size_t column = 0; column < columns; column++)
            pixels[(top + row) * image + left + column] =
                (float)data[row * columns + column] / 127.5f - 1.0f;
    *label = pair->labels.bytes ? pair->labels.data[index] : 0;
}

static void close_idx(struct dataset *dataset)
{
    struct idx_pair *pair = dataset->state;
    free(pair->images.bytes);
    free(pair->labels.bytes);
    free(pair);
}

static int count_classes(const struct idx *labels)
{
    int largest = 0;
    for (size_t i = 0; labels->bytes && i < labels->size[0]; i++)
        if (labels->data[i] > largest)
            largest = labels->data[i];
    return largest + 1;
}

static int load_pair(struct idx_pair *pair, const char *images, const char *labels, int image,
                     struct error *err)
{
    if (load_idx(&pair->images, images, 3, err) != 0)
        return -1;
    if (pair->images.size[1] > (size_t)image || pair->images.size[2] > (size_t)image)
        return error_set(err, "%s has images of %zux%zu, which do not fit into --image %d", images,
                         pair->images.size[1], pair->images.size[2], image);
    if (!labels)
        return 0;
    if (load_idx(&pair->labels, labels, 1, err) != 0)
        return -1;
    if (pair->labels.size[0] != pair->images.size[0])
        return error_set(err, "%s has %zu labels for %zu images in %s", labels,
                         pair->labels.size[0], pair->images.size[0], images);
    return 0;
}

int idx_open(struct dataset *dataset, const char *images, const char *labels, int image,
             struct error *err)
{
    struct idx_pair *pair = allocate(1, sizeof *pair);
    *dataset =
        (struct dataset){.image = image, .state = pair, .read = idx_read_image, .close = close_idx};
    if (load_pair(pair, images, labels, image, err) != 0) {
        close_idx(dataset);
        return -1;
    }
    dataset->count = pair->images.size[0];
    dataset->classes = count_classes(&pair->labels);
    return 0;
}
