/* hazard_events.h: what gives the accesses of calls and operations to the hazards of a process. */
#ifndef DDPCHECK_HAZARD_EVENTS_H
#define DDPCHECK_HAZARD_EVENTS_H

struct analyzer;
struct event;

/* Handlers of check_write_in_flight, for all checks that judge conflicts (hazards.h). */
void hazards_on_operation(struct analyzer *analyzer, const struct event *event);
void hazards_on_setup(struct analyzer *analyzer, const struct event *event);
void hazards_on_launch(struct analyzer *analyzer, const struct event *event);
void hazards_on_call(struct analyzer *analyzer, const struct event *event);
void hazards_on_lost(struct analyzer *analyzer, const struct event *event);
void hazards_on_waits(struct analyzer *analyzer, const struct event *event);

#endif
