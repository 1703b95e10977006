/* store.c: server and client of the key-value store. */
#include "trainer/store.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "trainer/clock.h"

enum { MAX_CLIENTS = 512, MAX_ENTRIES = 16, GET = 'g', SET = 's' };

/* A request; the answer to a get is the entry's `bytes` and `value`, in the same struct. */
struct message {
    char verb;
    char key[STORE_MAX_KEY];
    uint32_t bytes;
    char value[STORE_MAX_VALUE];
};

struct client {
    int socket;
    size_t received; /* bytes of the request so far */
    struct message request;
    bool waiting; /* for a key that nobody has set yet */
};

struct store_server {
    int listening;
    struct client clients[MAX_CLIENTS];
    int client_count;
    struct message entries[MAX_ENTRIES];
    int entry_count;
};

/* --- server --- */

static struct message *find_entry(struct store_server *server, const char *key)
{
    for (int i = 0; i < server->entry_count; i++)
        if (strcmp(server->entries[i].key, key) == 0)
            return &server->entries[i];
    return NULL;
}

static void set_entry(struct store_server *server, const struct message *request)
{
    struct message *entry = find_entry(server, request->key);
    if (!entry && server->entry_count < MAX_ENTRIES)
        entry = &server->entries[server->entry_count++];
    if (entry)
        *entry = *request;
}

/* Sends the answer, which fits any socket buffer. Returns false if the client is gone. */
static bool answer_client(struct store_server *server, struct client *client)
{
    const struct message *entry = find_entry(server, client->request.key);
    client->waiting = entry == NULL;
    return !entry ||
           send(client->socket, entry, sizeof *entry, MSG_NOSIGNAL) == (ssize_t)sizeof *entry;
}

static bool handle_request(struct store_server *server, struct client *client)
{
    client->received = 0;
    client->request.key[STORE_MAX_KEY - 1] = '\0';
    if (client->request.verb == SET && client->request.bytes <= STORE_MAX_VALUE) {
        set_entry(server, &client->request);
        for (int i = 0; i < server->client_count; i++)
            if (server->clients[i].waiting)
                answer_client(server, &server->clients[i]);
        return answer_client(server, client);
    }
    return client->request.verb == GET && answer_client(server, client);
}

static bool receive_from(struct store_server *server, struct client *client)
{
    char *into = (char *)&client->request + client->received;
    ssize_t got = recv(client->socket, into, sizeof client->request - client->received, 0);
    if (got <= 0)
        return false;
    client->received += (size_t)got;
    return client->received < sizeof client->request || handle_request(server, client);
}

static void drop_client(struct store_server *server, int i)
{
    close(server->clients[i].socket);
    server->clients[i] = server->clients[--server->client_count];
}

static void accept_client(struct store_server *server)
{
    int socket = accept4(server->listening, NULL, NULL, SOCK_CLOEXEC);
    if (socket < 0)
        return;
    if (server->client_count == MAX_CLIENTS)
        close(socket);
    else
        server->clients[server->client_count++] = (struct client){.socket = socket};
}

static void *serve(void *argument)
{
    struct store_server *server = argument;
    for (;;) {
        struct pollfd polled[MAX_CLIENTS + 1] = {{server->listening, POLLIN, 0}};
        int clients = server->client_count;
        for (int i = 0; i < clients; i++)
            polled[i + 1] = (struct pollfd){server->clients[i].socket, POLLIN, 0};
        if (poll(polled, (nfds_t)clients + 1, -1) < 0 && errno != EINTR)
            return NULL;
        /* Backwards: dropping a client moves the last one, which was looked at before, into its
         * place. */
        for (int i = clients - 1; i >= 0; i--)
            if (polled[i + 1].revents && !receive_from(server, &server->clients[i]))
                drop_client(server, i);
        if (polled[0].revents)
            accept_client(server);
    }
}

