/* path.h: paths as compilers leave them. */
#ifndef DDPCHECK_PATH_H
#define DDPCHECK_PATH_H

/* Takes "." and "x/.." out of the path, in place. Links are not followed: the file may be in
 * another directory. */
void path_normalize(char *path);

#endif
