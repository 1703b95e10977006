# Writes what the installed examples include into the folder PROGRAMS, from the files of the tree ROOT: with suite.h beside it,
# which has suite.c in it, each of them is built by one compiler's call.
file(READ ${ROOT}/tests/suite/suite.h head)
file(READ ${ROOT}/tests/suite/suite.c body)
file(READ ${ROOT}/tests/suite/training/loop.h loop)
string(REGEX REPLACE "^/[*].*README[^*]*It ends with\n" "/* suite.h: starts the ranks of these examples, as processes or threads, with a device, a stream and a communicator each.\n *\n * An example ends with\n" head "${head}")
string(REGEX REPLACE "\n#endif\n$" "" head "${head}")
string(REPLACE "#include \"tests/suite/suite.h\"\n" "" body "${body}")
string(REPLACE "tests/suite/suite.h" "suite.h" loop "${loop}")
file(WRITE ${PROGRAMS}/suite.h "${head}\n${body}\n#endif\n")
file(WRITE ${PROGRAMS}/loop.h "${loop}")
file(COPY ${ROOT}/interpose/ddpcheck.h ${ROOT}/abi/nccl_later.h DESTINATION ${PROGRAMS})
