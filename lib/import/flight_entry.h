/* flight_entry.h: one entry of a Flight Recorder dump: what it says, and which NCCL call that is.
 */
#ifndef DDPCHECK_FLIGHT_ENTRY_H
#define DDPCHECK_FLIGHT_ENTRY_H

#include "lib/import/import.h"
#include "lib/import/value.h"

/* Names of the dump's fields; a text's `meaning` is 1 + one of these, -1 if it is none. */
enum flight_field {
#define FIELD(name) FIELD_##name,
#include "lib/import/flight_fields.def"
#undef FIELD
    FIELDS
};

/* The fields of a dictionary: to[field], NULL where there is none. */
void flight_fields(const struct list_value *dict, const struct value *to[FIELDS]);

/* The text, or the first of a list of texts; NULL if it is neither. */
const struct value *flight_first_text(const struct value *value);

struct flight_entry {
    const struct value *field[FIELDS];
    enum api api; /* API_NONE: the operation is not known, or is no call (nccl:coalesced) */
    bool is_p2p, is_coalesced;    /* coalesced: the row that ends a group of calls */
    int source, destination;      /* p2p: ranks in the group; -1 not known */
    int64_t seq, p2p_seq, record; /* -1: not known */
    enum import_state state;
    uint64_t created_ns;
    uint64_t duration_ns; /* on the GPU; 0: not known */
};

/* What an entry says. False if it is no dictionary. */
bool flight_entry_read(const struct value *value, struct flight_entry *entry);
/* Its elements as NCCL counts them for the call, IMPORT_UNKNOWN where ranks may differ or it is not
 * said. */
uint64_t flight_entry_count(const struct flight_entry *entry);
/* enum datatype, TYPE_NONE; *factor: elements that one of PyTorch's is (2 for complex numbers). */
uint8_t flight_entry_datatype(const struct flight_entry *entry, unsigned *factor);
/* Its input and output do not fit each other, in elements or type, as those of its kind must. */
bool flight_entry_is_unlike(const struct flight_entry *entry, int nranks);

/* Takes rows out that are one and the same as one before. The recorder's ring has each once, and a
 * pickle names what it has had by a few bytes: a file of megabytes would make millions of calls.
 * Returns how many. */
uint32_t flight_drop_repeated(struct list_value *entries);

#endif
