/* hub_token.c: finds or makes the token of a hub. */
#include "cmd/hub/hub_token.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TOKEN_MIN = 8, RANDOM_BYTES = 16 };

int hub_write_private(const char *path, const char *text, struct error *err)
{
    char temporary[PATH_MAX + 32];
    snprintf(temporary, sizeof temporary, "%s.%d", path, (int)getpid());
    unlink(temporary);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    size_t bytes = strlen(text);
    bool is_written = fd >= 0 && write(fd, text, bytes) == (ssize_t)bytes;
    if (fd >= 0)
        is_written &= close(fd) == 0;
    if (is_written && rename(temporary, path) == 0)
        return 0;
    int number = errno;
    unlink(temporary);
    return error_set(err, "can't write %s: %s", path, strerror(number));
}

/* A token is part of a URL and of nats-server's configuration. */
static int check_token(const char *token, const char *from, struct error *err)
{
    size_t length = strlen(token);
    if (length < TOKEN_MIN || length >= HUB_TOKEN_BYTES)
        return error_set(err, "the token of %s has %zu characters; %d to %d are possible", from,
                         length, TOKEN_MIN, HUB_TOKEN_BYTES - 1);
    for (const char *at = token; *at; at++)
        if (!isalnum((unsigned char)*at) && *at != '-' && *at != '_')
            return error_set(err, "the token of %s may have letters, digits, '-' and '_' only",
                             from);
    return 0;
}

/* Returns 1 if there is no such file. */
static int read_token(const char *path, char token[HUB_TOKEN_BYTES], struct error *err)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 1 : error_set(err, "can't read %s: %s", path, strerror(errno));
    ssize_t bytes = read(fd, token, HUB_TOKEN_BYTES - 1);
    bool is_open = fstat(fd, &status) < 0 || (status.st_mode & 077) != 0;
    close(fd);
    if (bytes < 0)
        return error_set(err, "can't read %s: %s", path, strerror(errno));
    if (is_open)
        return error_set(err, "others can read %s; 'chmod 600 %s' makes it private", path, path);
    token[bytes] = 0;
    token[strcspn(token, "\r\n")] = 0;
    return check_token(token, path, err);
}

static int make_token(const char *path, char token[HUB_TOKEN_BYTES], struct error *err)
{
    unsigned char bytes[RANDOM_BYTES];
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return error_set(err, "can't create a token: %s", strerror(errno));
    for (int i = 0; i < RANDOM_BYTES; i++)
        snprintf(token + 2 * i, 3, "%02x", bytes[i]);
    return hub_write_private(path, token, err);
}

int hub_token_find(struct hub_server *server, struct error *err)
{
    char path[PATH_MAX + 16];
    const char *given = getenv("DDPCHECK_HUB_TOKEN");
    if (server->token_file) {
        int result = read_token(server->token_file, server->token, err);
        return result == 1 ? error_set(err, "can't read %s: no such file", server->token_file)
                           : result;
    }
    if (given && *given) {
        if (check_token(given, "DDPCHECK_HUB_TOKEN", err) < 0)
            return -1;
        snprintf(server->token, sizeof server->token, "%s", given);
        return 0;
    }
    snprintf(path, sizeof path, "%s/token", server->real);
    int result = read_token(path, server->token, err);
    return result == 1 ? make_token(path, server->token, err) : result;
}
