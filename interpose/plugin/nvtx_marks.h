/* nvtx_marks.h: marks by which a program announces the versions of tensors (docs/nvtx.md).
 *
 *     ddpcheck:save   tensor=ID version=V [name=TEXT]           kept for backward at this version
 *     ddpcheck:modify tensor=ID version=V [name=TEXT]           written in place; its version now
 *     ddpcheck:use    tensor=ID version=V [saved=S] [name=TEXT] backward reads it
 *
 * Numbers are decimal or 0x...; name comes last and reaches to the end of the text. */
#ifndef DDPCHECK_NVTX_MARKS_H
#define DDPCHECK_NVTX_MARKS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/trace/record.h"

struct tensor_mark {
    enum api api;                    /* ddpcheck_save, ddpcheck_modify or ddpcheck_use */
    uint64_t tensor, version, saved; /* RECORD_NO_VERSION where the mark names none */
    const char *name;                /* inside the mark's text */
    uint64_t name_bytes;
};

/* Whether the text is such a mark, and what it holds. NULL is none. Allocates nothing.
 */
bool tensor_mark_parse(const char *text, struct tensor_mark *mark);

#endif
