/* keep_option.c: --keep, of the commands that record. */
#include "cmd/options/keep_option.h"

#include <stdlib.h>

const char *keep_usual(void)
{
    const char *text = getenv("DDPCHECK_KEEP");
    struct keep_limits limits;
    if (!text || !*text)
        return KEEP_DEFAULT;
    if (keep_parse(text, &limits) == 0)
        return text;
    /* Recording goes on: nobody may read the usage of a collector that the shim starts. */
    fprintf(stderr, "ddpcheck: DDPCHECK_KEEP=%s is no size and age, such as 20G,2d: %s is kept\n",
            text, KEEP_DEFAULT);
    return KEEP_DEFAULT;
}

int keep_usage_error(const struct command_options *options, const char *text)
{
    return options_usage_error(options,
                               "--keep needs a size of at least 1M and may have an age, such as "
                               "20G or 20G,2d, or 'all', not '%s'",
                               text);
}
