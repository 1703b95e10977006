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

#include "cmd/hub/hub_directory.h"
#include "lib/nats/transport_nats.h"

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

/* Reads a token that others can't read; `directory`: that of a hub, which alone has the file, or
 * NULL for a file that the user names. Returns 1 if there is no such file. */
static int read_token(const char *path, const char *directory, char token[HUB_TOKEN_BYTES],
                      struct error *err)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (directory ? O_NOFOLLOW : 0));
    if (fd < 0 && errno == ELOOP)
        return hub_directory_check_file(directory, "token", err);
    if (fd < 0)
        return errno == ENOENT ? 1 : error_set(err, "can't read %s: %s", path, strerror(errno));
    if (directory && hub_directory_check_opened(fd, directory, "token", err) < 0) {
        close(fd);
        return -1;
    }
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

static int draw_token(const char *prefix, char token[HUB_TOKEN_BYTES], struct error *err)
{
    unsigned char bytes[RANDOM_BYTES];
    size_t length = (size_t)snprintf(token, HUB_TOKEN_BYTES, "%s", prefix);
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return error_set(err, "can't create a token: %s", strerror(errno));
    for (size_t i = 0; i < RANDOM_BYTES; i++)
        snprintf(token + length + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

static int make_token(const char *path, const char *prefix, char token[HUB_TOKEN_BYTES],
                      struct error *err)
{
    return draw_token(prefix, token, err) < 0 ? -1 : hub_write_private(path, token, err);
}

/* By its beginning a token says whose it is. */
static int check_hosts_token(const struct hub_server *server, struct error *err)
{
    if (strncmp(server->token, HUB_READER_PREFIX, strlen(HUB_READER_PREFIX)) == 0)
        return error_set(err, "the token of hosts can't begin with " HUB_READER_PREFIX
                              ", as the token of readers does");
    return 0;
}

int hub_token_make_others(struct hub_server *server, struct error *err)
{
    char path[PATH_MAX + 16];
    if (check_hosts_token(server, err) < 0 || draw_token("", server->secret, err) < 0)
        return -1;
    snprintf(path, sizeof path, "%s/reader-token", server->real);
    int result = read_token(path, server->real, server->reader, err);
    return result == 1 ? make_token(path, HUB_READER_PREFIX, server->reader, err) : result;
}

int hub_token_of_file(const char *path, char token[HUB_TOKEN_BYTES], struct error *err)
{
    int result = path ? read_token(path, NULL, token, err) : draw_token("", token, err);
    return result == 1 ? error_set(err, "can't read %s: no such file", path) : result;
}

int hub_token_find(struct hub_server *server, struct error *err)
{
    char path[PATH_MAX + 16];
    const char *given = getenv("DDPCHECK_HUB_TOKEN");
    if (server->token_file)
        return hub_token_of_file(server->token_file, server->token, err);
    if (given && *given) {
        if (check_token(given, "DDPCHECK_HUB_TOKEN", err) < 0)
            return -1;
        snprintf(server->token, sizeof server->token, "%s", given);
        return 0;
    }
    snprintf(path, sizeof path, "%s/token", server->real);
    int result = read_token(path, server->real, server->token, err);
    return result == 1 ? make_token(path, "", server->token, err) : result;
}
