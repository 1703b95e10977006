/* library_version.h: which version of PyTorch the process has (notice_library). */
#ifndef DDPCHECK_LIBRARY_VERSION_H
#define DDPCHECK_LIBRARY_VERSION_H

#include "interpose/shim/thread.h"

/* If `path`, of `bytes` without the 0 behind it (library_name_bytes), is PyTorch's own library,
 * emits the version that is written in torch/version.py beside it. */
void library_version_record(struct shim_thread *thread, const char *path, size_t bytes);

#endif
