# Makes the PTX text in file PTX one of ISA 6.3 (CUDA 10.0) for sm_70, or for what it was made for if that is older.
file(READ ${PTX} text)
string(REGEX REPLACE "\n\\.version [0-9.]+" "\n.version 6.3" text "${text}")
string(REGEX MATCH "\n\\.target sm_([0-9]+)" target "${text}")
if(CMAKE_MATCH_1 GREATER 70)
  string(REPLACE "${target}" "\n.target sm_70" text "${text}")
endif()
file(WRITE ${PTX} "${text}")
