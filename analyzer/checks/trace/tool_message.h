/* tool_message.h: what the checks of messages (notice_said) share. */
#ifndef DDPCHECK_TOOL_MESSAGE_H
#define DDPCHECK_TOOL_MESSAGE_H

#include "analyzer/engine.h"

/* Keeps the process's first message until the end; reports those kept that nothing explains. */
void message_keep(struct analyzer *analyzer, const struct check *check, const struct event *event);
void message_report_kept(struct analyzer *analyzer, const struct check *check);

#endif
