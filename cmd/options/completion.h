/* completion.h: what is made of all option tables together (option_table.h). */
#ifndef DDPCHECK_COMPLETION_H
#define DDPCHECK_COMPLETION_H

/* Prints ddpcheck(1), the page that lists the commands, to stdout. Those of the commands: COMMAND
 * --option-table=man. */
void completion_print_manual(void);

#endif
