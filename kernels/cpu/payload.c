/* payload.c: the hash of a buffer, its NaNs and Infs. */
#include "kernels/payload.h"

#include <string.h>

#include "kernels/cpu/twins.h"

struct twin_tally {
    uint64_t sum, nans, infs, differs;
};

static inline void add_word(struct twin_tally *tally, uint64_t word, size_t index,
                            const struct payload_masks *masks)
{
    const uint64_t nonfinite = payload_nonfinite(word, masks);

    tally->sum += payload_mix(word, index);
    if (nonfinite) {
        const int nans = __builtin_popcountll(payload_nan(word, masks));
        tally->nans += (unsigned)nans;
        tally->infs += (unsigned)(__builtin_popcountll(nonfinite) - nans);
    }
}

static uint32_t saturated(uint64_t count)
{
    return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

void twin_payload_hash(const struct twin_grid *grid, void *const *args)
{
    TAKE(const unsigned char *, data);
    TAKE(size_t, bytes);
    TAKE(int, datatype);
    TAKE(struct payload_found *, found);
    TAKE(size_t, ticket);
    const struct payload_masks masks = payload_masks_of(datatype);
    const size_t whole = bytes / 8;
    struct twin_tally tally = {0};
    uint64_t first = 0, last = 0;

    (void)grid;
    memcpy(&first, data, bytes < 8 ? bytes : 8);
    for (size_t i = 0; i < whole; i++) {
        uint64_t word;
        memcpy(&word, data + 8 * i, 8);
        add_word(&tally, word, i, &masks);
        tally.differs |= word ^ first;
    }
    if (bytes % 8) {
        memcpy(&last, data + 8 * whole, bytes % 8);
        add_word(&tally, last, whole, &masks);
        tally.differs |= (last ^ first) & payload_last_mask(bytes);
    }
    found->hash = payload_finish(tally.sum, bytes);
    found->nans = saturated(tally.nans);
    found->infs = saturated(tally.infs);
    found->flags = tally.differs ? 0 : PAYLOAD_UNIFORM;
    __atomic_store_n(&found->done, ticket, __ATOMIC_RELEASE);
}
