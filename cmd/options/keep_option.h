/* keep_option.h: --keep, of the commands that record. */
#ifndef DDPCHECK_KEEP_OPTION_H
#define DDPCHECK_KEEP_OPTION_H

#include "cmd/options/options.h"
#include "lib/trace/keep.h"

/* value: const char **, to be read with keep_parse. */
#define OPTION_KEEP(value)                                                      \
    {                                                                           \
        "keep", 0, OPTION_TEXT, "SIZE[,AGE]",                                   \
            "drop the oldest records beyond this size and age: 5G; 5G,2d; all " \
            "(default: " KEEP_DEFAULT ")",                                      \
            value                                                               \
    }

/* DDPCHECK_KEEP, which a collector started by the shim goes by, or the default. */
const char *keep_usual(void);
/* Says that `text` is no argument of --keep. Returns STATUS_USAGE. */
int keep_usage_error(const struct command_options *options, const char *text);

#endif
