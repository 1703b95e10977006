# For which GPUs the kernels are built: CMAKE_CUDA_ARCHITECTURES, unless the user has set it.
#
# ddpcheck_read_driver(OUT): what cmake/driver.c prints, as a list: "13000;90;86", or empty without a driver.
# ddpcheck_choose_architectures(DRIVER TOOLKIT CODES OUT PROBLEM): DRIVER is that list, TOOLKIT nvcc's version (13.0), CODES
#   what `nvcc --list-gpu-code` prints, as a list. OUT is the architectures; PROBLEM what is said where they do not help.
include_guard()

function(ddpcheck_read_driver out)
  set(${out} "" PARENT_SCOPE)
  if(CMAKE_CROSSCOMPILING)
    return()
  endif()
  try_run(status compiled SOURCES ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/driver.c LINK_LIBRARIES ${CMAKE_DL_LIBS} RUN_OUTPUT_VARIABLE printed)
  if(compiled AND status EQUAL 0)
    string(STRIP "${printed}" printed)
    string(REPLACE " " ";" printed "${printed}")
    set(${out} "${printed}" PARENT_SCOPE)
  endif()
endfunction()

function(ddpcheck_choose_architectures driver toolkit codes out problem)
  set(chosen 75-virtual 80-virtual 90-real)     # from 80 on tensor cores know tf32 and bf16
  set(trouble)
  list(POP_FRONT driver version)
  list(REMOVE_DUPLICATES driver)
  string(REGEX REPLACE "^([0-9]+)[.]([0-9]+).*" "\\1" major "${toolkit}")
  string(REGEX REPLACE "^([0-9]+)[.]([0-9]+).*" "\\2" minor "${toolkit}")
  math(EXPR built "${major} * 1000 + ${minor} * 10")
  foreach(device IN LISTS driver)
    ddpcheck_name_architectures(${device} name)
    if("sm_${device}" IN_LIST codes)
      list(APPEND chosen ${device}-real)        # its driver compiles nothing then
    elseif(device LESS 75)
      string(APPEND trouble "nvcc ${toolkit} makes nothing for a GPU of compute capability ${name}; an older toolkit does. ")
    elseif(version LESS built)
      string(APPEND trouble "nvcc ${toolkit} does not know GPUs of compute capability ${name}, and its PTX is too new for the driver. ")
    endif()
  endforeach()
  math(EXPR version_major "0${version} / 1000")
  if(version AND version_major LESS major)
    math(EXPR version_minor "${version} % 1000 / 10")
    string(APPEND trouble "the driver takes CUDA up to ${version_major}.${version_minor}, and loads nothing that nvcc ${toolkit} makes: "
      "install a newer driver, or set CUDA_HOME to a toolkit of CUDA ${version_major}. ")
  endif()
  list(REMOVE_DUPLICATES chosen)
  set(${out} ${chosen} PARENT_SCOPE)
  string(STRIP "${trouble}" trouble)
  set(${problem} "${trouble}" PARENT_SCOPE)
endfunction()

# "75-virtual 80-virtual 90-real" for people: "7.5 (PTX), 8.0 (PTX), 9.0".
function(ddpcheck_name_architectures architectures out)
  set(names)
  foreach(architecture IN LISTS architectures)
    string(REGEX REPLACE "^([0-9]+)([0-9])([af]?)(-.*)?$" "\\1.\\2\\3" name ${architecture})
    if(architecture MATCHES "-virtual$")
      string(APPEND name " (PTX)")
    endif()
    list(APPEND names ${name})
  endforeach()
  list(JOIN names ", " names)
  set(${out} "${names}" PARENT_SCOPE)
endfunction()
