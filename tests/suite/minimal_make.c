/* minimal_make.c: writes minimal.c, see minimal.h, and the programs as files.
 *
 *     minimal_make MINIMAL.C PROGRAMS_FOLDER CASES_FOLDER CATEGORY/NAME.c...
 *
 * Runs at build time and where nothing but a C compiler is, so it knows of the preprocessor only
 * what cases use: #ifdef TWIN, #ifndef TWIN, #else, #endif, not nested. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CASES_MAX = 1000, LINE_BYTES = 1024 };
enum part { BOTH, IN_TWIN, IN_FAULT };

struct minimal {
    char code[8];
    const char *name; /* file relative to the folder */
    const char *path;
    char options[64]; /* of `ddpcheck run`, each followed by a blank */
    int hang_after;
    bool hangs; /* it may, so the command ends it */
    bool needs_kernels;
    int ranks;
};

static _Noreturn void fail(const char *path, const char *why)
{
    fprintf(stderr, "minimal_make: %s: %s\n", path, why);
    exit(1);
}

static FILE *open_source(const char *path)
{
    FILE *file = fopen(path, "r");

    if (!file)
        fail(path, "can't be read");
    return file;
}

static bool ends_header(const char *line)
{
    return strstr(line, "*/") != NULL;
}

/* What the line says of the key, without what follows the value; NULL if it is another's. */
static const char *value_of(char *line, const char *key)
{
    char *value = strstr(line, key);

    if (!value)
        return NULL;
    value += strlen(key);
    value[strcspn(value, "*\n")] = 0;
    for (size_t length = strlen(value); length > 0 && value[length - 1] == ' '; length--)
        value[length - 1] = 0;
    return value;
}

static void read_header_line(struct minimal *minimal, char *line, bool *is_minimal)
{
    const char *value;

    if ((value = value_of(line, "* expect: ")))
        snprintf(minimal->code, sizeof minimal->code, "%.5s", value);
    else if ((value = value_of(line, "* options: ")))
        snprintf(minimal->options, sizeof minimal->options, "%s ", value);
    else if ((value = value_of(line, "* ends: ")))
        minimal->hangs = !strcmp(value, "hang") || !strcmp(value, "any");
    else if ((value = value_of(line, "* hang-after: ")))
        minimal->hang_after = atoi(value);
    else if ((value = value_of(line, "* env: ")) || (value = value_of(line, "* devices: ")))
        minimal->ranks = -1; /* the printed command has no words for it */
    else if (value_of(line, "* minimal: yes"))
        *is_minimal = true;
}

static void read_code_line(struct minimal *minimal, const char *line)
{
    const char *ranks = strstr(line, ".ranks = ");

    if (!strncmp(line, "#include \"kernels/", 18))
        minimal->needs_kernels = true;
    else if (!strncmp(line, "SUITE_CASE(", 11) && ranks && !minimal->ranks)
        minimal->ranks = atoi(ranks + strlen(".ranks = "));
}

/* Returns whether the case is a minimal one; code is then what it expects. */
static bool read_case(struct minimal *minimal)
{
    FILE *file = open_source(minimal->path);
    char line[LINE_BYTES];
    bool is_minimal = false, in_header = true;

    minimal->hang_after = 2; /* as in cases.py */
    while (fgets(line, sizeof line, file)) {
        bool last = in_header && ends_header(line);
        if (in_header)
            read_header_line(minimal, line, &is_minimal);
        else
            read_code_line(minimal, line);
        in_header = in_header && !last;
    }
    fclose(file);
    if (is_minimal && !minimal->code[0])
        fail(minimal->path, "minimal, but expects nothing");
    if (is_minimal && minimal->ranks <= 0)
        fail(minimal->path, "minimal, but has no .ranks, or another environment");
    return is_minimal;
}

/* The header's sentences: its lines until the first "key: value". */
static void write_about(const struct minimal *minimal, FILE *out)
{
    FILE *file = open_source(minimal->path);
    char line[LINE_BYTES];
    bool first = true;

    while (fgets(line, sizeof line, file) && !strstr(line, "* expect: ")) {
        const char *text = line + strspn(line, " /*");

        fprintf(out, "%s%.*s", first ? "" : "\n * ", (int)strcspn(text, "\n"), text);
        first = false;
    }
    fclose(file);
}

/* Which part the lines after a directive belong to; true if the line is a directive about TWIN. */
static bool take_directive(const char *path, const char *line, enum part *part)
{
    if (!strncmp(line, "#if", 3)) {
        if (*part != BOTH)
            fail(path, "nested #if");
        if (strncmp(line, "#ifdef TWIN", 11) && strncmp(line, "#ifndef TWIN", 12))
            fail(path, "minimal cases have no #if but #ifdef TWIN and #ifndef TWIN");
        *part = line[3] == 'd' ? IN_TWIN : IN_FAULT;
        return true;
    }
    if (!strncmp(line, "#else", 5)) {
        *part = *part == IN_TWIN ? IN_FAULT : IN_TWIN;
        return true;
    }
    if (!strncmp(line, "#endif", 6)) {
        *part = BOTH;
        return true;
    }
    return false;
}

