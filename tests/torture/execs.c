/* execs.c: becomes itself N times, one exec after the other; each of the programs calls NCCL.
 *
 *     torture_execs N */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <nccl.h>

int main(int argc, char **argv)
{
    ncclUniqueId id;
    char left[16];
    int count = argc == 2 ? atoi(argv[1]) : 0;
    if (ncclGetUniqueId(&id) != ncclSuccess)
        return 9;
    if (count <= 0)
        return puts("done") < 0;
    snprintf(left, sizeof left, "%d", count - 1);
    execl(argv[0], argv[0], left, (char *)NULL);
    return 8;
}
