/* frame_tables.c: searches .eh_frame_hdr, whose format is that of the Linux Standard Base (Core,
 * 10.6.2). */
#include "interpose/stacks/frame_tables.h"

#include <stdbool.h>

#include "interpose/stacks/modules.h"
#include "lib/python/peek.h"

/* DW_EH_PE_*, as all linkers write them: numbers of 4 bytes, those of the table from its start. */
enum { FORMAT = 0x0f, FOUR_BYTES = 0x03, SIGNED_FOUR_BYTES = 0x0b, FROM_TABLE = 0x3b };

struct table_header {
    uint8_t version, frames_encoding, count_encoding, entries_encoding;
    int32_t frames;
    uint32_t count;
};

struct table_entry {
    int32_t function, description;
};

static bool read_table_entry(uint64_t table, uint32_t index, struct table_entry *entry)
{
    return peek(table + sizeof(struct table_header) + index * sizeof *entry, entry, sizeof *entry);
}

static bool is_usual_table(const struct table_header *header)
{
    unsigned format = header->frames_encoding & FORMAT;
    return header->version == 1 && (format == FOUR_BYTES || format == SIGNED_FOUR_BYTES) &&
           header->count_encoding == FOUR_BYTES && header->entries_encoding == FROM_TABLE;
}

/* The last entry whose function begins at or below the address. */
uint64_t frame_tables_find(uint64_t address, uint64_t *function)
{
    struct table_header header;
    struct table_entry entry, found = {0};
    uint64_t table = modules_frame_table(address);
    if (!table || !peek(table, &header, sizeof header) || !is_usual_table(&header))
        return 0;
    bool is_found = false;
    for (uint32_t low = 0, high = header.count; low < high;) {
        uint32_t middle = low + (high - low) / 2;
        if (!read_table_entry(table, middle, &entry))
            return 0;
        if (table + (uint64_t)(int64_t)entry.function > address) {
            high = middle;
            continue;
        }
        found = entry;
        is_found = true;
        low = middle + 1;
    }
    *function = table + (uint64_t)(int64_t)found.function;
    return is_found ? table + (uint64_t)(int64_t)found.description : 0;
}
