/* import_run.h: an import as commands make it: its messages on stderr, its progress on a terminal.
 */
#ifndef DDPCHECK_IMPORT_RUN_H
#define DDPCHECK_IMPORT_RUN_H

#include "cmd/import_judge.h"
#include "lib/import/import.h"

/* Imports files and directories into a new database at `output` (import_files). source: NULL: each
 * file by its beginning. verdict: gets what was found, which is stored as well. Returns 0, or -1
 * with err, after which there is no database. */
int import_run(const char *const *paths, int count, const char *output,
               const struct import_source *source, bool has_progress, struct import_result *result,
               struct import_verdict *verdict, struct error *err);

#endif
