/* child_polls.h: sees that the process asks again and again whether any child has ended. */
#ifndef DDPCHECK_CHILD_POLLS_H
#define DDPCHECK_CHILD_POLLS_H

/* Finds the C library's functions. While the process is loaded: later a signal handler may wait. */
void child_polls_find(void);

#endif
