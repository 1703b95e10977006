/* sql_rows.h: rows of a query as people or programs want them. Rows are written as they come; text
 * waits for a few, to know how wide its columns are. */
#ifndef DDPCHECK_SQL_ROWS_H
#define DDPCHECK_SQL_ROWS_H

#include <sqlite3.h>
#include <stdio.h>

enum sql_rows_format { SQL_ROWS_TEXT, SQL_ROWS_CSV, SQL_ROWS_JSON };

struct sql_rows;

/* Begins the output of a statement, which has not been stepped. NULL when memory is short. */
struct sql_rows *sql_rows_begin(enum sql_rows_format format, sqlite3_stmt *statement, FILE *out);
/* Takes the row on which the statement stands. Returns 0, or -1 when memory is short. */
int sql_rows_add(struct sql_rows *rows, sqlite3_stmt *statement);
/* Writes what is left and frees. NULL is allowed. */
void sql_rows_end(struct sql_rows *rows);

#endif
