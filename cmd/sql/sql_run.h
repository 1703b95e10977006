/* sql_run.h: runs statements on a trace database, which they can't change. */
#ifndef DDPCHECK_SQL_RUN_H
#define DDPCHECK_SQL_RUN_H

#include <sqlite3.h>
#include <stdio.h>

#include "cmd/sql/sql_rows.h"
#include "lib/base/error.h"

/* Lets the connection do nothing but read: no statement that writes, no file that is attached or
 * made. Returns 0, or -1 with err. */
int sql_only_read(sqlite3 *database, struct error *err);

/* Runs each statement of the text and writes its rows. Stops at the first that fails. Returns 0, or
 * -1 with err; rows that came before stay written. */
int sql_run(sqlite3 *database, const char *text, enum sql_rows_format format, FILE *out,
            struct error *err);

#endif
