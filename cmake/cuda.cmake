# Finds what of CUDA and NCCL is on this machine: CUDA_HOME, the usual folder, nvcc's folder, or the
# pip packages nvidia-cuda-runtime, nvidia-nccl-cu13, nvidia-cuda-cupti, nvidia-cuda-nvcc.
#
# Sets DDPCHECK_HAVE_CUDA_HEADERS (cuda_runtime_api.h, cuda.h, cupti.h, nccl.h), DDPCHECK_HAVE_NVCC (nvcc,
# libcudart and libnccl to link with) and makes the targets cuda_headers, cuda_runtime, nccl.

set(DDPCHECK_CUDA_ROOTS "$ENV{CUDA_HOME};$ENV{CUDA_PATH};${CUDAToolkit_ROOT};/usr/local/cuda" CACHE STRING
  "Folders to look for CUDA and NCCL in, before the pip packages; OFF: none")
set(cuda_roots ${DDPCHECK_CUDA_ROOTS})
find_program(DDPCHECK_PYTHON NAMES python3 HINTS ${CMAKE_SOURCE_DIR}/build/venv/bin)
if(DDPCHECK_PYTHON)
  execute_process(COMMAND ${DDPCHECK_PYTHON} -c
    "import sysconfig,glob;print(';'.join(g for p in ('purelib','platlib') for g in glob.glob(sysconfig.get_paths()[p]+'/nvidia/*')))"
    OUTPUT_VARIABLE cuda_pip_roots OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  list(REMOVE_DUPLICATES cuda_pip_roots)
  list(APPEND cuda_roots ${cuda_pip_roots})
endif()
if(DDPCHECK_CUDA_ROOTS STREQUAL "OFF")
  set(cuda_roots)
endif()

set(cuda_missing)
foreach(part IN ITEMS "cuda_runtime_api.h:CUDART" "cuda.h:DRIVER" "cupti.h:CUPTI" "nccl.h:NCCL" "nvtx3/nvToolsExt.h:NVTX")
  string(REPLACE ":" ";" pair ${part})
  list(GET pair 0 header)
  list(GET pair 1 name)
  find_path(DDPCHECK_${name}_INCLUDE ${header} HINTS ${cuda_roots} PATH_SUFFIXES include extras/CUPTI/include NO_DEFAULT_PATH)
  if(NOT DDPCHECK_${name}_INCLUDE)
    list(APPEND cuda_missing ${header})
  endif()
endforeach()
find_program(DDPCHECK_NVCC nvcc HINTS ${cuda_roots} PATH_SUFFIXES bin NO_DEFAULT_PATH)
find_library(DDPCHECK_CUDART_LIBRARY NAMES cudart libcudart.so.13 libcudart.so.12 HINTS ${cuda_roots} PATH_SUFFIXES lib64 lib NO_DEFAULT_PATH)
find_library(DDPCHECK_NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${cuda_roots} PATH_SUFFIXES lib64 lib NO_DEFAULT_PATH)

set(how "install the CUDA toolkit with NCCL (or: pip install nvidia-cuda-runtime nvidia-nccl-cu13 nvidia-cuda-cupti nvidia-cuda-nvcc nvidia-nvtx) and set CUDA_HOME or run cmake again")
if(cuda_missing)
  set(DDPCHECK_HAVE_CUDA_HEADERS FALSE)
  list(JOIN cuda_missing ", " cuda_missing)
  message(STATUS "Not built: interpose (libddpcheck.so), emu, kernels, trainer: ${cuda_missing} not found; ${how}")
else()
  set(DDPCHECK_HAVE_CUDA_HEADERS TRUE)
  add_library(cuda_headers INTERFACE)
  target_include_directories(cuda_headers SYSTEM INTERFACE ${DDPCHECK_CUDART_INCLUDE} ${DDPCHECK_DRIVER_INCLUDE}
    ${DDPCHECK_CUPTI_INCLUDE} ${DDPCHECK_NCCL_INCLUDE} ${DDPCHECK_NVTX_INCLUDE})
endif()

set(DDPCHECK_HAVE_NVCC FALSE)
if(DDPCHECK_HAVE_CUDA_HEADERS)
  if(DDPCHECK_NVCC AND DDPCHECK_CUDART_LIBRARY AND DDPCHECK_NCCL_LIBRARY)
    set(DDPCHECK_HAVE_NVCC TRUE)
    set(CMAKE_CUDA_COMPILER ${DDPCHECK_NVCC})
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 75-virtual 80-virtual 90-real)   # from 80 on tensor cores know tf32 and bf16
    endif()
    set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
    enable_language(CUDA)
    foreach(pair IN ITEMS "cuda_runtime:CUDART" "nccl:NCCL")
      string(REPLACE ":" ";" pair ${pair})
      list(GET pair 0 target)
      list(GET pair 1 name)
      add_library(${target} SHARED IMPORTED)
      set_target_properties(${target} PROPERTIES IMPORTED_LOCATION ${DDPCHECK_${name}_LIBRARY})
      target_link_libraries(${target} INTERFACE cuda_headers)
    endforeach()
  else()
    message(STATUS "Not built: kernels, trainer: nvcc, libcudart or libnccl not found; ${how}")
  endif()
endif()
