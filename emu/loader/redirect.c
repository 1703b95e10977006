/* redirect.c: an audit library of ld.so (rtld-audit(7)) that loads the emulated library in the
 * place of each one of the same file name.
 *
 * Wheels and modules name the folders of their CUDA libraries themselves (RPATH, or dlopen of an
 * absolute path), and ld.so searches those before LD_LIBRARY_PATH. It asks audit libraries first.
 * This one lies beside the emulated libraries. It runs in every process of the job, in a namespace
 * with a libc of its own, so it depends on nothing else and keeps no state but its folder. */
#include <dlfcn.h>
#include <link.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[PATH_MAX]; /* with the slash behind it; "" while it is unknown */

static void find_folder(void)
{
    Dl_info self;
    char *slash;

    if (!dladdr(folder, &self) || !self.dli_fname || !realpath(self.dli_fname, folder))
        return;
    slash = strrchr(folder, '/');
    slash[1] = 0;
}

unsigned la_version(unsigned version);
unsigned la_version(unsigned version)
{
    find_folder();
    return version < LAV_CURRENT ? version : LAV_CURRENT;
}

/* ld.so holds its load lock from here until it has copied the result, so one buffer is enough. */
char *la_objsearch(const char *name, uintptr_t *cookie, unsigned flag);
char *la_objsearch(const char *name, uintptr_t *cookie, unsigned flag)
{
    static char replaced[PATH_MAX];
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;

    (void)cookie;
    if (flag != LA_SER_ORIG || !folder[0] || strncmp(base, "lib", 3) || !strstr(base, ".so"))
        return (char *)name;
    if (snprintf(replaced, sizeof replaced, "%s%s", folder, base) >= (int)sizeof replaced ||
        access(replaced, F_OK))
        return (char *)name;
    return replaced;
}
