/* python_exit.c: takes the stack of the calls of sys.exit(). See python_exit.h. */
#include "interpose/stacks/python_exit.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "interpose/real/resolve.h"
#include "interpose/stacks/exceptions.h"
#include "interpose/stacks/stacks.h"

enum {
    TAKES_TUPLE = 0x0001,  /* METH_VARARGS */
    TAKES_ARRAY = 0x0080,  /* METH_FASTCALL */
    CALL_FLAGS = 0x028f,   /* all that say how it is called: METH_KEYWORDS, METH_METHOD */
    TYPE_FLAGS = 168,      /* in a type object */
    TYPE_IS_INT = 1 << 24, /* Py_TPFLAGS_LONG_SUBCLASS */
    STATUS_OF_TEXT = 1,    /* sys.exit("message") */
    STATUS_MASK = 0xff
};

typedef void *exit_function(void *module, void *arguments, intptr_t count);

/* As methodobject.h has them, in builds with a GIL. */
struct definition {
    const char *name;
    exit_function *function;
    int flags;
    const char *text;
};
struct function_object {
    intptr_t references;
    const unsigned char *type;
    struct definition *definition;
};

static struct {
    struct definition definition; /* ours */
    exit_function *real;
    void *none;
    void *(*tuple_item)(void *tuple, intptr_t index);
    intptr_t (*tuple_size)(void *tuple);
    long (*int_value)(void *object);
    void (*clear_error)(void);
    _Atomic uint64_t stack; /* 0: no exit is under way */
    _Atomic int status;
    struct handled_exception handled; /* then; the main thread's */
} python_exit;

static bool is_main_thread(void)
{
    return syscall(SYS_gettid) == getpid();
}

static void *argument_of(void *arguments, intptr_t count)
{
    if (python_exit.definition.flags & TAKES_ARRAY)
        return count > 0 ? *(void **)arguments : NULL;
    return python_exit.tuple_size(arguments) > 0 ? python_exit.tuple_item(arguments, 0) : NULL;
}

static int status_of(const struct function_object *object)
{
    uint64_t flags;
    if (!object || object == python_exit.none)
        return 0;
    memcpy(&flags, object->type + TYPE_FLAGS, sizeof flags);
    if (!(flags & TYPE_IS_INT))
        return STATUS_OF_TEXT;
    long value = python_exit.int_value((void *)object);
    if (value == -1)
        python_exit.clear_error(); /* it may be too large */
    return (int)(value & STATUS_MASK);
}

/* A rank without a call of NCCL so far counts if it fails. An exception that is being handled is
 * why the program exits, if it does: SystemExit may be caught. */
static void record_exit(int status, const void *site, const void *frame)
{
    struct shim_thread *thread = &thread_self;
    bool is_recorded = status || atomic_load(&shim.state) == SHIM_ACTIVE;
    if (!is_recorded || thread_is_inside(thread, frame) || !is_main_thread())
        return;
    thread_enter(thread, frame);
    int error = errno;
    if (exceptions_attach(thread)) {
        exceptions_keep_handled(thread, &python_exit.handled);
        atomic_store(&python_exit.stack, stacks_take(thread, site, frame, STACK_WHOLE));
        atomic_store(&python_exit.status, status);
    }
    errno = error;
    thread->inside = 0;
}

static void *exit_called(void *module, void *arguments, intptr_t count)
{
    record_exit(status_of(argument_of(arguments, count)), __builtin_return_address(0),
                __builtin_frame_address(0));
    return python_exit.real(module, arguments, count);
}

static bool find_exit_functions(resolve_dlsym_function *find)
{
    python_exit.none = find(RTLD_DEFAULT, "_Py_NoneStruct");
    *(void **)&python_exit.tuple_item = find(RTLD_DEFAULT, "PyTuple_GetItem");
    *(void **)&python_exit.tuple_size = find(RTLD_DEFAULT, "PyTuple_Size");
    *(void **)&python_exit.int_value = find(RTLD_DEFAULT, "PyLong_AsLong");
    *(void **)&python_exit.clear_error = find(RTLD_DEFAULT, "PyErr_Clear");
    return python_exit.none && python_exit.tuple_item && python_exit.tuple_size &&
           python_exit.int_value && python_exit.clear_error;
}

void python_exit_watch(void)
{
    resolve_dlsym_function *find = resolve_dlsym();
    struct function_object *(*get)(const char *name) = NULL;
    exit_function *(*function_of)(void *object) = NULL;
    if (python_exit.real || !find || !find_exit_functions(find))
        return;
    *(void **)&get = find(RTLD_DEFAULT, "PySys_GetObject");
    *(void **)&function_of = find(RTLD_DEFAULT, "PyCFunction_GetFunction");
    const void *type = find(RTLD_DEFAULT, "PyCFunction_Type");
    struct function_object *object = get && function_of && type ? get("exit") : NULL;
    if (!object || object->type != type)
        return; /* the program's own, or another layout */
    exit_function *real = function_of(object);
    const struct definition *definition = object->definition;
    int takes = definition->flags & CALL_FLAGS;
    bool is_known = real && definition->function == real && !strcmp(definition->name, "exit") &&
                    (takes == TAKES_TUPLE || takes == TAKES_ARRAY);
    if (!is_known)
        return;
    python_exit.definition = *definition;
    python_exit.definition.function = exit_called;
    python_exit.real = real;
    object->definition = &python_exit.definition;
}

uint64_t python_exit_stack(int status)
{
    uint64_t stack = atomic_load(&python_exit.stack);
    return stack && atomic_load(&python_exit.status) == (status & STATUS_MASK) ? stack : 0;
}

void python_exit_record(struct shim_thread *thread, int status)
{
    if (python_exit_stack(status) && is_main_thread())
        exceptions_record_kept(thread, &python_exit.handled);
}

void python_exit_forget(void)
{
    if (atomic_load_explicit(&python_exit.stack, memory_order_relaxed) && is_main_thread())
        atomic_store(&python_exit.stack, 0);
}

void python_exit_forked(void)
{
    atomic_store(&python_exit.stack, 0);
}
