/* ras_client.h: asks the RAS of a running job how it stands, as ncclras does (NCCL's
 * src/ras/client.cc).
 *
 * Each process of a job (NCCL 2.24 and later) listens on localhost:28028 or NCCL_RAS_ADDR; one
 * answers for all. The protocol is lines of text, and the answer to STATUS goes on until the
 * connection ends. */
#ifndef DDPCHECK_IMPORT_RAS_CLIENT_H
#define DDPCHECK_IMPORT_RAS_CLIENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"

#define RAS_USUAL_ADDRESS "localhost:28028"

/* Asks once. is_text: NCCL before 2.28.7 answers in text, as `ncclras -v` prints it, and so is the
 * result then; NULL: that is an error. Gives up soon after *stop is true (NULL: never) and when
 * nothing comes for several seconds. Returns the answer, NUL-terminated, which the caller frees; or
 * NULL with err. */
char *ras_fetch(const char *address, const atomic_bool *stop, bool *is_text, size_t *bytes,
                struct error *err);
/* Asks for its diagnostics (`ncclras -D`, NCCL 2.31 and later), which compare GPUs, driver, links
 * and environment of all ranks: lines that log_diag.c reads. Otherwise as ras_fetch. */
char *ras_fetch_diagnostics(const char *address, const atomic_bool *stop, size_t *bytes,
                            struct error *err);

#endif
