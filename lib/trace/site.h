/* site.h: call sites as people want them: the program's own frames, with a short place each. */
#ifndef DDPCHECK_SITE_H
#define DDPCHECK_SITE_H

#include <stdio.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/trace/trace.h"

enum { SITE_FRAMES_MAX = 64 };

/* The frames of a call that say where the program stands: those of ddpcheck itself, of the
 * libraries that were called (NCCL's also where it is linked into the program), of C and C++,
 * and, beneath Python frames, of Python itself are left out, and so is PyTorch's own Python, unless
 * nothing else is there. Innermost first. Returns how many
 * (<= SITE_FRAMES_MAX). */
int site_frames(struct trace *trace, int process, uint64_t stack, bool is_address,
                struct frame *frames);
/* All frames of it, "function file" line by line: those of libraries, too. */
void site_write_frames(struct trace *trace, int process, uint64_t stack, bool is_address,
                       FILE *out);
/* The same of frames that are at hand: the others are taken out. Returns how many are left. */
int site_own_frames(struct frame *frames, int count);

/* The library function (of CUDA, NCCL, the C library) that the program called and is in, of all
 * frames as trace_frames gives them: "cudaStreamSynchronize"; "" if none is known. Returns text. */
char *site_called(const struct frame *frames, int count, char *text, size_t bytes);

/* The functions inside NCCL, innermost first, and in what stands below ddpcheck's wrapper of it:
 * "bootstrapInit()", "ncclLocalOpAppend() of addProxyOpIfNeeded()"; "" if the thread is in none, or
 * they have no names. Of all frames as trace_frames gives them. Returns text. */
char *site_inside_nccl(const struct frame *frames, int count, char *text, size_t bytes);

/* The frame has a source of the program: neither a package's nor the interpreter's. */
bool site_is_of_program(const struct frame *frame);
/* Which of these frames people look at: the innermost in a source of the program, else of a
 * package; -1 if no source is known. A function of a header that is called from another source, and
 * one that is named after the call it wraps ("communicator_barrier", "launch_kernel"), stands for
 * its caller. */
int site_user_frame(const struct frame *frames, int count);
/* The frames of a stack, as site_frames has them, and which of them people look at. */
struct shown_frames {
    struct frame frame[SITE_FRAMES_MAX];
    int count, shown; /* shown -1: none */
};
void site_shown_frames(struct trace *trace, int process, uint64_t stack, bool is_address,
                       struct shown_frames *frames);
/* As site_user_frame, beside another stack: where that would show the same line, the outermost line
 * of the program at which the two differ. */
int site_frame_beside(const struct frame *frames, int count, const struct frame *others,
                      int other_count);
/* As site_user_frame, or the innermost where no source is known; -1 without frames. */
int site_shown_frame(const struct frame *frames, int count);
/* Where the stack stands, of site_user_frame: "train.c:176, in load_batch()", the place as of
 * frame_place. "" if no source is known. Returns text. */
char *site_user_line(struct trace *trace, int process, uint64_t stack, bool is_address, int width,
                     char *text, size_t bytes);
/* From which frame on to show `most` of them, so that the one of site_user_frame is among them: 0
 * where it is anyway. */
int site_first_frame(const struct frame *frames, int count, int most);
/* The same for another frame, which may be -1. */
int site_first_shown(int wanted, int most);

/* "step()", of C++ "net::Trainer<float>::step()" (cxx_name.h), or "0x7f0012f0 in libfoo.so" where
 * the function is not known. Returns text. */
char *frame_function(const struct frame *frame, char *text, size_t bytes);
/* "trainer/train.c:88", the path below the working directory or cut from the left to `width`
 * columns; empty if not known. Returns text. */
char *frame_place(const struct frame *frame, int width, char *text, size_t bytes);

#endif
