/* hub_token.h: the secret without which a hub accepts nobody. */
#ifndef DDPCHECK_HUB_TOKEN_H
#define DDPCHECK_HUB_TOKEN_H

#include "cmd/hub/hub_server.h"

/* Finds the server's token (token_file, the environment, DIR/token, in this order) or makes one of
 * 128 random bits in DIR/token. Returns 0, or -1 with err. */
int hub_token_find(struct hub_server *server, struct error *err);
/* The same for the token of readers (DIR/reader-token), and makes the hub's password. */
int hub_token_make_others(struct hub_server *server, struct error *err);

/* Reads the token of a file that the user names; NULL: draws one of 128 random bits. Returns 0, or
 * -1 with err: others can read the file, ... */
int hub_token_of_file(const char *path, char token[HUB_TOKEN_BYTES], struct error *err);

/* Writes a file that only its user can read (0600), whole or not at all; what had the name before
 * is replaced. Returns 0, or -1 with err. */
int hub_write_private(const char *path, const char *text, struct error *err);

#endif
