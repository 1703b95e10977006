/* settings.c: emits the variables that NCCL, CUDA and PyTorch read.
 *
 * The program may have set some since it began: only the process itself knows what its libraries
 * read, at the first NCCL call and at each communicator's. */
#include "interpose/process/settings.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interpose/ring/emit.h"
#include "interpose/shim/environment.h"
#include "interpose/shim/forget.h"
#include "interpose/shim/known.h"
#include "lib/base/secrets.h"
#include "lib/trace/record.h"

extern char **environ;

enum { NAME_BYTES = 128, VALUE_BYTES = 512 };

/* Variables that were emitted, with their values. */
static struct {
    struct emitted_ids settings;
} settings_emitted;

void settings_forked(void)
{
    forget_state(&settings_emitted, sizeof settings_emitted);
}

/* Begins of names. What ddpcheck itself sets is no setting of the job. */
static const char *const settings[] = {
    "NCCL_", "TORCH_", "CUDA_", "PYTORCH_", "UCX_", "OFI_", "FI_", "GLOO_", "TP_SOCKET_", "MASTER_",
};

static bool is_setting(const char *entry)
{
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (!strncmp(entry, settings[i], strlen(settings[i])))
            return true;
    return false;
}

/* `entry`: the variable with its value, in which secrets are masked; its name is `name_bytes` long.
 * Without a value the program has removed it. */
static void emit_setting(struct shim_thread *thread, const char *entry, size_t name_bytes,
                         enum setting_by by)
{
    size_t bytes = strlen(entry);
    uint64_t id = string_id(entry, bytes);
    if (known_has(&settings_emitted.settings, id))
        return;
    struct record record = {.range = {.domain = emit_string(thread, entry, name_bytes), .id = by}};
    if (entry[name_bytes])
        record.range.text = emit_string(thread, entry + name_bytes + 1, bytes - name_bytes - 1);
    if (emit_notice(thread, &record, API_notice_setting))
        known_add(&settings_emitted.settings, id);
}

/* The name of a variable "NAME=VALUE" that is recorded, in `name`; NULL: it is none. */
static const char *name_of(const char *entry, char name[NAME_BYTES])
{
    const char *equals = strchr(entry, '=');
    if (!equals || equals - entry >= NAME_BYTES || !is_setting(entry))
        return NULL;
    memcpy(name, entry, (size_t)(equals - entry));
    name[equals - entry] = 0;
    return name;
}

void settings_record(struct shim_thread *thread)
{
    char name[NAME_BYTES], value[NAME_BYTES + VALUE_BYTES];
    for (char **entry = environ; entry && *entry; entry++) {
        if (!name_of(*entry, name))
            continue;
        /* Masked with its name, by which a secret is known. */
        snprintf(value, sizeof value, "%.*s", (int)strnlen(*entry, sizeof value - 1), *entry);
        size_t bytes = secrets_mask(value, strlen(value));
        value[bytes] = 0;
        const char *first = environment_first(name);
        bool is_given = first && !strcmp(first, *entry + strlen(name) + 1);
        emit_setting(thread, value, strlen(name), is_given ? SETTING_GIVEN : SETTING_PROGRAM);
    }
    for (char **entry = environment_first_all(); *entry; entry++)
        if (name_of(*entry, name) && !getenv(name))
            emit_setting(thread, name, strlen(name), SETTING_PROGRAM);
}
