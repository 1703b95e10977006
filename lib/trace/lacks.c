/* lacks.c: the names and texts of what a source may not say. */
#include "lib/trace/lacks.h"

const struct lack_text lack_texts[] = {
#define LACK(bit, name, what, codes) {1u << bit, #name, what, codes},
#include "lib/trace/lacks.def"
#undef LACK
    {0, 0, 0, 0},
};
