#include "cmd/report_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/report_sources.h"
#include "lib/base/clock.h"

static int no_memory(struct error *err)
{
    return error_set(err, "memory is short: the report needs more than this machine can give now");
}
