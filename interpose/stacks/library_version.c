/* library_version.c: reads the version of PyTorch from the file beside its libraries. No Python is
 * called: the process may be in any state. */
#include "interpose/stacks/library_version.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "interpose/ring/emit.h"

static const char library[] = "/torch/lib/libtorch_cpu.so", version_file[] = "/torch/version.py";

/* "2.10.0+cu128" is 21000; 0 if it is no version. */
static int parse_version(const char *text)
{
    int major, minor, patch;
    bool is_version = sscanf(text, "%3d.%3d.%3d", &major, &minor, &patch) == 3;
    return is_version && major > 0 && minor >= 0 && minor < 100 && patch >= 0 && patch < 100
               ? major * 10000 + minor * 100 + patch
               : 0;
}

/* Of "__version__ = '2.10.0+cu128'", the file's first line that has a value. */
static int read_version(const char *path)
{
    char text[512];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (bytes <= 0)
        return 0;
    text[bytes] = '\0';
    const char *line = strstr(text, "__version__ = ");
    const char *quoted = line ? strpbrk(line, "'\"") : NULL;
    return quoted ? parse_version(quoted + 1) : 0;
}

void library_version_record(struct shim_thread *thread, const char *path, size_t bytes)
{
    char file[PATH_MAX];
    size_t tail = sizeof library - 1;
    if (bytes < tail || memcmp(path + bytes - tail, library, tail) != 0)
        return;
    if (snprintf(file, sizeof file, "%.*s%s", (int)(bytes - tail), path, version_file) >=
        (int)sizeof file)
        return;
    int error = errno, version = read_version(file);
    errno = error;
    if (!version)
        return;
    struct record record = {.range = {.text = emit_string(thread, "PyTorch", strlen("PyTorch")),
                                      .id = (uint64_t)version}};
    emit_notice(thread, &record, API_notice_library);
}
