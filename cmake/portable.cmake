# What runs on glibcs older than the one that it is built with: from DDPCHECK_GLIBC on.
#
# The shim always does: it is preloaded into programs of containers and hosts that nobody chose. With DDPCHECK_PORTABLE
# (preset release-portable) the tool and the emulator do as well, and the tool carries its libraries inside.
option(DDPCHECK_PORTABLE "Build what runs on other distributions; leaves out the tests, the trainer and the reader library" OFF)
set(DDPCHECK_GLIBC 2.28 CACHE STRING "The oldest glibc that what is built portably runs on")
set(DDPCHECK_GLIBC_STUBS ${CMAKE_BINARY_DIR}/glibc)

set(portable_source ${CMAKE_SOURCE_DIR}/packaging/portable)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${portable_source}/glibc_stubs.py ${portable_source}/compatible.c)
set(DDPCHECK_HAVE_GLIBC_STUBS FALSE)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64 AND DDPCHECK_PYTHON)
  execute_process(RESULT_VARIABLE failed ERROR_VARIABLE why COMMAND ${DDPCHECK_PYTHON} ${portable_source}/glibc_stubs.py
    --cc ${CMAKE_C_COMPILER} --baseline ${DDPCHECK_GLIBC} ${DDPCHECK_GLIBC_STUBS})
  if(failed)
    string(STRIP "${why}" why)
    message(STATUS "Not for other glibcs than this one: ${why}")
  else()
    set(DDPCHECK_HAVE_GLIBC_STUBS TRUE)
  endif()
endif()

function(ddpcheck_for_old_glibc target)
  if(DDPCHECK_HAVE_GLIBC_STUBS)
    target_link_options(${target} PRIVATE -L${DDPCHECK_GLIBC_STUBS})      # as a link directory it would come into the RUNPATH
  endif()
endfunction()

if(DDPCHECK_PORTABLE)
  if(NOT DDPCHECK_HAVE_GLIBC_STUBS)
    message(FATAL_ERROR "DDPCHECK_PORTABLE needs python3, glibc and x86-64: ${why}")
  endif()
  set(PKG_CONFIG_ARGN --static)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
  list(PREPEND CMAKE_LIBRARY_PATH ${DDPCHECK_GLIBC_STUBS})     # libm.a and the like there lead to the stubs
endif()