int store_listen(int *port, struct error *err)
{
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)*port)};
    socklen_t length = sizeof address;
    if (listening < 0)
        return error_set(err, "can't open a socket for rank 0's store: %s", strerror(errno));
    setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listening, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listening, MAX_CLIENTS) != 0 ||
        getsockname(listening, (struct sockaddr *)&address, &length) != 0) {
        error_set(err,
                  "rank 0 can't listen on port %d: %s; set MASTER_PORT to a free port on all ranks",
                  *port, strerror(errno));
        close(listening);
        return -1;
    }
    *port = ntohs(address.sin_port);
    return listening;
}

int store_serve(int listening_socket, struct error *err)
{
    pthread_t thread;
    struct store_server *server = calloc(1, sizeof *server);
    if (!server)
        return error_set(err, "out of memory for rank 0's store");
    server->listening = listening_socket;
    int failure = pthread_create(&thread, NULL, serve, server);
    if (failure) {
        free(server);
        return error_set(err, "can't start the thread of rank 0's store: %s", strerror(failure));
    }
    pthread_detach(thread);
    return 0;
}

/* --- client --- */

static int try_connect(const char *host, const char *port)
{
    struct addrinfo wanted = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *found;
    int failure = getaddrinfo(host, port, &wanted, &found), result = -1;
    if (failure) {
        errno = EHOSTUNREACH;
        return -1;
    }
    for (struct addrinfo *one = found; one && result < 0; one = one->ai_next) {
        result = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (result >= 0 && connect(result, one->ai_addr, one->ai_addrlen) != 0) {
            int why = errno;
            close(result);
            errno = why;
            result = -1;
        }
    }
    freeaddrinfo(found);
    return result;
}

int store_connect(const char *host, int port, double patience_s, struct error *err)
{
    char text[16];
    snprintf(text, sizeof text, "%d", port);
    double deadline = clock_seconds() + patience_s;
    for (;;) {
        int store = try_connect(host, text);
        if (store >= 0)
            return store;
        if (clock_seconds() > deadline)
            return error_set(
                err,
                "can't reach rank 0's store at %s:%d after %.0f s: %s; is rank 0 running, and are "
                "MASTER_ADDR and MASTER_PORT the same on all ranks?",
                host, port, patience_s, strerror(errno));
        usleep(50 * 1000);
    }
}

static int exchange(int store, struct message *message, struct error *err)
{
    if (send(store, message, sizeof *message, MSG_NOSIGNAL) != (ssize_t)sizeof *message)
        return error_set(err, "rank 0's store does not answer: %s", strerror(errno));
    ssize_t got = recv(store, message, sizeof *message, MSG_WAITALL);
    if (got != (ssize_t)sizeof *message)
        return error_set(
            err, "rank 0 closed its store while this rank waited for '%.*s': has rank 0 failed?",
            STORE_MAX_KEY, message->key);
    return 0;
}

int store_set(int store, const char *key, const void *value, size_t bytes, struct error *err)
{
    struct message message = {.verb = SET, .bytes = (uint32_t)bytes};
    if (bytes > STORE_MAX_VALUE || strlen(key) >= STORE_MAX_KEY)
        return error_set(err, "'%s' with %zu bytes is too long for the store", key, bytes);
    strcpy(message.key, key);
    memcpy(message.value, value, bytes);
    return exchange(store, &message, err);
}

int store_get(int store, const char *key, void *value, size_t bytes, struct error *err)
{
    struct message message = {.verb = GET};
    if (strlen(key) >= STORE_MAX_KEY)
        return error_set(err, "'%s' is too long for the store", key);
    strcpy(message.key, key);
    if (exchange(store, &message, err) != 0)
        return -1;
    if (message.bytes != bytes)
        return error_set(err, "'%s' in rank 0's store has %u bytes, expected %zu", key,
                         message.bytes, bytes);
    memcpy(value, message.value, bytes);
    return 0;
}
