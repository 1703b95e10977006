/* join_symbols.c: sends the names of addresses in stacks that the hub has: it has neither the
 * processes nor, perhaps, their files. */
#include <stdlib.h>
#include <string.h>

#include "collector/join_internal.h"
#include "lib/trace/trace.h"

enum { SYMBOLS_A_PASS = 64 };

void join_note_address(struct join *join, int number, uint64_t address)
{
    struct join_symbol key = {.key = {address, number}}, *symbol;
    if (!address)
        return;
    TABLE_FIND(join->symbols, &key.key, symbol);
    if (symbol || !(symbol = calloc(1, sizeof *symbol)))
        return;
    symbol->key = key.key;
    TABLE_ADD(join->symbols, key, symbol);
    if (!TABLE_ADDED(symbol))
        free(symbol);
    join->symbols_wait = true;
}

void join_send_symbols(struct join *join, struct trace *trace)
{
    if (!join->symbols_wait || !trace)
        return;
    int tried = 0;
    join->symbols_wait = false;
    for (struct join_symbol *symbol = join->symbols; symbol; symbol = symbol->hh.next) {
        struct frame frame;
        struct item_symbol item = {.process = (uint32_t)symbol->key.process,
                                   .address = symbol->key.address};
        if (symbol->sent)
            continue;
        if (tried++ == SYMBOLS_A_PASS) {
            join->symbols_wait = true;
            break;
        }
        symbol->sent = true; /* what has no name now will have none */
        if (trace_frames(trace, (int)symbol->key.process, symbol->key.address, true, &frame, 1) !=
                1 ||
            !frame.module[0])
            continue;
        item.line = frame.line;
        memcpy(item.module, frame.module, sizeof item.module);
        memcpy(item.function, frame.function, sizeof item.function);
        memcpy(item.file, frame.file, sizeof item.file);
        if (!message_add(&join->facts, ITEM_SYMBOL, &item)) {
            join_flush(join, &join->facts, CHANNEL_FACTS);
            message_add(&join->facts, ITEM_SYMBOL, &item);
        }
    }
    join_flush(join, &join->facts, CHANNEL_FACTS);
}
