/* settings.c: keeps what the shim and the collector recorded of a process's environment. */
#include "analyzer/environment/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/model/array.h"
#include "analyzer/model/process.h"

/* Files whose builds must agree; the first that a file's name begins with is it. */
static const struct known_file {
    const char *begins, *library;
} known_files[] = {
    {"libnccl-net", "network plugin"},
    {"libnccl.so", "libnccl"},
    {"librccl.so", "librccl"},
    {"libcudart.so", "libcudart"},
    {"libtorch_cuda.so", "libtorch_cuda"},
};

/* The process's own, of that name; where there is none, a new one. NULL: memory is short. */
static struct setting *settings_make(struct process *process, const struct setting *like)
{
    struct settings *settings = process->slot.settings;
    if (!settings && !(settings = process->slot.settings = calloc(1, sizeof *settings)))
        return NULL;
    for (uint32_t i = 0; i < settings->count; i++)
        if (settings->item[i].name == like->name && settings->item[i].library == like->library)
            return &settings->item[i];
    struct setting *grown =
        array_room(settings->item, sizeof *grown, settings->count, &settings->capacity, 16);
    if (!grown)
        return NULL;
    settings->item = grown;
    return &settings->item[settings->count++];
}

static int settings_put(struct event *event, const struct setting *setting)
{
    struct setting *made = settings_make(event->process, setting);
    if (!made)
        return ENGINE_FAILED;
    *made = *setting;
    return ENGINE_OK;
}

static void write_nccl_version(int version, char text[SETTING_TEXT_BYTES])
{
    text[0] = 0;
    if (version >= 10000)
        snprintf(text, SETTING_TEXT_BYTES, "%d.%d.%d", version / 10000, version / 100 % 100,
                 version % 100);
}

static void write_cuda_version(int version, char text[SETTING_TEXT_BYTES])
{
    text[0] = 0;
    if (version > 0)
        snprintf(text, SETTING_TEXT_BYTES, "%d.%d", version / 1000, version / 10 % 100);
}

int settings_feed(struct event *event)
{
    const struct record *record = event->record;
    const struct setting setting = {.kind = record->range.id == SETTING_HOST ? SETTING_VERSION
                                                                             : SETTING_VARIABLE,
                                    .name = record->range.domain,
                                    .value = record->range.text};
    return settings_put(event, &setting);
}

int settings_feed_library(struct event *event)
{
    const struct record *record = event->record;
    struct setting setting = {.kind = SETTING_VERSION, .name = record->range.text};
    write_nccl_version((int)record->range.id, setting.text);
    return settings_put(event, &setting);
}

int settings_feed_module(struct event *event)
{
    const struct record *record = event->record;
    const char *path = process_string(event->process, record->module.path);
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    struct setting setting = {.kind = SETTING_VERSION};
    for (size_t i = 0; i < sizeof known_files / sizeof *known_files && !setting.library; i++)
        if (!strncmp(file, known_files[i].begins, strlen(known_files[i].begins)))
            setting.library = known_files[i].library;
    if (!setting.library || !record->module.build_id_bytes)
        return ENGINE_NOTHING_NEW;
    size_t used = (size_t)snprintf(setting.text, sizeof setting.text, "build ");
    for (uint32_t i = 0; i < record->module.build_id_bytes && used + 2 < sizeof setting.text; i++)
        used += (size_t)snprintf(setting.text + used, sizeof setting.text - used, "%02x",
                                 record->module.build_id[i]);
    return settings_put(event, &setting);
}

void settings_free(struct settings *settings)
{
    if (settings)
        free(settings->item);
    free(settings);
}

const char *setting_name(const struct process *process, const struct setting *setting)
{
    return setting->library ? setting->library : process_string(process, setting->name);
}

static const char *own_version(const struct process *process, const char *name,
                               char text[SETTING_TEXT_BYTES])
{
    const struct process_info *info = &process->info;
    if (!strcmp(name, "NCCL"))
        write_nccl_version(info->nccl_version, text);
    else if (!strcmp(name, "CUDA runtime"))
        write_cuda_version(info->cuda_runtime_version, text);
    else if (!strcmp(name, "CUDA driver"))
        write_cuda_version(info->cuda_driver_version, text);
    else
        return NULL;
    return *text ? text : NULL;
}

const char *settings_value(const struct process *process, const char *name,
                           char text[SETTING_TEXT_BYTES])
{
    const struct settings *settings = process->slot.settings;
    for (uint32_t i = 0; settings && i < settings->count; i++) {
        const struct setting *setting = &settings->item[i];
        if (strcmp(setting_name(process, setting), name) != 0)
            continue;
        if (*setting->text)
            return setting->text;
        return setting->value ? process_string(process, setting->value) : NULL;
    }
    return own_version(process, name, text);
}
