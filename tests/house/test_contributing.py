"""Keeps CONTRIBUTING.md's table "Where do I change what" true.

Each row is compared with the tree: the files that contain the words of its worked example are exactly those that it names.
And small patches (PATCHES) are applied to a copy of the sources as the table says, one new file and one line in a table, and
compiled: the table's object must then refer to the new file's."""

import fnmatch
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROOMS = ("abi", "analyzer", "bench", "cmake", "cmd", "collector", "emu", "interpose", "kernels", "lib", "packaging", "tools",
         "trainer", "tui", "tests/suite")

# What to add: the new file, the table and its new line, the file that is compiled with the table, and the symbol that it then
# needs of the new file.
PATCHES = {
    "a check": (
        "analyzer/checks/hang/sample.c",
        '''/* sample.c: a check that reports nothing. */
#include "analyzer/check.h"
#include "analyzer/engine.h"

static void sample_on_finish(struct analyzer *analyzer, const struct event *event)
{
    (void)analyzer;
    (void)event;
}

const struct check check_sample = {
    .code = DC299,
    .name = "sample",
    .severity = SEVERITY_NOTE,
    .title = "a sample",
    .text = "Nothing.",
    .on = {[EVENT_FINISH] = sample_on_finish},
};
''',
        "lib/finding/checks.def", "CHECK(299, sample, HANG)", "analyzer/checks.c", "check_sample"),
    "a check with state": (
        "analyzer/checks/hang/sample.c",
        '''/* sample.c: a check that counts each communicator's operations. */
#include "analyzer/check.h"
#include "analyzer/model/comm.h"
#include "analyzer/states.h"

struct sample {
    uint64_t operations;
};

static void sample_on_operation(struct analyzer *analyzer, const struct event *event)
{
    struct sample *sample = state_get(analyzer, &check_sample, OWNER_COMM, &event->member->comm->states);
    if (sample)
        sample->operations++;
}

const struct check check_sample = {
    .code = DC299,
    .name = "sample",
    .severity = SEVERITY_NOTE,
    .title = "a sample",
    .text = "Nothing.",
    .on = {[EVENT_OPERATION] = sample_on_operation},
    .state_bytes = {[OWNER_COMM] = sizeof(struct sample)},
};
''',
        "lib/finding/checks.def", "CHECK(299, sample, HANG)", "analyzer/checks.c", "check_sample"),
    "a format to export": (
        "cmd/export/sample.c",
        '''/* sample.c: a format that writes nothing. */
#include "cmd/export/export.h"

int export_sample(const struct export *export, struct error *err)
{
    (void)export;
    (void)err;
    return 0;
}
''',
        "cmd/export/formats.def", 'EXPORT(sample, ".sample", "nothing")', "cmd/export/output.c", "export_sample"),
    "a view of the TUI": (
        "tui/model_sample.c",
        '''/* model_sample.c: a view that shows nothing. */
#include "tui/view.h"

static int model_sample(struct source *source, struct query *query, struct rows *rows,
                        struct error *err)
{
    (void)source;
    (void)query;
    (void)rows;
    (void)err;
    return 0;
}

const struct view view_sample = {
    .name = "Sample", .about = "Nothing.", .load = model_sample};
''',
        "tui/views.def", "VIEW(SAMPLE, sample)", "tui/view.c", "view_sample"),
}


def table_rows():
    with open(os.path.join(ROOT, "CONTRIBUTING.md"), encoding="utf-8") as page:
        section = page.read().split("## Where do I change what")[1].split("\n## ")[0]
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("| ") else []
        if len(cells) == 3 and cells[0] != "to add" and not set(cells[0]) <= set("- "):
            yield cells[0], re.findall(r"`([^`]+)`", cells[1]), re.findall(r"`([^`]+)`", cells[2])


def sources():
    for room in ROOMS:
        for folder, _, names in os.walk(os.path.join(ROOT, room)):
            for name in names:
                if not name.endswith((".md", ".pyc", ".json")):
                    yield os.path.relpath(os.path.join(folder, name), ROOT)


def files_with(words):
    pattern = re.compile("|".join(r"(?<!\w)%s(?!\w)" % re.escape(word) for word in words))
    found = set()
    for path in sources():
        with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as file:
            if pattern.search(file.read()):
                found.add(path)
    return found


def check_row(what, patterns, words):
    found = files_with(words)
    for path in sorted(found):
        if path.startswith("tests/") and not any(pattern.startswith("tests/") for pattern in patterns):
            continue            # programs of the suite use what others add
        assert any(fnmatch.fnmatch(path, pattern) for pattern in patterns), \
            "%s: %s contains %s, but the table does not name it" % (what, path, " or ".join(words))
    for pattern in patterns:
        assert fnmatch.filter(found, pattern), "%s: the table names %s, which does not contain %s" % (
            what, pattern, " or ".join(words))
    print("%-24s %s" % (what, " ".join(sorted(found))))


