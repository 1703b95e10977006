/* transport.c: calls the functions of a transport's implementation, and refuses what none can
 * carry.
 */
#include "lib/job/transport.h"

static int check_bytes(size_t bytes, struct error *err)
{
    if (bytes > TRANSPORT_BYTES_MAX)
        return error_set(err, "a message of %zu bytes is too large: the limit is %d", bytes,
                         TRANSPORT_BYTES_MAX);
    return 0;
}

int transport_publish(struct transport *transport, enum transport_channel channel, const void *data,
                      size_t bytes, struct error *err)
{
    if (check_bytes(bytes, err) < 0)
        return -1;
    return transport->functions->publish(transport, channel, data, bytes, err);
}

int transport_request(struct transport *transport, const char *host, uint64_t id, const void *data,
                      size_t bytes, struct error *err)
{
    if (check_bytes(bytes, err) < 0)
        return -1;
    return transport->functions->request(transport, host, id, data, bytes, err);
}

int transport_reply(struct transport *transport, uint64_t id, const void *data, size_t bytes,
                    struct error *err)
{
    if (check_bytes(bytes, err) < 0)
        return -1;
    return transport->functions->reply(transport, id, data, bytes, err);
}

int transport_poll(struct transport *transport, int timeout_ms, struct transport_message *message,
                   struct error *err)
{
    return transport->functions->poll(transport, timeout_ms, message, err);
}

void transport_close(struct transport *transport)
{
    if (transport)
        transport->functions->close(transport);
}
