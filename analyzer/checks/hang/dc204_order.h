/* dc204_order.h: DC204, two communicators whose operations come in different orders. */
#ifndef DDPCHECK_DC204_ORDER_H
#define DDPCHECK_DC204_ORDER_H

#include "analyzer/engine.h"

void crossings_free(struct analyzer *analyzer);

#endif