def check_patch(what, patch, folder):
    new_file, text, table, line, compiled, symbol = patch
    for room in ("lib", "analyzer", "cmd", "tui"):
        shutil.copytree(os.path.join(ROOT, room), os.path.join(folder, room))
    with open(os.path.join(folder, new_file), "w", encoding="utf-8") as file:
        file.write(text)
    with open(os.path.join(folder, table), "a", encoding="utf-8") as file:
        file.write(line + "\n")
    objects = []
    for source in (new_file, compiled):
        objects.append(os.path.join(folder, os.path.basename(source) + ".o"))
        subprocess.run([os.environ.get("CC", "cc"), "-std=gnu17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-I", folder, "-c",
                        os.path.join(folder, source), "-o", objects[-1]], check=True)
    defined, needed = ("".join(subprocess.run(["nm", name], capture_output=True, text=True, check=True).stdout)
                       for name in objects)
    assert re.search(r" [TDR] %s$" % symbol, defined, re.M), "%s does not define %s" % (new_file, symbol)
    assert re.search(r" U %s$" % symbol, needed, re.M), "%s does not refer to %s" % (compiled, symbol)
    print("%-24s 1 file and 1 line" % what)


# A call that members wait in for each other: one row, and the words, the table of waits and the rules follow.
SETUP_ROW = 'SETUP(SAMPLE, "sample", "", ncclGroupEnd, MEMBERS, SAMPLE, DC201, "Call it on every rank.")'
SETUP_SOURCES = ("lib/finding/act.c", "lib/finding/headline.c", "analyzer/model/setups.c", "analyzer/model/comm.c",
                 "analyzer/hang/waits_nodes.c", "analyzer/hang/where.c", "analyzer/checks/hang/hang_rules.c",
                 "analyzer/checks/hang/hang_sides.c")
SETUP_MAIN = '''
#include <assert.h>
#include <stdio.h>
#include "analyzer/model/setups.h"

int main(void)
{
    struct text text = {0};
    const struct awaited awaited = {.kind = setup_rows[WAIT_SAMPLE].awaited, .comm = 1, .number = 3, .title = "comm x"};
    assert(setup_of_api(API_ncclGroupEnd) == WAIT_SAMPLE && kind_is_counted(WAIT_SAMPLE) && !kind_is_operation(WAIT_SAMPLE));
    assert(awaited_of_key("sample") == AWAITED_SAMPLE);
    awaited_add(&text, &awaited);
    puts(text.data);
    text_free(&text);
}
'''


def check_setup(build, folder):
    """Compiles what reads setups.def with one more row, and runs what needs no other objects than those of lib/."""
    compiler = [os.environ.get("CC", "cc"), "-std=gnu17", "-Wall", "-Wextra", "-Werror", "-I", folder]
    for room in ("lib", "analyzer"):
        shutil.copytree(os.path.join(ROOT, room), os.path.join(folder, room))
    with open(os.path.join(folder, "lib/finding/setups.def"), "a", encoding="utf-8") as file:
        file.write(SETUP_ROW + "\n")
    with open(os.path.join(folder, "main.c"), "w", encoding="utf-8") as file:
        file.write(SETUP_MAIN)
    for source in SETUP_SOURCES:
        subprocess.run([*compiler, "-fsyntax-only", os.path.join(folder, source)], check=True)
    library = os.path.join(build, "lib", "libddpcheck_lib.a")
    if not os.path.exists(library):
        return
    program = os.path.join(folder, "program")
    subprocess.run([*compiler, *(os.path.join(folder, path) for path in ("main.c", "analyzer/model/setups.c", "lib/finding/act.c")),
                    library, "-lm", "-o", program], check=True)
    words = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    assert words == "ncclGroupEnd #3 of comm x\n", words
    print("%-24s 1 line" % "a call that ranks wait in")


def main():
    found = list(table_rows())
    assert len(found) >= 6, found
    assert set(PATCHES) <= {what for what, _, _ in found}
    for what, patterns, words in found:
        assert patterns and words, what
        check_row(what, patterns, words)
    for what, patch in PATCHES.items():
        with tempfile.TemporaryDirectory() as folder:
            check_patch(what, patch, folder)
    with tempfile.TemporaryDirectory() as folder:
        check_setup(sys.argv[1] if len(sys.argv) > 1 else "", folder)


if __name__ == "__main__":
    main()
