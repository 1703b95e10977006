/* hashing_image.c: holds the fat binary of kernels/cuda/payload.cu, as bytes. HASHING_IMAGE is its
 * file, made by nvcc; without nvcc there is none, and hashing reports that when it is requested. */
#include "interpose/hash/hashing_kernel.h"

#ifdef HASHING_IMAGE
#define INCLUDE_IMAGE ".incbin \"" HASHING_IMAGE "\"\n"
#else
#define INCLUDE_IMAGE ""
#endif

__asm__(".section .rodata\n"
        ".balign 64\n"
        ".globl hashing_image, hashing_image_bytes\n"
        ".hidden hashing_image, hashing_image_bytes\n"
        "hashing_image:\n" INCLUDE_IMAGE "0: .balign 8\n"
        "hashing_image_bytes: .quad 0b - hashing_image\n"
        ".previous\n");
