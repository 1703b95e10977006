/* loader.c: the ways in which programs come by NCCL. loader WAY FOLDER-OF-ITS-LIBRARIES
 *
 *     local, deepbind, namespace      dlopen (RTLD_LOCAL, RTLD_DEEPBIND), dlmopen of a library that
 *                                     is linked with NCCL
 *     handle                          dlopen of libnccl.so.2, dlsym of its functions
 *     named                           the same of the library that VLLM_NCCL_SO_PATH names, after
 *                                     something else (PyTorch) has loaded libnccl.so.2
 *     stubs                           dlopen of a library with stubs of NCCL's names */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/loaders/body.h"

static void *load(void *library)
{
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(8);
    }
    return library;
}

static void *find(void *library, const char *name)
{
    return load(dlsym(library, name));
}

static int by_handle(void *library)
{
    struct nccl nccl;
    *(void **)&nccl.init_all = find(library, "ncclCommInitAll");
    *(void **)&nccl.all_reduce = find(library, "ncclAllReduce");
    *(void **)&nccl.group_start = find(library, "ncclGroupStart");
    *(void **)&nccl.group_end = find(library, "ncclGroupEnd");
    *(void **)&nccl.destroy = find(library, "ncclCommDestroy");
    return loader_body(&nccl);
}

int main(int argc, char **argv)
{
    char linked[4096], stubs[4096];
    int (*work)(void) = NULL, line;
    if (argc != 3)
        return 2;
    const char *way = argv[1], *name = getenv("VLLM_NCCL_SO_PATH");
    snprintf(linked, sizeof linked, "%s/libloaders_linked.so", argv[2]);
    snprintf(stubs, sizeof stubs, "%s/libloaders_stubs.so", argv[2]);
    if (!strcmp(way, "local"))
        *(void **)&work = find(load(dlopen(linked, RTLD_NOW | RTLD_LOCAL)), "linked_work");
    else if (!strcmp(way, "deepbind"))
        *(void **)&work =
            find(load(dlopen(linked, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND)), "linked_work");
    else if (!strcmp(way, "namespace"))
        *(void **)&work = find(load(dlmopen(LM_ID_NEWLM, linked, RTLD_NOW)), "linked_work");
    else if (!strcmp(way, "stubs"))
        *(void **)&work = find(load(dlopen(stubs, RTLD_NOW)), "stubs_work");
    if (work) {
        line = work();
        line = line ? line : work();
    } else {
        load(dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL));
        void *library = load(
            dlopen(!strcmp(way, "named") && name ? name : "libnccl.so.2", RTLD_NOW | RTLD_LOCAL));
        line = by_handle(library);
        line = line ? line : by_handle(library);
    }
    if (line)
        fprintf(stderr, "line %d\n", line);
    else
        puts("ok");
    return line ? 9 : 0;
}
