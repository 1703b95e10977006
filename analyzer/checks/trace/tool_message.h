/* tool_message.h: what the checks of messages (notice_said) share. */
#ifndef DDPCHECK_TOOL_MESSAGE_H
#define DDPCHECK_TOOL_MESSAGE_H

#include "analyzer/engine.h"

/* Reports what a process's source said: first line what, the rest what to do. */
void message_report(struct analyzer *analyzer, const struct check *check, struct process *process,
                    const struct record *record);
/* A mismatch or a hang that concerns the process is known. */
bool message_is_explained(const struct analyzer *analyzer, const struct process *process);
/* Keeps the process's first message until the end; reports those kept that nothing explains. */
void message_keep(struct analyzer *analyzer, const struct check *check, const struct event *event);
void message_report_kept(struct analyzer *analyzer, const struct check *check);

#endif
