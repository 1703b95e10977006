/* host_calls.c: pairs the beginnings and ends of host calls and ranges. */
#include "cmd/export/host_calls.h"

#include <stdlib.h>

#include <uthash.h>

enum { DEPTH_MAX = 64 }; /* calls and ranges within each other, of a thread */

struct call_host {
    struct {
        uint64_t process, thread;
    } key;
    int depth; /* also of what was too deep to be kept */
    struct {
        uint64_t serial, time_ns;
    } in[DEPTH_MAX];
    UT_hash_handle hh;
};

static struct call_host *find_call_host(struct host_calls *calls, int process, uint32_t thread)
{
    const struct call_host like = {.key = {(uint64_t)process, thread}};
    struct call_host *host;
    HASH_FIND(hh, calls->host, &like.key, sizeof like.key, host);
    return host;
}

static struct call_host *add_call_host(struct host_calls *calls, int process, uint32_t thread)
{
    struct call_host *host = calloc(1, sizeof *host);
    if (!host)
        return NULL;
    host->key.process = (uint64_t)process;
    host->key.thread = thread;
    HASH_ADD(hh, calls->host, key, sizeof host->key, host);
    return host;
}

int host_calls_begin(struct host_calls *calls, int process, uint32_t thread, uint64_t serial,
                     uint64_t time_ns)
{
    struct call_host *host = find_call_host(calls, process, thread);
    if (!host && !(host = add_call_host(calls, process, thread)))
        return -1;
    if (host->depth >= DEPTH_MAX) {
        host->depth++;
        return 0;
    }
    host->in[host->depth].serial = serial;
    host->in[host->depth].time_ns = time_ns;
    host->depth++;
    return 1;
}

int host_calls_end(struct host_calls *calls, int process, uint32_t thread, uint64_t serial,
                   uint64_t *entered_ns)
{
    struct call_host *host = find_call_host(calls, process, thread);
    *entered_ns = 0;
    if (!host || host->depth == 0)
        return 0;
    if (host->depth > DEPTH_MAX) {
        host->depth--;
        return 0;
    }
    int at = host->depth - 1;
    while (at > 0 && host->in[at].serial != serial)
        at--;
    if (host->in[at].serial != serial)
        return 0;
    int over = host->depth - at;
    host->depth = at;
    *entered_ns = host->in[at].time_ns;
    return over;
}

void host_calls_free(struct host_calls *calls)
{
    struct call_host *host, *next;
    HASH_ITER(hh, calls->host, host, next) {
        HASH_DEL(calls->host, host);
        free(host);
    }
}
