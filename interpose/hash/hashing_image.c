/* hashing_image.c: holds the kernel of kernels/cuda/payload.cu, as bytes: a fat binary, and PTX
 * text for drivers and devices that it does not fit. HASHING_IMAGE and HASHING_TEXT are their
 * files, made by nvcc; without nvcc there are none, and hashing reports that when it is requested.
 */
#include "interpose/hash/hashing_kernel.h"

#ifdef HASHING_IMAGE
#define INCLUDE_IMAGE ".incbin \"" HASHING_IMAGE "\"\n"
#define INCLUDE_TEXT  ".incbin \"" HASHING_TEXT "\"\n"
#else
#define INCLUDE_IMAGE ""
#define INCLUDE_TEXT  ""
#endif

__asm__(".section .rodata\n"
        ".balign 64\n"
        ".globl hashing_image, hashing_image_bytes, hashing_text\n"
        ".hidden hashing_image, hashing_image_bytes, hashing_text\n"
        "hashing_image:\n" INCLUDE_IMAGE "0: .balign 8\n"
        "hashing_image_bytes: .quad 0b - hashing_image\n"
        "hashing_text:\n" INCLUDE_TEXT ".byte 0\n"
        ".previous\n");
