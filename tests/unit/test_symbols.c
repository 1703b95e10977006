/* Names for addresses of this very program. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/trace/symbols.h"
#include "tests/unit/inlined.h"

extern const char __executable_start[];

__attribute__((noinline)) static void *here(void)
{
    return __builtin_return_address(0);
}

static struct symbols_module this_program(char *path, size_t bytes)
{
    ssize_t length = readlink("/proc/self/exe", path, bytes - 1);
    assert_true(length > 0);
    path[length] = 0;
    return (struct symbols_module){.path = path, .base = (uint64_t)(uintptr_t)__executable_start};
}

static void a_return_address_has_function_file_and_line(void **state)
{
    (void)state;
    char path[4096];
    struct symbols_module module = this_program(path, sizeof path);
    struct symbols *symbols = symbols_new();
    struct frame frame;
    void *address = here();
    int line = __LINE__ - 1;
    symbols_find(symbols, &module, (uint64_t)(uintptr_t)address, &frame, 1);
    if (!frame.function[0]) { /* built without libdw */
        assert_non_null(strstr(frame.module, "+0x"));
    } else {
        assert_string_equal(frame.function, "a_return_address_has_function_file_and_line");
        assert_string_equal(frame.module, path);
        if (!strstr(frame.file, "tests/unit/test_symbols.c"))
            fail_msg("the file is \"%s\"", frame.file);
        assert_int_equal(frame.line, line);
    }
    symbols_free(symbols);
}

static int line_of_call; /* of here(), by what calls it */

static inline __attribute__((always_inline)) void *inlined(void)
{
    void *address = here();
    line_of_call = __LINE__ - 1;
    return address;
}

static inline __attribute__((always_inline)) void *inlined_twice(void)
{
    return inlined();
}

static inline __attribute__((always_inline)) void *inlined_with_header(void)
{
    void *address = call_from_header(here);
    line_of_call = __LINE__ - 1;
    return address;
}

static __attribute__((noinline)) void *outer(void)
{
    return inlined_twice();
}

static __attribute__((noinline)) void *outer_of_header(void)
{
    return inlined_with_header();
}

static __attribute__((noinline)) void *only_header(void)
{
    void *address = call_from_header(here);
    line_of_call = __LINE__ - 1;
    return address;
}

/* Innermost first, without what headers do before the first source, each with the line of its own
 * call. */
static void what_is_inlined_has_a_frame_for_each_function(void **state)
{
    (void)state;
    static const struct {
        void *(*call)(void);
        const char *functions[3];
        int count;
    } cases[] = {{outer, {"inlined", "inlined_twice", "outer"}, 3},
                 {outer_of_header, {"inlined_with_header", "outer_of_header"}, 2},
                 {only_header, {"only_header"}, 1}};
    char path[4096];
    struct symbols_module module = this_program(path, sizeof path);
    struct symbols *symbols = symbols_new();
    struct frame frame[4];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t address = (uint64_t)(uintptr_t)cases[i].call();
        int count = symbols_find(symbols, &module, address, frame, 4);
        if (!frame->function[0]) /* built without libdw */
            continue;
        assert_int_equal(count, cases[i].count);
        assert_int_equal(frame->line, line_of_call);
        for (int at = 0; at < count; at++) {
            assert_string_equal(frame[at].function, cases[i].functions[at]);
            assert_string_equal(frame[at].module, path);
            assert_non_null(strstr(frame[at].file, "test_symbols.c"));
            assert_int_equal(frame[at].address, address);
            assert_true(at == 0 || frame[at].line != frame[at - 1].line);
        }
    }
    symbols_free(symbols);
}

/* Where there is no room the functions between go. */
static void of_many_inlined_the_first_and_the_last_are_kept(void **state)
{
    (void)state;
    char path[4096];
    struct symbols_module module = this_program(path, sizeof path);
    struct symbols *symbols = symbols_new();
    struct frame frame[2];
    uint64_t address = (uint64_t)(uintptr_t)outer();
    int count = symbols_find(symbols, &module, address, frame, 2);
    if (frame->function[0]) {
        assert_int_equal(count, 2);
        assert_string_equal(frame[0].function, "inlined");
        assert_string_equal(frame[1].function, "outer");
        assert_int_equal(symbols_find(symbols, &module, address, frame, 1), 1);
        assert_string_equal(frame[0].function, "inlined");
    }
    symbols_free(symbols);
}

static void another_build_is_not_used(void **state)
{
    (void)state;
    char path[4096];
    uint8_t build_id[20];
    struct symbols_module module = this_program(path, sizeof path);
    assert_int_equal(
        build_id_parse("00112233445566778899aabbccddeeff00112233", build_id, sizeof build_id), 20);
    assert_int_equal(build_id_parse("xy", build_id, sizeof build_id), 0);
    build_id_parse("00112233445566778899aabbccddeeff00112233", build_id, sizeof build_id);
    module.build_id = build_id;
    module.build_id_bytes = 20;
    struct symbols *symbols = symbols_new();
    struct frame frame;
    symbols_find(symbols, &module, module.base + 0x1234, &frame, 1);
    assert_string_equal(frame.function, "");
    assert_non_null(strstr(frame.module, "+0x1234"));
    module = (struct symbols_module){.path = "/no/such/library.so", .base = 0x1000};
    symbols_find(symbols, &module, 0x3000, &frame, 1);
    assert_string_equal(frame.function, "");
    assert_non_null(strstr(frame.module, "/no/such/library.so+0x2000"));
    symbols_free(symbols);
}

/* Also where its debug file is installed: to read it takes longer than all other work. */
static void the_c_library_has_functions_but_no_lines(void **state)
{
    (void)state;
    Dl_info info;
    struct frame frame[ADDRESS_FRAMES_MAX];
    assert_true(dladdr((void *)(uintptr_t)qsort, &info));
    const struct symbols_module module = {.path = info.dli_fname,
                                          .base = (uint64_t)(uintptr_t)info.dli_fbase};
    struct symbols *symbols = symbols_new();
    int count = symbols_find(symbols, &module, (uint64_t)(uintptr_t)info.dli_saddr + 2, frame,
                             ADDRESS_FRAMES_MAX);
    assert_int_equal(count, 1);
    if (strstr(frame->module, "+0x") == NULL) /* else built without libdw */
        assert_non_null(strstr(frame->function, "qsort"));
    assert_string_equal(frame->file, "");
    assert_int_equal(frame->line, 0);
    symbols_free(symbols);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_return_address_has_function_file_and_line),
        cmocka_unit_test(what_is_inlined_has_a_frame_for_each_function),
        cmocka_unit_test(of_many_inlined_the_first_and_the_last_are_kept),
        cmocka_unit_test(another_build_is_not_used),
        cmocka_unit_test(the_c_library_has_functions_but_no_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
