/* cusparse.c: the functions of cuSPARSE that return texts. */
#include "emu/math/words.h"

const char *cusparseGetErrorName(int status);
const char *cusparseGetErrorName(int status)
{
    return status ? "CUSPARSE_STATUS_INTERNAL_ERROR" : "CUSPARSE_STATUS_SUCCESS";
}

const char *cusparseGetErrorString(int status);
const char *cusparseGetErrorString(int status)
{
    return status ? "internal error" : "success";
}
