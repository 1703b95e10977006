# What makes a memory error harder to use, in everything that is shipped (tests/house/test_hardening.py): the compiler's
# part comes with ddpcheck_flags, the linker's with ddpcheck_harden(TARGET).
include(CheckCCompilerFlag)
include(CheckLinkerFlag)
include(CheckPIESupported)
check_pie_supported(LANGUAGES C)      # otherwise the compiler's default decides whether programs are linked with -pie
check_c_compiler_flag(-fstack-protector-strong DDPCHECK_HAVE_STACK_PROTECTOR)
check_c_compiler_flag(-fcf-protection DDPCHECK_HAVE_CF_PROTECTION)      # x86 alone
check_linker_flag(C -Wl,-z,shstk DDPCHECK_HAVE_SHSTK)

add_library(ddpcheck_hardened INTERFACE)
if(DDPCHECK_HAVE_STACK_PROTECTOR)
  target_compile_options(ddpcheck_hardened INTERFACE $<$<COMPILE_LANGUAGE:C>:-fstack-protector-strong>)
endif()
# CF_PROTECTION: the target's part of it where all of it costs too much.
if(DDPCHECK_HAVE_CF_PROTECTION)
  set(part $<TARGET_PROPERTY:CF_PROTECTION>)
  target_compile_options(ddpcheck_hardened INTERFACE
    "$<$<COMPILE_LANGUAGE:C>:-fcf-protection=$<IF:$<BOOL:${part}>,${part},full>>")
endif()
# FORTIFY needs an optimised build; sanitizers check the same calls themselves. -U: some distributions define it already.
# LOADED_BY_MUSL: the target is loaded into programs of musl as well, which has none of these functions.
if(NOT DDPCHECK_SANITIZE)
  set(optimised "$<AND:$<COMPILE_LANGUAGE:C>,$<CONFIG:RelWithDebInfo,Release,MinSizeRel>>")
  target_compile_options(ddpcheck_hardened INTERFACE "$<${optimised}:-U_FORTIFY_SOURCE>"
    "$<$<AND:${optimised},$<NOT:$<BOOL:$<TARGET_PROPERTY:LOADED_BY_MUSL>>>>:-D_FORTIFY_SOURCE=3>")
endif()

function(ddpcheck_harden target)
  target_link_options(${target} PRIVATE -Wl,-z,now,-z,relro)
endfunction()
