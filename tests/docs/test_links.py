"""Every relative link of the documents exists, its anchor included, and so does every path of the repository that documents
and sources (but tests, whose samples name other programs' files) contain. A reader who follows links from README.md gets to
every page, docs/README.md lists each page beside it once, and each page leads on and back."""

import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROOMS = ("abi", "analyzer", "bench", "cmake", "cmd", "collector", "docs", "emu", "hub", "interpose", "kernels", "lib", "packaging",
         "tests", "tools", "trainer", "tui")
SOURCES = (".c", ".h", ".cu", ".cuh", ".def", ".py", ".sql", ".txt", ".md")
# A path in a text: from the root, with an ending, perhaps with patterns or names in capitals that stand for others.
PATH = re.compile(r"(?<![\w./-])((?:%s)/[\w./*-]+\.(?:c|h|cu|cuh|def|py|sql|md|cmake)|(?:%s)/(?:[\w.*-]+/)*)(?![\w*/.-]*\w)"
                  % ("|".join(ROOMS), "|".join(ROOMS)))


def pages():
    yield from ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "tests/suite/README.md")
    for folder, _, names in os.walk(os.path.join(ROOT, "docs")):
        for name in sorted(names):
            if name.endswith(".md"):
                yield os.path.relpath(os.path.join(folder, name), ROOT)


def sources():
    for room in ROOMS:
        for folder, _, names in os.walk(os.path.join(ROOT, room)) if room != "tests" else ():
            for name in sorted(names):
                if name.endswith(SOURCES):
                    yield os.path.relpath(os.path.join(folder, name), ROOT)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def anchors(path):
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ +(.*)$", re.sub(r"```.*?```", "", read(path), flags=re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(page):
    """(target as written, path from the root, anchor) of each link to a file of this repository."""
    for target in re.findall(r"\]\(([^)\s]+)\)", read(page)):
        if not re.match(r"[a-z]+:", target):
            path, _, anchor = target.partition("#")
            yield target, os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page, anchor


def broken_links(page):
    for target, path, anchor in links(page):
        if not os.path.exists(os.path.join(ROOT, path)):
            yield "%s: the link %s leads nowhere" % (page, target)
        elif anchor and anchor not in anchors(path):
            yield "%s: the link %s names a heading that is not there" % (page, target)


def broken_paths(path):
    for found in PATH.finditer(read(path)):
        name = found.group(1)
        if not re.search(r"[A-Z]{3}|NAME", os.path.basename(name)) \
                and not glob.glob(os.path.join(ROOT, name)) and not glob.glob(os.path.join(ROOT, os.path.dirname(path), name)):
            yield "%s: there is no %s" % (path, name)


def unreached(listed, start="README.md"):
    """Pages to which no path of links leads. A link to a folder leads to its README.md, as where the documents are browsed."""
    found, new = {start}, [start]
    while new:
        for _, path, _ in links(new.pop()):
            path = os.path.join(path, "README.md") if os.path.isdir(os.path.join(ROOT, path)) else path
            if path.endswith(".md") and path not in found and os.path.exists(os.path.join(ROOT, path)):
                found.add(path)
                new.append(path)
    for page in sorted(set(listed) - found):
        yield "no link leads from %s to %s" % (start, page)


def not_once_in_index():
    targets = [os.path.relpath(path, "docs") for _, path, _ in links("docs/README.md")]
    for name in sorted(os.listdir(os.path.join(ROOT, "docs"))):
        # usage.md is also where a new reader is sent to.
        if name.endswith(".md") and name not in ("README.md", "usage.md") and targets.count(name) != 1:
            yield "docs/README.md lists %s %d times" % (name, targets.count(name))


def wrong_ends():
    """Each page ends with links to those before and after it and to the index."""
    folders = [os.path.join(ROOT, "docs", name) for name in ("", "decisions", "findings", "scenarios")]
    done = subprocess.run([sys.executable, os.path.join(ROOT, "tools/docs-links"), "--check", *folders], capture_output=True, text=True)
    return [done.stderr.strip()] if done.returncode else []


def main():
    listed = list(pages())
    broken = wrong_ends()
    broken += [text for page in listed for text in broken_links(page)]
    broken += [*unreached(listed), *not_once_in_index()]
    named = sorted(set(listed) | set(sources()))
    broken += [text for path in named for text in broken_paths(path)]
    print("\n".join(broken) or "%d pages, %d files" % (len(listed), len(named)))
    sys.exit(bool(broken))


if __name__ == "__main__":
    main()
