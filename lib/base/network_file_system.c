/* network_file_system.c: recognises file systems that several hosts share by their numbers. */
#include "lib/base/network_file_system.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/vfs.h>

/* linux/magic.h has some of them, for the others see statfs(2) and the file systems' sources. */
static const uint32_t shared_by_hosts[] = {
    0x6969,     /* NFS */
    0x517b,     /* SMB */
    0xff534d42, /* CIFS */
    0xfe534d42, /* SMB2 */
    0x0bd00bd0, /* Lustre */
    0x47504653, /* GPFS */
    0x19830326, /* BeeGFS */
    0x00c36400, /* Ceph */
    0x5346414f, /* AFS */
    0x6b414653, /* kAFS */
    0x01161970, /* GFS2 */
    0x7461636f, /* OCFS2 */
    0x01021997, /* 9P */
    0x564c,     /* NCP */
    0x73757245, /* Coda */
    0xaad7aaea, /* PanFS */
    0x65735546, /* FUSE: sshfs, JuiceFS, GlusterFS, ... */
};

bool network_file_system(const char *path)
{
    struct statfs status;
    if (statfs(path, &status) < 0)
        return false;
    for (size_t i = 0; i < sizeof shared_by_hosts / sizeof *shared_by_hosts; i++)
        if ((uint32_t)status.f_type == shared_by_hosts[i])
            return true;
    return false;
}
