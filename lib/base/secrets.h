/* secrets.h: takes secrets out of what is recorded of a program: its arguments, and texts of its
 * errors. Traces, hubs and pages made for tickets have none then. Needs libc alone: the shim is
 * built from it, too.
 *
 * A secret is the value of a name that ends in token, secret, password, passphrase, credential,
 * auth or key (API_KEY=..., --hub-token ..., {"password": "..."}), what follows "Authorization:" or
 * "Bearer", what stands before '@' in a URL, and a word that has the form of a known service's
 * token (hf_..., sk-..., AKIA..., a JWT). It becomes "***". Names of files are no secrets
 * (--token-file), nor are numbers of tokens (token: 50257). */
#ifndef DDPCHECK_SECRETS_H
#define DDPCHECK_SECRETS_H

#include <stddef.h>

/* Masks the secrets in `text`, whose arguments end with 0 bytes if it is a command line: an
 * argument is one value then, whatever it contains. Returns the bytes that remain; the text is not
 * ended by a 0 byte unless it was. Masking again changes nothing. */
size_t secrets_mask(char *text, size_t bytes);

/* Makes the text of a process's command line from the `bytes` of /proc/PID/cmdline in `text`, which
 * has room for one more: masks, and separates the arguments by spaces. */
void secrets_mask_command(char *text, size_t bytes);

#endif
