/* server.c: starts and kills a nats-server. */
#include "tests/nats/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static struct sockaddr_in loopback(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

static int open_port(int port)
{
    struct sockaddr_in address = loopback(port);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (port && connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        close(fd);
        return -1;
    }
    if (port)
        return fd;
    socklen_t bytes = sizeof address;
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &bytes), 0);
    close(fd);
    return ntohs(address.sin_port);
}

void server_start(struct test_server *server)
{
    char config[80];
    snprintf(config, sizeof config, "%s/nats.conf", server->folder);
    FILE *to = fopen(config, "w");
    assert_non_null(to);
    fprintf(to, "listen: 127.0.0.1:%d\njetstream { store_dir: \"%s\" }\n", server->port,
            server->folder);
    if (server->token[0])
        fprintf(to, "authorization { token: \"%s\" }\n", server->token);
    fclose(to);
    server->pid = fork();
    if (server->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        char log[80];
        snprintf(log, sizeof log, "%s/log", server->folder);
        execl(NATS_SERVER, "nats-server", "-c", config, "-l", log, NULL);
        _exit(127);
    }
    for (int tries = 0; tries < 1000; tries++) {
        int fd = open_port(server->port);
        if (fd >= 0) {
            close(fd);
            return;
        }
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    fail_msg("nats-server does not start on port %d", server->port);
}

void server_set_up(struct test_server *server, const char *token)
{
    *server = (struct test_server){.port = open_port(0)};
    snprintf(server->token, sizeof server->token, "%s", token);
    strcpy(server->folder, "/tmp/ddpcheck-nats-XXXXXX");
    assert_non_null(mkdtemp(server->folder));
    snprintf(server->url, sizeof server->url, "nats://%s%s127.0.0.1:%d", token, *token ? "@" : "",
             server->port);
    server_start(server);
}

void server_kill(struct test_server *server)
{
    kill(server->pid, SIGKILL);
    waitpid(server->pid, NULL, 0);
}

static void end_connection(int fd, const struct test_server *server)
{
    char greeting[160], line[1024];
    ssize_t bytes =
        snprintf(greeting, sizeof greeting,
                 "INFO {\"server_id\":\"X\",\"version\":\"2.9.10\",\"proto\":1,\"host\":"
                 "\"127.0.0.1\",\"port\":%d,\"max_payload\":1048576}\r\n",
                 server->port);
    if (write(fd, greeting, (size_t)bytes) == bytes)
        bytes = read(fd, line, sizeof line); /* CONNECT {...} */
    (void)bytes;
    close(fd);
}

pid_t server_start_dying(const struct test_server *server, int connections)
{
    struct sockaddr_in address = loopback(server->port);
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 8), 0);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int i = 0; i < connections; i++) {
            int connection = accept(fd, NULL, NULL);
            if (connection >= 0)
                end_connection(connection, server);
        }
        _exit(0);
    }
    close(fd);
    return pid;
}

void server_tear_down(struct test_server *server)
{
    char command[96];
    server_kill(server);
    snprintf(command, sizeof command, "rm -rf %s", server->folder);
    assert_int_equal(system(command), 0);
}
