/* reader_requests.h: at the hub's end of a transport: which reader has sent which request, so that
 * an answer by the hub's own number of the request finds its way back. */
#ifndef DDPCHECK_READER_REQUESTS_H
#define DDPCHECK_READER_REQUESTS_H

#include <stdint.h>

#include "lib/job/transport.h"

struct reader_request {
    char reader[TRANSPORT_HOST_BYTES];
    uint64_t id; /* the reader's number of it */
};

/* The last of them; zero-initialised is empty. */
struct reader_requests {
    uint64_t last;
    struct reader_request request[TRANSPORT_READERS];
};

/* Returns the hub's number of a request. */
uint64_t reader_requests_add(struct reader_requests *requests, const char *reader, uint64_t id);
/* NULL if it came too long ago, or never. */
const struct reader_request *reader_requests_find(const struct reader_requests *requests,
                                                  uint64_t number);

#endif
