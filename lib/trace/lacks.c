#include "lib/trace/lacks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct lack_text lack_texts[] = {
#define LACK(bit, name, what, codes) {1u << bit, #name, what, codes},
#include "lib/trace/lacks.def"
#undef LACK
    {0, 0, 0, 0},
};

/* "DC301-DC306, DC308": ranges of one letter pair. */
static bool is_among(const char *codes, int number)
{
    while (*codes) {
        int first, last, used;
        if (sscanf(codes, "DC%d-DC%d%n", &first, &last, &used) != 2) {
            if (sscanf(codes, "DC%d%n", &first, &used) != 1)
                return false;
            last = first;
        }
        if (number >= first && number <= last)
            return true;
        codes += used;
        codes += strspn(codes, ", ");
    }
    return false;
}

bool lacks_blind(uint32_t lacks, const char *code)
{
    for (const struct lack_text *text = lack_texts; lacks && text->bit; text++)
        if (lacks & text->bit && is_among(text->codes, atoi(code + 2)))
            return true;
    return false;
}