/* What a program includes lies beside it there (examples.cmake). */
static bool write_include(const char *line, FILE *out)
{
    static const char *const beside[][2] = {
        {"#include \"tests/suite/suite.h\"\n", "suite.h"},
        {"#include \"tests/suite/training/loop.h\"\n", "loop.h"},
        {"#include \"interpose/ddpcheck.h\"\n", "ddpcheck.h"},
        {"#include \"abi/nccl_later.h\"\n", "nccl_later.h"},
    };
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++)
        if (!strcmp(line, beside[i][0]))
            return fprintf(out, "#include \"%s\"\n", beside[i][1]) > 0;
    return false;
}

/* One line of the program; the runner's marks are not for readers. */
static void write_line(const char *line, FILE *out)
{
    if (write_include(line, out))
        return;
    const char *mark = strstr(line, "/* here */");
    size_t length = mark ? (size_t)(mark - line) : strcspn(line, "\n");

    while (length > 0 && line[length - 1] == ' ')
        length--;
    fprintf(out, "%.*s\n", (int)length, line);
}

/* The lines of `wanted` and those of both parts, without the header. */
static void write_lines(const struct minimal *minimal, enum part wanted, FILE *out)
{
    FILE *file = open_source(minimal->path);
    char line[LINE_BYTES];
    enum part part = BOTH;
    bool in_header = true;

    while (fgets(line, sizeof line, file)) {
        if (in_header)
            in_header = !ends_header(line);
        else if (!take_directive(minimal->path, line, &part) && (part == wanted || part == BOTH))
            write_line(line, out);
    }
    fclose(file);
    if (part != BOTH)
        fail(minimal->path, "an #ifdef without #endif");
}

/* How the program is built and run, as a part of its first comment. */
static void write_commands(const struct minimal *minimal, const char *suffix, FILE *out)
{
    char hang[64] = "";

    if (minimal->hangs && !strstr(minimal->options, "--timeout"))
        snprintf(hang, sizeof hang, "--hang-after %d --timeout 10 ", minimal->hang_after);
    fprintf(out,
            "\n *\n * In share/ddpcheck/examples; on %d GPUs, without --emulate:\n *\n"
            " *     nvcc -cudart shared -o %s%s %s%s.c%s -lnccl\n"
            " *     ddpcheck run --emulate %d %s%s./%s%s\n */\n",
            minimal->ranks, minimal->code, suffix, minimal->code, suffix,
            minimal->needs_kernels ? " -I. kernels/cuda/elementwise.cu" : "", minimal->ranks,
            minimal->options, hang, minimal->code, suffix);
}

/* One of the two programs, as it is printed and installed; to be freed. */
static char *program_text(const struct minimal *minimal, enum part wanted)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    if (!out)
        fail(minimal->path, "memory is short");
    if (wanted == IN_TWIN)
        fprintf(out, "/* %s_correct.c: %s.c without its fault.", minimal->code, minimal->code);
    else {
        fprintf(out, "/* %s.c: ", minimal->code);
        write_about(minimal, out);
    }
    write_commands(minimal, wanted == IN_TWIN ? "_correct" : "", out);
    write_lines(minimal, wanted, out);
    if (fclose(out) != 0)
        fail(minimal->path, "memory is short");
    return text;
}

/* --- the difference --- */

enum { PROGRAM_LINES = 400, AROUND = 2 };

/* The lines of both programs, each with the part that it is of. */
struct program_lines {
    char *text[PROGRAM_LINES];
    enum part part[PROGRAM_LINES];
    int count;
};

static void read_lines(const struct minimal *minimal, struct program_lines *lines)
{
    FILE *file = open_source(minimal->path);
    char line[LINE_BYTES];
    enum part part = BOTH;
    bool in_header = true;

    while (fgets(line, sizeof line, file)) {
        if (in_header) {
            in_header = !ends_header(line);
            continue;
        }
        if (take_directive(minimal->path, line, &part))
            continue;
        size_t bytes;
        FILE *out = lines->count < PROGRAM_LINES
                        ? open_memstream(&lines->text[lines->count], &bytes)
                        : NULL;
        if (!out)
            fail(minimal->path, "too many lines, or memory is short");
        write_line(line, out);
        fclose(out);
        lines->part[lines->count++] = part;
    }
    fclose(file);
}

