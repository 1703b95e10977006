/* sql_views.h: the views and tables of a trace database, with what a row of each is. */
#ifndef DDPCHECK_SQL_VIEWS_H
#define DDPCHECK_SQL_VIEWS_H

#include <sqlite3.h>
#include <stdio.h>

#include "lib/base/error.h"

/* Lists the views, then the tables, each with a line and its columns. Returns 0, or -1 with err. */
int sql_views_print(sqlite3 *database, FILE *out, struct error *err);

#endif
