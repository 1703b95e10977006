/* server.h: a nats-server for a test, on a port of its own, with JetStream in a folder of its own.
 */
#ifndef DDPCHECK_TESTS_NATS_SERVER_H
#define DDPCHECK_TESTS_NATS_SERVER_H

#include <sys/types.h>

struct test_server {
    char folder[64], url[96], token[32];
    int port;
    pid_t pid;
};

/* Chooses port and folder, and starts it; fails the test if it does not start. */
void server_set_up(struct test_server *server, const char *token);
void server_start(struct test_server *server);
/* Kills it with SIGKILL; server_start starts it again on the same folder and port. */
void server_kill(struct test_server *server);
/* In place of the server: a process that ends `connections` connections one after the other when
 * the client has said who it is, as a server does that is killed just then, and then ends, too. */
pid_t server_start_dying(const struct test_server *server, int connections);
void server_tear_down(struct test_server *server);

#endif
