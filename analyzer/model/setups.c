/* setups.c: the rows of setups.def, as the analyzer reads them. */
#include "analyzer/model/setups.h"

const struct setup_row setup_rows[WAIT_KINDS] = {
    [WAIT_COLLECTIVE] = {.awaited = AWAITED_OPERATION},
    [WAIT_PEER] = {.awaited = AWAITED_OPERATION},
#define SETUP(kind, key, noun, call, comers, counter, code, todo) \
    [WAIT_##kind] = {AWAITED_##kind, API_##call, COMERS_##comers, WAIT_##counter, code, todo},
#include "lib/finding/setups.def"
#undef SETUP
};

enum wait_kind setup_of_api(unsigned api)
{
    enum wait_kind kind = WAIT_COLLECTIVE;
    while (kind < WAIT_KINDS && (kind_is_operation(kind) || setup_rows[kind].call != api))
        kind++;
    return kind;
}
