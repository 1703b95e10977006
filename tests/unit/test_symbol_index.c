/* The index of functions gives the names that libdw gives, for this very program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#ifdef HAVE_LIBDW

#include <stdio.h>
#include <string.h>

#include "lib/trace/symbol_index.h"

static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = dwfl_build_id_find_debuginfo,
    .section_address = dwfl_offline_section_address,
};

enum { ADDRESSES = 30000 };

static int named, other, unknown;

/* Two names for one place are as good as each other; nothing else may differ. */
static void compare(Dwfl_Module *module, const struct symbol_index *index, GElf_Addr address)
{
    GElf_Sym symbol;
    GElf_Off offset;
    const char *name = dwfl_module_addrinfo(module, address, &offset, &symbol, NULL, NULL, NULL);
    const char *found = symbol_index_find(index, address);
    bool is_function = name && symbol.st_size && GELF_ST_TYPE(symbol.st_info) == STT_FUNC;
    if (is_function && found && strcmp(name, found) == 0)
        named++;
    else if (is_function && found)
        other++;
    else if (is_function != (found != NULL))
        unknown++;
}

static void the_index_agrees_with_libdw(void **state)
{
    (void)state;
    Dwfl *dwfl = dwfl_begin(&callbacks);
    Dwfl_Module *module = dwfl_report_offline(dwfl, "program", "/proc/self/exe", -1);
    dwfl_report_end(dwfl, NULL, NULL);
    assert_non_null(module);
    GElf_Addr begin, end;
    dwfl_module_info(module, NULL, &begin, &end, NULL, NULL, NULL, NULL);
    struct symbol_index *index = symbol_index_new(module);
    assert_non_null(index);
    /* libdw looks through all symbols for each address, and a sanitizer's runtime has many of both.
     */
    GElf_Addr step = (end - begin) / ADDRESSES + 1;
    for (GElf_Addr address = begin; address < end; address += step)
        compare(module, index, address);
    printf("%d addresses with libdw's name, %d with another, %d with one of the two\n", named,
           other, unknown);
    assert_true(named > ADDRESSES / 100);
    assert_int_equal(unknown, 0);
    assert_true(other <= named / 100);
    assert_null(symbol_index_find(index, begin - 1));
    assert_null(symbol_index_find(index, end + 4096));
    symbol_index_free(index);
    dwfl_end(dwfl);
}

#else

static void the_index_agrees_with_libdw(void **state)
{
    (void)state;
    skip();
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_index_agrees_with_libdw)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
