/* own_path.h: whether a directory or file is this user's own, so that no other user can read,
 * replace or redirect what is written there. Needs libc alone: the shim is built from it, too.
 *
 * Accepted are directories and files of this user and of root. Where the file system says who
 * writes (a file server that maps root or everybody to one user, a mount without owners or modes),
 * a new file there shows it, and what has the same owner is accepted. A directory that is a mount's
 * root is accepted as it is: an administrator, or the container's configuration, has put it there.
 * The members of a directory's group are trusted: its owner gave them the right to write. */
#ifndef DDPCHECK_OWN_PATH_H
#define DDPCHECK_OWN_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum own_problem {
    OWN_GOOD,
    OWN_FAILED,  /* a system call failed; errno says why */
    OWN_LINK,    /* another user's link, or, for a file, any link or second name */
    OWN_KIND,    /* no directory, or no plain file */
    OWN_FOREIGN, /* another user's */
    OWN_OPEN     /* every user may replace what is in it */
};

enum { OWN_TEXT_BYTES = 256 };

struct own_path {
    enum own_problem problem;
    uid_t owner; /* of what was refused */
    int number;  /* errno of OWN_FAILED */
};

/* Checks an existing directory that files are written into. `path` has no '/' at its end: a link is
 * followed only if it is this user's or root's. Returns whether it is good; *own says what is
 * wrong. */
bool own_directory(const char *path, struct own_path *own);

/* Checks the open file `fd`, which lies in `directory`: a plain file with one name, of this user.
 * Returns and reports as above. */
bool own_file(int fd, const char *directory, struct own_path *own);

/* Checks a file that may be missing, before another program or library opens it by its name. Links
 * are not followed. Returns and reports as above; a missing file is good. */
bool own_file_named(const char *directory, const char *name, struct own_path *own);

/* Writes why `path` was refused, as a clause after "can't use ..: "; cut if it is too long. */
void own_explain(const struct own_path *own, char text[OWN_TEXT_BYTES]);

#endif
