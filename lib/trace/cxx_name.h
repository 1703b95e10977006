/* cxx_name.h: the names of C++ functions as people wrote them. */
#ifndef DDPCHECK_CXX_NAME_H
#define DDPCHECK_CXX_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the symbol is a mangled name of C++ (Itanium C++ ABI, 5.1). */
bool cxx_name_is(const char *symbol);
/* Whether it is a function of the C++ library, which compilers put into programs: std::invoke. */
bool cxx_name_is_standard(const char *symbol);

/* The function that a symbol of C++ stands for, without its return type and parameters:
 * "net::Trainer<float>::step"; where it is long, "net::Trainer<...>::step". libstdc++'s
 * demangler does the work; it is loaded on first use, and without it, or for a symbol that it
 * refuses (one that was cut) or that would expand to more than 1 MB, template arguments are left
 * out. Other names are copied. May be called from any thread. Returns text. */
char *cxx_name(const char *symbol, char *text, size_t bytes);

/* The type of a name that std::type_info has, which is mangled and without "_Z":
 * "St13runtime_error" is "std::runtime_error". Other names are copied. May be called from any
 * thread. Returns text. */
char *cxx_name_of_type(const char *mangled, char *text, size_t bytes);

/* Where the last part of it begins: "step" of "net::Trainer<float>::step". */
const char *cxx_name_last(const char *name);

#endif
