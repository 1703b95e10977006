# DDPCHECK_PYTHON: the Python that runs the tests and makes sources; not found where there is none. Where `python3` is a
# script that chooses a Python (pyenv), it is the chosen one: the script takes longer than most programs that it starts.
if(NOT DDPCHECK_PYTHON)
  find_program(DDPCHECK_PYTHON NAMES python3 HINTS ${CMAKE_SOURCE_DIR}/build/venv/bin)
  if(DDPCHECK_PYTHON)
    execute_process(COMMAND ${DDPCHECK_PYTHON} -c "import sys; print(sys.executable)"
      OUTPUT_VARIABLE executable OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(executable)
      set(DDPCHECK_PYTHON ${executable} CACHE FILEPATH "The Python that runs the tests and makes sources" FORCE)
    endif()
  endif()
endif()
