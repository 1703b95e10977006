/* act_json.h: what the ranks of a finding did, as JSON. */
#ifndef DDPCHECK_REPORT_ACT_JSON_H
#define DDPCHECK_REPORT_ACT_JSON_H

#include <jansson.h>

#include "lib/finding/act.h"

/* {"did": "exited", "call": null, "status": 1, ...}; a new reference, NULL if memory is short. */
json_t *json_of_act(const struct act *act);

#endif
