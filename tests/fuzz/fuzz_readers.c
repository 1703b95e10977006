/* fuzz_readers.c: what a hostile process or program can put before readers: CPython's layout,
 * frames and line tables, mangled names of kernels, and names for the demangler. Nothing is
 * expected but that the readers end, within their buffers; the sanitizers' builds see the rest.
 *
 *     fuzz_readers [FIRST-LAST]     seeds; the same seed does the same */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interpose/memory/mangled.h"
#include "lib/python/peek.h"
#include "lib/python/python_exception.h"
#include "lib/python/python_lines.h"
#include "lib/python/python_read.h"
#include "lib/trace/cxx_name.h"

enum { MEMORY_BYTES = 8192, WALKS = 20, NAMES = 200, NAME_MAX_BYTES = 300 };

static uint64_t random_state;

static uint64_t draw(uint64_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % below;
}

/* Memory whose words lead to other words of it, as often as not. */
static void fill_memory(unsigned char *memory)
{
    for (size_t at = 0; at < MEMORY_BYTES; at += sizeof(uint64_t)) {
        uint64_t inside = (uintptr_t)memory + draw(MEMORY_BYTES / 8) * 8;
        uint64_t word = draw(4) ? inside : draw(4) ? draw(64) : draw(UINT64_MAX);
        memcpy(memory + at, &word, sizeof word);
    }
}

/* An interpreter that says of itself what the version's reader wants, and otherwise anything. */
static bool find_false_layout(struct python_layout *layout)
{
    uint64_t said[PYTHON_SAID_BYTES / 8];
    uint32_t minor = 13 + (uint32_t)draw(2), version = 3u << 24 | minor << 16;
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        said[i] = 8 * (draw(8) ? draw(19) : draw(130));
    memcpy(said, "xdebugpy", 8);
    said[1] = version;
    said[2] = 0;
    said[minor == 13 ? 44 : 50] = 16;
    said[minor == 13 ? 45 : 51] = 8;
    return python_layout_find(layout, version, said);
}

static void fuzz_python(unsigned char *memory)
{
    struct python_memory python = {0};
    struct python_frame frames[16];
    struct python_place place;
    char text[64];
    bool sound;
    uint64_t base = (uintptr_t)memory;
    if (draw(2)
            ? !find_false_layout(&python.layout)
            : !python_layout_find(&python.layout, 3u << 24 | (8 + (uint32_t)draw(5)) << 16, NULL))
        return;
    fill_memory(memory);
    for (int i = 0; i < WALKS; i++) {
        uint64_t at = base + draw(MEMORY_BYTES / 8) * 8;
        memcpy(&python.code_type, memory + draw(MEMORY_BYTES / 8) * 8, 8);
        memcpy(&python.str_type, memory + draw(MEMORY_BYTES / 8) * 8, 8);
        memcpy(&python.bytes_type, memory + draw(MEMORY_BYTES / 8) * 8, 8);
        uint32_t count = python_walk(&python, false, at, frames, 16, &sound);
        for (uint32_t k = 0; k < count; k++)
            python_place(&python, false, &frames[k], &place);
        python_checked_key(&python, frames, count);
        struct python_frame frame = {.code = at, .instruction = (int32_t)draw(1000)};
        python_place(&python, false, &frame, &place);
        python_text(&python, false, at, draw(2) ? PYTHON_BEGINNING : PYTHON_END, text,
                    (uint32_t)draw(sizeof text + 1));
        python_exception_frames(&python, at, frames, 16);
        python_exception_message(&python, at, text, sizeof text);
        python_exception_type(at, text, sizeof text);
    }
}

static void fuzz_lines(unsigned char *memory)
{
    for (size_t i = 0; i < MEMORY_BYTES; i++)
        memory[i] = (unsigned char)draw(256);
    for (int kind = LINES_LNOTAB; kind <= LINES_LOCATIONS; kind++) {
        struct python_table table = {.trusted = false,
                                     .next = (uintptr_t)memory,
                                     .end = (uintptr_t)memory + draw(MEMORY_BYTES)};
        python_line((enum python_lines)kind, &table, (int32_t)draw(1u << 31),
                    (int32_t)draw(1u << 31));
    }
}

/* Pieces of the grammar in any order, nested, cut and repeated. */
static void make_name(char *name, size_t bytes)
{
    static const char *const pieces[] = {
        "N",    "E",           "I",   "K",
        "P",    "R",           "S_",  "S0_",
        "T_",   "T0_",         "St",  "Sa",
        "L",    "i",           "f",   "v",
        "m",    "J",           "X",   "D",
        "Dp",   "LNS",         "Li4", "1a",
        "9",    "3foo",        "99x", "_Z",
        "F",    "A3_",         "M",   "U",
        "SZ_",  "C1",          "L_Z", "Lb1E",
        "cvT_", "plfp_",       "NK",  "EEE",
        "III",  "4294967296a", "0",   "18446744073709551615",
    };
    snprintf(name, bytes, "_Z%s", draw(2) ? "N" : "");
    for (uint64_t left = draw(60), same = draw(8); left; left--) {
        const char *piece = pieces[draw(sizeof pieces / sizeof *pieces)];
        for (uint64_t times = same ? 1 : draw(20); times; times--)
            if (strlen(name) + strlen(piece) < bytes - 1)
                strcat(name, piece);
    }
    if (draw(4) == 0)
        name[draw(strlen(name)) + 1] = (char)draw(256);
}

/* In memory of exactly its length, so that a read behind its end is seen. */
static void fuzz_name(void)
{
    struct mangled_parameter parameters[16];
    char made[NAME_MAX_BYTES + 1], text[128];
    make_name(made, sizeof made);
    char *name = strdup(made);
    if (!name)
        abort();
    mangled_parameters(name, parameters, (int)draw(17));
    cxx_name_is_standard(name);
    cxx_name_last(cxx_name(name, text, draw(sizeof text - 1) + 1));
    free(name);
}

int main(int argc, char **argv)
{
    unsigned long first = 1, last = 200;
    if (argc > 1 && sscanf(argv[1], "%lu-%lu", &first, &last) != 2)
        return 2;
    unsigned char *memory = aligned_alloc(64, MEMORY_BYTES);
    if (!memory || !peek_start())
        return 2;
    for (unsigned long seed = first; seed <= last; seed++) {
        random_state = seed * 0x9e3779b97f4a7c15u + 1;
        fuzz_python(memory);
        fuzz_lines(memory);
        for (int i = 0; i < NAMES; i++)
            fuzz_name();
    }
    free(memory);
    printf("ok, seeds %lu to %lu\n", first, last);
    return 0;
}