static bool is_near_change(const struct program_lines *lines, int at)
{
    for (int i = at - AROUND; i <= at + AROUND; i++)
        if (i >= 0 && i < lines->count && lines->part[i] != BOTH)
            return true;
    return false;
}

static void write_changed(const struct program_lines *lines, int from, int to, enum part part,
                          FILE *out)
{
    for (int i = from; i < to; i++)
        if (lines->part[i] == part)
            fprintf(out, "%c%s", part == IN_FAULT ? '-' : '+', lines->text[i]);
}

/* What differs, as `diff -u` shows it but for the numbers of lines; to be freed. */
static char *difference_text(const struct minimal *minimal)
{
    struct program_lines lines = {.count = 0};
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    int last = -1;

    if (!out)
        fail(minimal->path, "memory is short");
    read_lines(minimal, &lines);
    fprintf(out, "--- %s.c\n+++ %s_correct.c\n", minimal->code, minimal->code);
    for (int i = 0, end; i < lines.count; i = end) {
        for (end = i + 1; end < lines.count && lines.part[i] != BOTH && lines.part[end] != BOTH;)
            end++;
        if (!is_near_change(&lines, i))
            continue;
        if (i > last + 1)
            fputs("@@\n", out);
        if (lines.part[i] == BOTH)
            fprintf(out, " %s", lines.text[i]);
        write_changed(&lines, i, end, IN_FAULT, out);
        write_changed(&lines, i, end, IN_TWIN, out);
        last = end - 1;
    }
    for (int i = 0; i < lines.count; i++)
        free(lines.text[i]);
    if (fclose(out) != 0)
        fail(minimal->path, "memory is short");
    return text;
}

static void write_file(const char *folder, const struct minimal *minimal, enum part wanted,
                       const char *text)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s%s.c", folder, minimal->code,
             wanted == IN_TWIN ? "_correct" : "");
    FILE *file = fopen(path, "w");
    if (!file || fputs(text, file) == EOF || fclose(file) != 0)
        fail(path, "can't be written");
}

/* The text as a C string, a literal for each line. */
static void print_literal(const char *text)
{
    fputs("     \"", stdout);
    for (; *text; text++) {
        if (*text == '\n')
            fputs(text[1] ? "\\n\"\n     \"" : "\\n", stdout);
        else if (*text == '"' || *text == '\\')
            printf("\\%c", *text);
        else
            putchar(*text);
    }
    puts("\",");
}

static int by_code(const void *a, const void *b)
{
    return strcmp(((const struct minimal *)a)->code, ((const struct minimal *)b)->code);
}

static void print_minimal(const char *folder, const struct minimal *minimal)
{
    printf("    {\"%s\", \"%.*s\",\n", minimal->code, (int)(strlen(minimal->name) - strlen(".c")),
           minimal->name);
    const enum part parts[] = {IN_FAULT, IN_TWIN};
    for (int i = 0; i < 2; i++) {
        char *text = program_text(minimal, parts[i]);
        if (parts[i] == IN_FAULT)
            print_literal(text);
        write_file(folder, minimal, parts[i], text);
        free(text);
    }
    char *difference = difference_text(minimal);
    print_literal(difference);
    free(difference);
    puts("    },");
}

int main(int argc, char **argv)
{
    static struct minimal minimal[CASES_MAX];
    int count = 0;

    if (argc < 4 || !freopen(argv[1], "w", stdout))
        fail(argc > 1 ? argv[1] : "?", "can't be written");
    for (int i = 4; i < argc && count < CASES_MAX; i++) {
        char path[4096];

        snprintf(path, sizeof path, "%s/%s", argv[3], argv[i]);
        minimal[count] = (struct minimal){.name = argv[i], .path = strdup(path)};
        if (!minimal[count].path)
            fail(path, "memory is short");
        count += read_case(&minimal[count]);
    }
    qsort(minimal, (size_t)count, sizeof *minimal, by_code);
    puts("/* Made by minimal_make.c. */\n#include \"tests/suite/minimal.h\"\n\n#include "
         "<string.h>\n\n"
         "const struct suite_minimal suite_minimals[] = {");
    for (int i = 0; i < count; i++) {
        if (i > 0 && !strcmp(minimal[i].code, minimal[i - 1].code))
            fail(minimal[i].path, "another case is minimal for its code already");
        print_minimal(argv[2], &minimal[i]);
    }
    puts(
        "    {.code = NULL},\n};\n\n"
        "const struct suite_minimal *suite_minimal_find(const char *code)\n{\n"
        "    for (const struct suite_minimal *minimal = suite_minimals; minimal->code; minimal++)\n"
        "        if (!strcmp(minimal->code, code))\n            return minimal;\n    return "
        "NULL;\n}");
    return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
