/* hashing_image.c: the fat binary of kernels/cuda/payload.cu, as bytes. HASHING_IMAGE is its file, made by nvcc; without
 * nvcc there is none, and hashing says so when it is asked for. */
#include "interpose/hashing_kernel.h"

#ifdef HASHING_IMAGE
__asm__(".section .rodata\n"
        ".balign 64\n"
        ".globl hashing_image, hashing_image_end\n"
        ".hidden hashing_image, hashing_image_end\n"
        "hashing_image:\n"
        ".incbin \"" HASHING_IMAGE "\"\n"
        "hashing_image_end:\n"
        ".byte 0\n"
        ".previous\n");
#else
__asm__(".section .rodata\n"
        ".globl hashing_image, hashing_image_end\n"
        ".hidden hashing_image, hashing_image_end\n"
        "hashing_image:\n"
        "hashing_image_end:\n"
        ".byte 0\n"
        ".previous\n");
#endif
