# libddpcheck-trace: lib/trace's reading half for programs of others, with its headers and ddpcheck.pc. It uses the
# system's SQLite, as its users do for trace_database(); a portable build carries its own and leaves the library out.
if(DDPCHECK_SANITIZE OR DDPCHECK_PORTABLE)
  return()
endif()
add_library(ddpcheck_trace SHARED reader.c)
set_target_properties(ddpcheck_trace PROPERTIES OUTPUT_NAME ddpcheck-trace VERSION ${PROJECT_VERSION} SOVERSION 0
  LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/reader.map)
target_link_libraries(ddpcheck_trace PRIVATE ddpcheck_lib)
# One name of each object that is wanted; what these need comes with them.
target_link_options(ddpcheck_trace PRIVATE -Wl,-u,trace_open,-u,api_name,-u,site_frames,-u,record_text
  -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/reader.map -Wl,--as-needed)
ddpcheck_harden(ddpcheck_trace)

# Installed, the headers lie side by side in include/ddpcheck: "lib/trace/ring.h" becomes "ring.h".
set(headers ${CMAKE_CURRENT_BINARY_DIR}/include/ddpcheck)
foreach(header IN ITEMS base/error.h trace/apis.def trace/datatypes.def trace/kinds.def trace/kinds.h trace/names.h trace/record.h trace/ring.h trace/site.h trace/trace.h)
  set(source ${CMAKE_SOURCE_DIR}/lib/${header})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  file(READ ${source} text)
  string(REGEX REPLACE "#include \"lib/(base|trace)/" "#include \"" text "${text}")
  get_filename_component(name ${header} NAME)
  file(CONFIGURE OUTPUT ${headers}/${name} CONTENT "${text}" @ONLY)
endforeach()
# Relative to itself, so that an installed tree can be moved.
file(RELATIVE_PATH DDPCHECK_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" DDPCHECK_PC_PREFIX ${DDPCHECK_PC_PREFIX})
configure_file(ddpcheck.pc.in ${CMAKE_CURRENT_BINARY_DIR}/ddpcheck.pc @ONLY)

install(TARGETS ddpcheck_trace LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT reader NAMELINK_COMPONENT dev)
install(DIRECTORY ${headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/ddpcheck.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
