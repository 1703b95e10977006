/* event.c: gives an event to the checks that want events of its kind. */
#include "analyzer/engine.h"

void event_handle(struct analyzer *analyzer, const struct event *event)
{
    for (event_handler **handle = analyzer->handlers[event->kind]; *handle; handle++)
        (*handle)(analyzer, event);
}
