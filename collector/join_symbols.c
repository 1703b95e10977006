/* join_symbols.c: sends the names of addresses in stacks that the hub has: it has neither the
 * processes nor, perhaps, their files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/join_internal.h"
#include "lib/base/clock.h"
#include "lib/trace/trace.h"

static const uint64_t pass_budget_ns = 20000000;
static const uint64_t unnamed_after_ns = 300000000; /* its module may not be recorded yet */

void join_note_address(struct join *join, int number, uint64_t address)
{
    struct join_symbol key = {.key = {address, number}}, *symbol;
    if (!address)
        return;
    TABLE_FIND(join->symbols, &key.key, symbol);
    if (symbol || !(symbol = calloc(1, sizeof *symbol)))
        return;
    symbol->key = key.key;
    symbol->noted_ns = join->now_ns;
    TABLE_ADD(join->symbols, key, symbol);
    if (!TABLE_ADDED(symbol))
        free(symbol);
    join->symbols_wait = true;
}

static void send_item(struct join *join, enum item_kind kind, const void *item)
{
    if (!message_add(&join->facts, kind, item)) {
        join_flush(join, &join->facts, CHANNEL_FACTS);
        message_add(&join->facts, kind, item);
    }
}

static void send_inlined(struct join *join, const struct join_symbol *symbol,
                         const struct frame *frame, int depth)
{
    struct item_inlined item = {.process = (uint32_t)symbol->key.process,
                                .address = symbol->key.address,
                                .depth = (uint32_t)depth,
                                .line = frame->line};
    snprintf(item.function, sizeof item.function, "%.*s", (int)sizeof item.function - 1,
             frame->function);
    snprintf(item.file, sizeof item.file, "%s", frame->file);
    send_item(join, ITEM_INLINED, &item);
}

/* The symbol comes last: with it the hub has all. False: it has no name, and is sent without if it
 * `must`. */
static bool send_symbol(struct join *join, struct trace *trace, const struct join_symbol *symbol,
                        bool must)
{
    struct frame frame[ADDRESS_FRAMES_MAX];
    struct item_symbol item = {.process = (uint32_t)symbol->key.process,
                               .address = symbol->key.address};
    int count = trace_frames(trace, (int)symbol->key.process, symbol->key.address, true, frame,
                             ADDRESS_FRAMES_MAX);
    bool found = count > 0 && frame->module[0];
    if (!found && !must)
        return false;
    for (int i = 1; found && i < count; i++)
        send_inlined(join, symbol, &frame[i], i);
    if (found) {
        item.line = frame->line;
        snprintf(item.module, sizeof item.module, "%s", frame->module);
        snprintf(item.function, sizeof item.function, "%.*s", (int)sizeof item.function - 1,
                 frame->function);
        snprintf(item.file, sizeof item.file, "%s", frame->file);
    }
    send_item(join, ITEM_SYMBOL, &item);
    return true;
}

void join_send_symbols(struct join *join, uint64_t now_ns)
{
    const struct join_options *options = &join->options;
    struct trace *trace = join->symbols_wait && options->names ? options->names(options->context)
                                                               : NULL;
    uint64_t until_ns = monotonic_now_ns() + pass_budget_ns;
    if (!trace)
        return;
    join->symbols_wait = false;
    for (struct join_symbol *symbol = join->symbols; symbol; symbol = symbol->hh.next) {
        if (symbol->sent)
            continue;
        bool may_wait = !join->is_last && now_ns - symbol->noted_ns < unnamed_after_ns;
        if (monotonic_now_ns() >= until_ns || !send_symbol(join, trace, symbol, !may_wait))
            join->symbols_wait = true;
        else
            symbol->sent = true;
    }
    join_flush(join, &join->facts, CHANNEL_FACTS);
}
