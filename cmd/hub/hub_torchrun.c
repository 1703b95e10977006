/* hub_torchrun.c: torchrun's options, as of PyTorch 2 (torch/distributed/run.py). */
#include "cmd/hub/hub_torchrun.h"

#include <ifaddrs.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct torchrun_option {
    const char *name;
    size_t offset;
} torchrun_option[] = {
    {"nnodes", offsetof(struct torchrun_options, nnodes)},
    {"node-rank", offsetof(struct torchrun_options, node_rank)},
    {"rdzv-endpoint", offsetof(struct torchrun_options, endpoint)},
    {"master-addr", offsetof(struct torchrun_options, address)},
    {"master-port", offsetof(struct torchrun_options, port)},
    {"rdzv-id", offsetof(struct torchrun_options, id)},
};
enum { TORCHRUN_OPTIONS = sizeof torchrun_option / sizeof torchrun_option[0] };

static const char *const without_value[] = {"standalone", "module", "no-python", "run-path",
                                            "virtual-local-rank"};

static const char *program_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The arguments after torchrun's name, wherever it stands: before it may be python, env, numactl.
 * NULL if there is none. */
static char *const *skip_name(char *const *argv)
{
    for (; *argv; argv++) {
        if (strcmp(program_name(*argv), "torchrun") == 0)
            return argv + 1;
        if (strcmp(*argv, "-m") == 0 && argv[1] &&
            (strcmp(argv[1], "torch.distributed.run") == 0 ||
             strcmp(argv[1], "torch.distributed.launch") == 0))
            return argv + 2;
    }
    return NULL;
}

/* "--node_rank" is "--node-rank". */
static bool is_option(const char *word, size_t length, const char *name)
{
    if (strlen(name) != length)
        return false;
    for (size_t i = 0; i < length; i++)
        if (word[i] != name[i] && !(word[i] == '_' && name[i] == '-'))
            return false;
    return true;
}

static bool takes_value(const char *word, size_t length)
{
    for (size_t i = 0; i < sizeof without_value / sizeof without_value[0]; i++)
        if (is_option(word, length, without_value[i]))
            return false;
    return true;
}

static void set_option(struct torchrun_options *options, const char *word, size_t length,
                       const char *value)
{
    for (int i = 0; i < TORCHRUN_OPTIONS; i++)
        if (is_option(word, length, torchrun_option[i].name))
            memcpy((char *)options + torchrun_option[i].offset, &value, sizeof value);
}

/* The program's own arguments come after the first word that is no option. */
bool torchrun_read(char *const *argv, struct torchrun_options *options)
{
    argv = skip_name(argv);
    if (!argv)
        return false;
    for (; *argv && **argv == '-' && strcmp(*argv, "--") != 0; argv++) {
        const char *word = *argv + strspn(*argv, "-"), *value = strchr(word, '=');
        size_t length = value ? (size_t)(value - word) : strlen(word);
        bool is_short = (*argv)[1] != '-'; /* -m; -r and -t have a value, maybe in the same word */
        if (value) {
            set_option(options, word, length, value + 1);
        } else if (is_short ? word[0] != 'm' && length == 1 : takes_value(word, length)) {
            if (!argv[1])
                break;
            set_option(options, word, length, *++argv);
        }
    }
    return true;
}

static bool is_address_here(const struct sockaddr *address, const struct ifaddrs *interfaces)
{
    const struct sockaddr_in *four = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
    for (; interfaces; interfaces = interfaces->ifa_next) {
        const struct sockaddr *here = interfaces->ifa_addr;
        if (!here || here->sa_family != address->sa_family)
            continue;
        if (here->sa_family == AF_INET &&
            ((const struct sockaddr_in *)here)->sin_addr.s_addr == four->sin_addr.s_addr)
            return true;
        if (here->sa_family == AF_INET6 && memcmp(&((const struct sockaddr_in6 *)here)->sin6_addr,
                                                  &six->sin6_addr, sizeof six->sin6_addr) == 0)
            return true;
    }
    return false;
}

static bool has_address_here(const char *host)
{
    struct addrinfo *found = NULL;
    struct ifaddrs *interfaces = NULL;
    bool is_here = false;
    if (getaddrinfo(host, NULL, NULL, &found) == 0 && getifaddrs(&interfaces) == 0)
        for (struct addrinfo *at = found; at && !is_here; at = at->ai_next)
            is_here = is_address_here(at->ai_addr, interfaces);
    freeifaddrs(interfaces);
    if (found)
        freeaddrinfo(found);
    return is_here;
}

/* Its name says so, whole or up to the first dot, or one of its addresses. */
static bool is_this_host(const char *host)
{
    char name[HOST_NAME_MAX + 1] = "";
    gethostname(name, sizeof name - 1);
    bool is_number = !host[strspn(host, "0123456789.:")];
    size_t length = strcspn(host, "."), own = strcspn(name, ".");
    if (!is_number && strcmp(host, name) != 0 && (host[length] == 0 || name[own] == 0) &&
        length == own && strncmp(host, name, own) == 0)
        return true;
    return strcmp(host, name) == 0 || has_address_here(host);
}

/* "n0:29400", "[fd00::1]:29400": without the port. */
static void cut_port(const char *endpoint, char *host, size_t bytes)
{
    bool is_quoted = *endpoint == '[';
    size_t length = is_quoted ? strcspn(endpoint + 1, "]") : strcspn(endpoint, ":");
    snprintf(host, bytes, "%.*s", (int)length, endpoint + is_quoted);
}

bool torchrun_is_first(const struct torchrun_options *options, char *host, unsigned long bytes)
{
    bool is_one = !options->nnodes || strcmp(options->nnodes, "1") == 0 ||
                  strcmp(options->nnodes, "1:1") == 0;
    const char *address = options->endpoint ? options->endpoint : options->address;
    cut_port(address ? address : "", host, bytes);
    if (is_one)
        return true;
    if (options->node_rank)
        return atoi(options->node_rank) == 0;
    return !*host || is_this_host(host);
}

/* The first host may call itself "localhost", where the others have its name. */
void torchrun_find_meeting(const struct torchrun_options *options, char *meeting,
                           unsigned long bytes)
{
    char host[HOST_NAME_MAX + 1];
    const char *address = options->endpoint ? options->endpoint : options->address;
    const char *end = options->endpoint ? strrchr(options->endpoint, ':') : NULL;
    const char *port = options->endpoint ? "" : options->port;
    if (end && !strchr(end, ']'))
        port = end + 1;
    cut_port(address ? address : "", host, sizeof host);
    if (strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0)
        gethostname(host, sizeof host);
    snprintf(meeting, bytes, "%s%s%s", host, port && *port ? "." : "", port ? port : "");
}
