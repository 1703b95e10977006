/* process_groups.c: the names and descriptions of PyTorch's process groups. See process_groups.h.
 */
#include "interpose/calls/process_groups.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "interpose/real/resolve.h"
#include "interpose/ring/attach.h"
#include "interpose/ring/emit.h"

enum { GROUPS_MAX = 64 };

/* As libstdc++ lays out std::string. */
struct cxx_string {
    const char *text;
    size_t bytes;
};
typedef void set_function(void *group, const struct cxx_string *text);

#define SET_NAME \
    "_ZN4c10d12ProcessGroup12setGroupNameERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
#define SET_TITLE \
    "_ZN4c10d12ProcessGroup12setGroupDescERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
EXPORT void process_group_set_name(void *group, const struct cxx_string *text) __asm__(SET_NAME);
EXPORT void process_group_set_title(void *group, const struct cxx_string *text) __asm__(SET_TITLE);

/* The newest groups. */
static struct {
    atomic_flag is_used; /* guards what follows */
    struct process_group {
        const void *object;
        uint64_t comm; /* 0: none yet */
        char name[GROUP_NAME_BYTES], title[GROUP_TITLE_BYTES];
    } group[GROUPS_MAX];
    uint32_t next; /* is replaced */
} groups = {.is_used = ATOMIC_FLAG_INIT};

static void groups_lock(void)
{
    while (atomic_flag_test_and_set(&groups.is_used)) {}
}

static void groups_unlock(void)
{
    atomic_flag_clear(&groups.is_used);
}

/* That of this name; else a new one, in the place of the oldest. */
static struct process_group *group_of_name(const char *name, size_t bytes)
{
    for (uint32_t i = 0; i < GROUPS_MAX; i++)
        if (strlen(groups.group[i].name) == bytes && !memcmp(groups.group[i].name, name, bytes))
            return &groups.group[i];
    struct process_group *group = &groups.group[groups.next++ % GROUPS_MAX];
    *group = (struct process_group){0};
    memcpy(group->name, name, bytes);
    return group;
}

bool process_groups_created(uint64_t comm, const char *name, uint32_t bytes,
                            char title[GROUP_TITLE_BYTES])
{
    *title = '\0';
    if (!bytes || bytes >= GROUP_NAME_BYTES)
        return false;
    groups_lock();
    struct process_group *group = group_of_name(name, bytes);
    group->comm = comm;
    memcpy(title, group->title, GROUP_TITLE_BYTES);
    groups_unlock();
    return *title;
}

/* The function of the library that the caller uses: its symbols are not global. */
static set_function *real_function(const void *caller, const char *name)
{
    resolve_dlsym_function *find = resolve_dlsym();
    Dl_info of_caller;
    set_function *real = NULL;
    if (!find || !dladdr(caller, &of_caller))
        return NULL;
    void *library = dlopen(of_caller.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (library) {
        *(void **)&real = find(library, name);
        dlclose(library);
    }
    return real;
}

void process_group_set_name(void *object, const struct cxx_string *text)
{
    set_function *real = real_function(__builtin_return_address(0), SET_NAME);
    if (text->bytes && text->bytes < GROUP_NAME_BYTES) {
        groups_lock();
        for (uint32_t i = 0; i < GROUPS_MAX; i++)
            if (groups.group[i].object == object)
                groups.group[i].object = NULL; /* of one that is gone */
        group_of_name(text->text, text->bytes)->object = object;
        groups_unlock();
    }
    if (real)
        real(object, text);
}

/* The communicator exists already, under the group's number. */
static void rename_communicator(uint64_t comm, const char *title, const void *frame)
{
    struct shim_thread *thread = &thread_self;
    if (thread_is_inside(thread, frame) || atomic_load(&shim.state) != SHIM_ACTIVE)
        return;
    thread_enter(thread, frame);
    int error = errno;
    if (thread->attached || attach_thread(thread)) {
        struct record record = {
            .range = {.text = emit_string(thread, title, strlen(title)), .id = comm}};
        emit_notice(thread, &record, API_notice_comm_name);
    }
    errno = error;
    thread->inside = 0;
}

void process_group_set_title(void *object, const struct cxx_string *text)
{
    static const char none[] = "undefined";
    set_function *real = real_function(__builtin_return_address(0), SET_TITLE);
    bool is_title = text->bytes &&
                    !(text->bytes == strlen(none) && !memcmp(text->text, none, strlen(none)));
    char title[GROUP_TITLE_BYTES] = "";
    uint64_t comm = 0;
    if (is_title)
        memcpy(title, text->text, text->bytes < sizeof title ? text->bytes : sizeof title - 1);
    groups_lock();
    for (uint32_t i = 0; i < GROUPS_MAX && object && is_title; i++)
        if (groups.group[i].object == object) {
            memcpy(groups.group[i].title, title, sizeof title);
            comm = groups.group[i].comm;
        }
    groups_unlock();
    if (comm)
        rename_communicator(comm, title, __builtin_frame_address(0));
    if (real)
        real(object, text);
}
