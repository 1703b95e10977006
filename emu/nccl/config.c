/* config.c: reads ncclConfig_t of any version and fills in defaults. */
#include "emu/nccl/config.h"

#include <stdlib.h>
#include <string.h>

#include "emu/nccl/errors.h"

/* The integer attributes: their defaults, and which values they may have. */
static const struct {
    const char *name;
    size_t offset;
    int standard, lowest, highest;
} attributes[] = {
#define ATTRIBUTE(name, ...)                             \
    {                                                    \
#name, offsetof(ncclConfig_t, name), __VA_ARGS__ \
    }
    ATTRIBUTE(blocking, 1, 0, 1),
    ATTRIBUTE(cgaClusterSize, 4, 0, 8),
    ATTRIBUTE(minCTAs, 1, 1, INT_MAX),
    ATTRIBUTE(maxCTAs, 64, 1, INT_MAX),
    ATTRIBUTE(splitShare, 0, 0, 1),
    ATTRIBUTE(trafficClass, NCCL_CONFIG_UNDEF_INT, 0, INT_MAX),
    ATTRIBUTE(collnetEnable, 0, 0, 1),
    ATTRIBUTE(CTAPolicy, NCCL_CTA_POLICY_DEFAULT, NCCL_CTA_POLICY_DEFAULT,
              NCCL_CTA_POLICY_EFFICIENCY | NCCL_CTA_POLICY_ZERO),
    ATTRIBUTE(shrinkShare, 0, 0, 1),
    ATTRIBUTE(nvlsCTAs, NCCL_CONFIG_UNDEF_INT, 1, INT_MAX),
    ATTRIBUTE(nChannelsPerNetPeer, NCCL_CONFIG_UNDEF_INT, 1, INT_MAX),
    ATTRIBUTE(nvlinkCentricSched, 0, 0, 1),
};

static int *value_of(ncclConfig_t *config, size_t attribute)
{
    return (int *)((char *)config + attributes[attribute].offset);
}

static ncclResult_t check_config(ncclConfig_t *config)
{
    for (size_t i = 0; i < sizeof(attributes) / sizeof(*attributes); i++) {
        int *value = value_of(config, i);

        if (*value == NCCL_CONFIG_UNDEF_INT)
            *value = attributes[i].standard;
        else if (*value < attributes[i].lowest || *value > attributes[i].highest)
            return fail(ncclInvalidArgument, "Invalid config %s attribute value %d",
                        attributes[i].name, *value);
    }
    if (config->minCTAs > config->maxCTAs)
        return fail(ncclInvalidArgument, "Invalid config min/max channels attribute value %d/%d",
                    config->minCTAs, config->maxCTAs);
    return ncclSuccess;
}

ncclResult_t config_resolve(const ncclConfig_t *given, const ncclConfig_t *inherited,
                            ncclConfig_t *config)
{
    static const ncclConfig_t nothing = NCCL_CONFIG_INITIALIZER;
    const char *blocking = getenv("NCCL_COMM_BLOCKING");

    *config = !given && inherited ? *inherited : nothing;
    if (given) {
        if (given->magic != nothing.magic)
            return fail(ncclInvalidArgument,
                        "ncclConfig_t argument not initialized via NCCL_CONFIG_INITIALIZER");
        if (given->size < offsetof(ncclConfig_t, blocking))
            return fail(ncclInvalidArgument, "ncclConfig_t argument has an impossible size %zu",
                        given->size);
        /* An older program's is shorter; what it does not have is undefined. */
        memcpy(config, given, given->size < sizeof(*config) ? given->size : sizeof(*config));
        config->size = sizeof(*config);
    }
    if (blocking && (!strcmp(blocking, "0") || !strcmp(blocking, "1")))
        config->blocking = *blocking - '0';
    return check_config(config);
}
