/* reader_requests.c: numbers the requests of readers in a ring of the last of them. */
#include "lib/job/reader_requests.h"

#include <stdio.h>

uint64_t reader_requests_add(struct reader_requests *requests, const char *reader, uint64_t id)
{
    uint64_t number = ++requests->last;
    struct reader_request *request = &requests->request[number % TRANSPORT_READERS];
    snprintf(request->reader, sizeof request->reader, "%s", reader);
    request->id = id;
    return number;
}

const struct reader_request *reader_requests_find(const struct reader_requests *requests,
                                                  uint64_t number)
{
    if (!number || number > requests->last || requests->last - number >= TRANSPORT_READERS)
        return NULL;
    return &requests->request[number % TRANSPORT_READERS];
}
