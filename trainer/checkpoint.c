/* checkpoint.c: writes and reads the file of a checkpoint. */
#include "trainer/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "trainer/check.h"

static const char magic[8] = {'D', 'D', 'P', 'T', 'R', 'A', 'I', 'N'};
enum { VERSION = 2 };

/* The whole file in memory: being written (room grows) or read (position moves). */
struct checkpoint_image {
    unsigned char *bytes;
    size_t length, room, position;
};

/* What is saved of a tensor: its name and itself. Optimizer moments take the parameter's name with
 * a suffix. */
struct checkpoint_entry {
    const struct tensor *named;
    const char *suffix;
    struct tensor *tensor;
};

enum { MAX_ENTRIES = 3 * MODULE_MAX_PARAMETERS + MODULE_MAX_BUFFERS };

static int list_entries(const struct checkpoint_section *section, struct checkpoint_entry *entries)
{
    struct module *module = section->module;
    int count = 0;
    for (int i = 0; i < module->parameter_count; i++) {
        entries[count++] =
            (struct checkpoint_entry){module->parameters[i], "", module->parameters[i]};
        entries[count++] =
            (struct checkpoint_entry){module->parameters[i], ".mean", section->optimizer->mean[i]};
        entries[count++] = (struct checkpoint_entry){module->parameters[i], ".square",
                                                     section->optimizer->square[i]};
    }
    for (int i = 0; i < module->buffer_count; i++)
        entries[count++] = (struct checkpoint_entry){module->buffers[i], "", module->buffers[i]};
    return count;
}

/* --- writing --- */

static void save_bytes(struct checkpoint_image *image, const void *bytes, size_t length)
{
    if (image->length + length > image->room) {
        image->room = 2 * (image->length + length);
        image->bytes = realloc(image->bytes, image->room);
        if (!image->bytes)
            fatal("out of host memory for a checkpoint of %zu bytes", image->room);
    }
    memcpy(image->bytes + image->length, bytes, length);
    image->length += length;
}

static void save_number(struct checkpoint_image *image, size_t number)
{
    uint32_t value = (uint32_t)number;
    save_bytes(image, &value, sizeof value);
}

static void save_text(struct checkpoint_image *image, const char *text)
{
    save_number(image, strlen(text));
    save_bytes(image, text, strlen(text));
}

static void save_entry(struct checkpoint_image *image, const struct checkpoint_entry *entry)
{
    char name[160];
    uint64_t count = tensor_count(entry->tensor);
    float *values = allocate(count, sizeof *values);
    tensor_download(entry->tensor, values);
    snprintf(name, sizeof name, "%s%s", entry->named->name, entry->suffix);
    save_text(image, name);
    save_bytes(image, &count, sizeof count);
    save_bytes(image, values, count * sizeof *values);
    free(values);
}

static void save_section(struct checkpoint_image *image, const struct checkpoint_section *section)
{
    struct checkpoint_entry entries[MAX_ENTRIES];
    int count = list_entries(section, entries);
    save_number(image, (size_t)section->optimizer->step);
    save_number(image, (size_t)count);
    for (int i = 0; i < count; i++)
        save_entry(image, &entries[i]);
}

static int write_bytes(int file, const unsigned char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t written = write(file, bytes, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return -1;
        bytes += written;
        length -= (size_t)written;
    }
    return 0;
}

/* The rename itself is only safe on disk once the directory is. */
static void sync_directory_of(const char *path)
{
    char copy[PATH_MAX];
    snprintf(copy, sizeof copy, "%s", path);
    int directory = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory >= 0) {
        fsync(directory);
        close(directory);
    }
}

static int write_atomically(const char *path, const struct checkpoint_image *image,
                            struct error *err)
{
    char temporary[PATH_MAX];
    if (snprintf(temporary, sizeof temporary, "%s.part", path) >= (int)sizeof temporary)
        return error_set(err, "can't write the checkpoint %s: the name is too long", path);
    int file = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0)
        return error_set(err, "can't create the checkpoint %s: %s", temporary, strerror(errno));
    int failed = write_bytes(file, image->bytes, image->length) != 0 || fsync(file) != 0,
        why = errno;
    if (close(file) != 0 && !failed) {
        failed = 1;
        why = errno;
    }
    if (!failed && rename(temporary, path) != 0) {
        failed = 1;
        why = errno;
    }
    if (failed) {
        unlink(temporary);
        return error_set(err,
                         "can't write the checkpoint %s: %s; the file that was there is as before",
                         path, strerror(why));
    }
    sync_directory_of(path);
    return 0;
}

int checkpoint_save(const char *path, const char *configuration,
                    const struct checkpoint_progress *progress,
                    const struct checkpoint_section *sections, int count, struct error *err)
{
    struct checkpoint_image image = {0};
    save_bytes(&image, magic, sizeof magic);
    save_number(&image, VERSION);
    save_number(&image, (size_t)progress->iteration);
    save_bytes(&image, &progress->loss_scale, sizeof progress->loss_scale);
    save_number(&image, (size_t)progress->steps_without_overflow);
    save_text(&image, configuration);
    save_number(&image, (size_t)count);
    for (int i = 0; i < count; i++)
        save_section(&image, &sections[i]);
    save_number(&image, crc32(0, image.bytes, (uInt)image.length));
    int status = write_atomically(path, &image, err);
    free(image.bytes);
    return status;
}

/* --- reading --- */

/* The next `length` bytes, or NULL if fewer are left. */
static const unsigned char *next_bytes(struct checkpoint_image *image, size_t length)
{
    if (length > image->length - image->position)
        return NULL;
    image->position += length;
    return image->bytes + image->position - length;
}

