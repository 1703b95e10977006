/* environment.h: the environment of a program that may have cleared it. */
#ifndef DDPCHECK_ENVIRONMENT_H
#define DDPCHECK_ENVIRONMENT_H

/* Remembers the environment that the process began with: its first 1,024 variables. */
void environment_remember(char **environment);
/* The value of a variable now, or NULL. If the program has cleared its environment, the value that
 * the variable had when the process began, so that the records still go where the user wants them.
 */
const char *environment_get(const char *name);
/* The value that the variable had when the process began, or NULL. */
const char *environment_first(const char *name);
/* The variables, "NAME=VALUE", that the process began with, ended by NULL. */
char **environment_first_all(void);

#endif
