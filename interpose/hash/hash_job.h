/* hash_job.h: what is to be hashed of one operation (hashing.h). */
#ifndef DDPCHECK_INTERPOSE_HASH_JOB_H
#define DDPCHECK_INTERPOSE_HASH_JOB_H

#include <stdbool.h>
#include <stdint.h>

struct hash_job {
    uint64_t comm, number, serial;
    uint64_t send, send_bytes, recv, recv_bytes; /* 0 bytes: not hashed */
    uint64_t stream;
    int32_t rank, device;
    uint16_t api;
    uint8_t datatype;
    bool send_after, recv_after;
};

#endif
