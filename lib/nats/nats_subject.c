/* nats_subject.c: words of subjects. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

#include "lib/base/text.h"
#include "lib/nats/nats_client.h"

char *nats_subject_word(const char *text, char *word, size_t bytes)
{
    size_t length = 0;
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        bool is_plain = isalnum(*at) || *at == '-' || *at == '_';
        if (length + 4 > bytes) { /* no room for three characters and the end */
            snprintf(word, bytes, "=%016" PRIx64, hash_text(HASH_START, text));
            return word;
        }
        length += (size_t)snprintf(word + length, 4, is_plain ? "%c" : "=%02x", *at);
    }
    word[length] = 0;
    return word;
}

int nats_subject_text(const char *word, char *text, size_t bytes)
{
    size_t length = 0;
    for (; *word; word++) {
        unsigned byte = (unsigned char)*word;
        if (length + 1 >= bytes)
            return -1;
        if (byte == '=') {
            if (!isxdigit((unsigned char)word[1]) || !isxdigit((unsigned char)word[2]) ||
                sscanf(word + 1, "%2x", &byte) != 1 || byte == 0)
                return -1;
            word += 2;
        }
        text[length++] = (char)byte;
    }
    text[length] = 0;
    return 0;
}
