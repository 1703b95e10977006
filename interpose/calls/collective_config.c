/* collective_config.c: records the configuration of one collective (ncclCollConfig_t of NCCL 2.31
 * and later) as a text of what it sets: two ranks that set the same have the same text. */
#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "abi/nccl_later.h"
#include "interpose/calls/recording.h"
#include "interpose/ring/emit.h"

enum { CONFIG_TEXT_BYTES = 256, NAME_BYTES = 64, SIZE_MAX_BYTES = 4096 };

struct config_text {
    char text[CONFIG_TEXT_BYTES];
    size_t bytes;
};

static void config_add(struct config_text *text, const char *word, size_t bytes)
{
    if (bytes > sizeof text->text - text->bytes)
        bytes = sizeof text->text - text->bytes;
    memcpy(text->text + text->bytes, word, bytes);
    text->bytes += bytes;
}

static void config_add_name(struct config_text *text, const char *name)
{
    if (text->bytes)
        config_add(text, " ", 1);
    config_add(text, name, strlen(name));
    config_add(text, "=", 1);
}

static void config_add_number(struct config_text *text, const char *name, int value)
{
    char digits[12];
    size_t at = sizeof digits;
    unsigned rest = value < 0 ? -(unsigned)value : (unsigned)value;
    do
        digits[--at] = (char)('0' + rest % 10);
    while (rest /= 10);
    if (value < 0)
        digits[--at] = '-';
    config_add_name(text, name);
    config_add(text, digits + at, sizeof digits - at);
}

/* What all ranks must have alike (nccl.h of 2.32): the event itself is a rank's own, whether there
 * is one is not. Without a selection forceAlgSelection, which is 1 from the start, changes nothing.
 */
static void config_add_pointers(struct config_text *text,
                                const struct nccl_collective_config *config)
{
    if (config->algSelection && *config->algSelection) {
        config_add_name(text, "algSelection");
        config_add(text, config->algSelection, strnlen(config->algSelection, NAME_BYTES));
        config_add_number(text, "forceAlgSelection", config->forceAlgSelection);
    }
    if (config->launchCompletionEvent)
        config_add_number(text, "launchCompletionEvent", 1);
}

/* What it has by its own size, which grows with NCCL's versions; a profiler's tag and extensions
 * may differ between ranks. */
void collective_config_record(struct shim_thread *thread, const ncclCollConfig_t *config)
{
    static const struct {
        const char *name;
        size_t offset;
    } numbers[] = {
        {"minCTAs", offsetof(struct nccl_collective_config, minCTAs)},
        {"maxCTAs", offsetof(struct nccl_collective_config, maxCTAs)},
        {"nvlsCTAs", offsetof(struct nccl_collective_config, nvlsCTAs)},
        {"cgaClusterSize", offsetof(struct nccl_collective_config, cgaClusterSize)},
        {"CTAPolicy", offsetof(struct nccl_collective_config, CTAPolicy)},
    };
    struct nccl_collective_config known = {0};
    struct config_text text = {.bytes = 0};
    size_t size = *(const size_t *)(const void *)config;
    if (size > SIZE_MAX_BYTES)
        return; /* NCCL refuses it: its initializer was not used */
    memcpy(&known, config, size < sizeof known ? size : sizeof known);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        int value = INT_MIN; /* NCCL_CONFIG_UNDEF_INT */
        if (numbers[i].offset + sizeof value <= size)
            memcpy(&value, (const char *)&known + numbers[i].offset, sizeof value);
        if (value != INT_MIN)
            config_add_number(&text, numbers[i].name, value);
    }
    config_add_pointers(&text, &known);
    if (!text.bytes)
        return;
    struct record record = {.range = {.text = emit_string(thread, text.text, text.bytes)}};
    emit_notice(thread, &record, API_notice_collective_config);
}