static bool read_u32(struct checkpoint_image *image, uint32_t *number)
{
    const unsigned char *bytes = next_bytes(image, sizeof *number);
    if (bytes)
        memcpy(number, bytes, sizeof *number);
    return bytes != NULL;
}

/* True if the next text is `expected`. */
static bool matches_text(struct checkpoint_image *image, const char *expected)
{
    uint32_t length;
    const unsigned char *text = read_u32(image, &length) ? next_bytes(image, length) : NULL;
    return text && length == strlen(expected) && memcmp(text, expected, length) == 0;
}

static bool restore_entry(struct checkpoint_image *image, const struct checkpoint_entry *entry,
                          bool apply)
{
    char name[160];
    uint64_t count;
    snprintf(name, sizeof name, "%s%s", entry->named->name, entry->suffix);
    if (!matches_text(image, name))
        return false;
    const unsigned char *bytes = next_bytes(image, sizeof count);
    if (!bytes)
        return false;
    memcpy(&count, bytes, sizeof count);
    if (count != tensor_count(entry->tensor) || !(bytes = next_bytes(image, count * sizeof(float))))
        return false;
    if (apply) {
        float *values =
            allocate(count, sizeof *values); /* aligned, as the bytes in the file may not be */
        memcpy(values, bytes, count * sizeof *values);
        tensor_upload(entry->tensor, values);
        free(values);
    }
    return true;
}

static bool restore_section(struct checkpoint_image *image,
                            const struct checkpoint_section *section, bool apply)
{
    struct checkpoint_entry entries[MAX_ENTRIES];
    int count = list_entries(section, entries);
    uint32_t step, saved;
    if (!read_u32(image, &step) || !read_u32(image, &saved) || saved != (uint32_t)count)
        return false;
    for (int i = 0; i < count; i++)
        if (!restore_entry(image, &entries[i], apply))
            return false;
    if (apply)
        section->optimizer->step = (int)step;
    return true;
}

static int read_checkpoint_file(const char *path, struct checkpoint_image *image, struct error *err)
{
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return error_set(err, "can't open the checkpoint %s: %s", path, strerror(errno));
    int result = -1;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
        error_set(err, "%s is not a regular file", path);
    } else {
        image->length = (size_t)status.st_size;
        image->bytes = allocate(image->length, 1);
        size_t got = 0;
        for (ssize_t more = 1; more > 0 && got<image->length; got += more> 0 ? (size_t)more : 0)
            more = read(file, image->bytes + got, image->length - got);
        result = got == image->length
                     ? 0
                     : error_set(err, "can't read the checkpoint %s: %s", path, strerror(errno));
    }
    close(file);
    return result;
}

static int check_frame(const char *path, struct checkpoint_image *image, struct error *err)
{
    uint32_t version, stored;
    const unsigned char *start = next_bytes(image, sizeof magic);
    if (!start || memcmp(start, magic, sizeof magic) != 0 || !read_u32(image, &version))
        return error_set(err, "%s is not a checkpoint of ddptrain", path);
    if (version != VERSION)
        return error_set(err, "the checkpoint %s has version %u; this ddptrain reads version %d",
                         path, version, VERSION);
    if (image->length < image->position + sizeof stored)
        return error_set(err, "the checkpoint %s is cut off", path);
    image->length -= sizeof stored;
    memcpy(&stored, image->bytes + image->length, sizeof stored);
    if (stored != (uint32_t)crc32(0, image->bytes, (uInt)image->length))
        return error_set(err, "the checkpoint %s is cut off or damaged: its checksum is wrong",
                         path);
    return 0;
}

static bool restore_progress(struct checkpoint_image *image, struct checkpoint_progress *progress)
{
    uint32_t iteration, steps;
    if (!read_u32(image, &iteration))
        return false;
    const unsigned char *scale = next_bytes(image, sizeof progress->loss_scale);
    if (!scale || !read_u32(image, &steps))
        return false;
    progress->iteration = (int)iteration;
    memcpy(&progress->loss_scale, scale, sizeof progress->loss_scale);
    progress->steps_without_overflow = (int)steps;
    return true;
}

static int apply_image(const char *path, const char *configuration, struct checkpoint_image *image,
                       struct checkpoint_progress *progress,
                       const struct checkpoint_section *sections, int count, struct error *err)
{
    struct checkpoint_progress saved = {0};
    uint32_t saved_sections = 0;
    if (check_frame(path, image, err) != 0)
        return -1;
    if (!restore_progress(image, &saved) || !matches_text(image, configuration) ||
        !read_u32(image, &saved_sections) || saved_sections != (uint32_t)count)
        return error_set(err, "the checkpoint %s was written with other options; this run has: %s",
                         path, configuration);
    size_t first_section = image->position;
    for (int apply = 0; apply <= 1; apply++) { /* look at everything before changing anything */
        image->position = first_section;
        for (int i = 0; i < count; i++)
            if (!restore_section(image, &sections[i], apply))
                return error_set(err, "the checkpoint %s does not fit the %s", path,
                                 sections[i].module->name);
    }
    *progress = saved;
    return 0;
}

int checkpoint_load(const char *path, const char *configuration,
                    struct checkpoint_progress *progress, const struct checkpoint_section *sections,
                    int count, struct error *err)
{
    struct checkpoint_image image = {0};
    int status = read_checkpoint_file(path, &image, err);
    if (status == 0)
        status = apply_image(path, configuration, &image, progress, sections, count, err);
    free(image.bytes);
    return status;
}
