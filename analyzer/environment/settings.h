/* settings.h: what a process runs in: variables, versions, files of libraries, facts of its host.
 */
#ifndef DDPCHECK_ANALYZER_SETTINGS_H
#define DDPCHECK_ANALYZER_SETTINGS_H

#include "analyzer/engine.h"

/* What of a process a setting is about. */
enum setting_kind {
    SETTING_VARIABLE,
    SETTING_VERSION, /* of a library or its file, or of the hardware */
};

enum { SETTING_TEXT_BYTES = 48 };

struct setting {
    enum setting_kind kind;
    uint64_t name, value;          /* string ids; 0: the texts below */
    const char *library;           /* valid for ever */
    char text[SETTING_TEXT_BYTES]; /* of a library */
};

struct settings {
    struct setting *item;
    uint32_t count, capacity;
};

/* notice_setting, notice_library, notice_module. ENGINE_*. */
int settings_feed(struct event *event);
int settings_feed_library(struct event *event);
int settings_feed_module(struct event *event);
void settings_free(struct settings *settings);

/* Its name: "NCCL_ALGO", "libnccl"; valid while the process is. */
const char *setting_name(const struct process *process, const struct setting *setting);
/* The process's value of that setting, NULL if it is not set or not known. `text` is for versions
 * that the process has as numbers: "2.28.9" of NCCL. */
const char *settings_value(const struct process *process, const char *name,
                           char text[SETTING_TEXT_BYTES]);
#endif
