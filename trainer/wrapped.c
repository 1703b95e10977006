/* wrapped.c: texts of --help in lines that fit a terminal. */
#include "trainer/wrapped.h"

#include <string.h>

void print_wrapped(FILE *file, const char *text, int indent, int width)
{
    while (*text) {
        int length = (int)strlen(text), room = width - indent;
        if (length > room)
            for (length = room; length > 0 && text[length] != ' '; length--)
                ;
        fprintf(file, "%.*s\n", length, text);
        text += length;
        while (*text == ' ')
            text++;
        if (*text)
            fprintf(file, "%*s", indent, "");
    }
}
