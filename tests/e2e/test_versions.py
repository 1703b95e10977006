"""What holds in the job's version of NCCL is said wherever a finding is shown, and nothing of another version: DC204's rule changed
with NCCL 2.26."""

import html
import os
import sys

from line import Line

PROGRAM = os.path.join("tests", "suite", "hang", "communicators_unordered")
EVENTS, VARIABLE = "order the streams of the two communicators by events as well", "NCCL_LAUNCH_ORDER_IMPLICIT=1 (default 0)"


def plain(text):
    return " ".join(html.unescape(text).split()).lower()


def check(build, version, shown, said, unsaid):
    with Line(build, devices=2, name="versions") as line:
        line.run([os.path.join(os.path.abspath(build), PROGRAM)], environment={"DDPCHECK_EMU_NCCL_VERSION": str(version)})
        finding, = [finding for finding in line.report()[1] if finding["code"] == "DC204"]
        assert finding["version_fact"]["nccl"] == shown and said in finding["version_fact"]["what"], finding["version_fact"]
        _, text, _ = line.call([line.tool, "report", line.trace])
        _, page, _ = line.call([line.tool, "export", "--format", "html", line.trace])
        card = page[page.index("<article"):page.index("</article>")]
        for shows in text, card:
            assert plain("With NCCL %s, which the job has" % shown) in plain(shows), shows
            assert plain(said) in plain(shows) and plain(unsaid) not in plain(shows), shows
        about = page[page.index("id=about-DC204"):]
        assert plain(said) in plain(about) and plain(unsaid) in plain(about), about
    print("%s: %s" % (shown, said))


def main():
    check(sys.argv[1], 22502, "2.25.2", EVENTS, VARIABLE)
    check(sys.argv[1], 22601, "2.26.1", VARIABLE, EVENTS)


if __name__ == "__main__":
    main()
