/* json_values.h: what every JSON that ddpcheck prints has in common (docs/json.md). Each function
 * returns a new value, NULL when memory is short. */
#ifndef DDPCHECK_JSON_VALUES_H
#define DDPCHECK_JSON_VALUES_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/base/rankset.h"
#include "lib/finding/act.h"
#include "lib/trace/trace.h"

/* Names and paths come from the job and need not be UTF-8, JSON must be: other bytes become '?'. */
json_t *json_of_text(const char *text);
/* 64 bits as text, since many readers keep 53: "0x5ae77eb5ea4ec1ee". */
json_t *json_of_address(uint64_t value);
/* The frames of a stack, innermost first. */
json_t *json_of_frames(const struct frame *frame, int count);
json_t *json_of_count(uint64_t count);
/* "0-3,7". */
json_t *json_of_ranks(const struct rankset *ranks);

/* Prints one object on a line of its own, and releases it. Returns 0, or -1 if it is NULL or the
 * output failed. */
int json_print_line(json_t *object, FILE *out);

/* What the ranks of a finding did, as JSON. */

/* {"did": "exited", "call": null, "status": 1, ...}; a new reference, NULL if memory is short. */
json_t *json_of_act(const struct act *act);

#endif
