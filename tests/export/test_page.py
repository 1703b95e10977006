"""The HTML page: one file that asks for nothing, says all without scripts, and draws with them, in Chromium."""

import glob
import html
import html.parser
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import unittest
import xml.etree.ElementTree

from jobs import Jobs

BUILD = sys.argv.pop(1)
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CHROMIUM = next((path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path), None)
VOID = {"wbr", "meta", "path"}
OPTIONAL = {"li", "dt", "dd", "tr", "th", "td", "thead", "tbody", "p"}     # whose end may be left out


def setUpModule():
    global JOBS
    JOBS = Jobs(BUILD)


def tearDownModule():
    JOBS.close()


def many():
    """A database of 1,024 ranks, of which rank 517 is missing in the last operation."""
    path = os.path.join(JOBS.folder, "many.db")
    if not os.path.exists(path):
        dumps = os.path.join(JOBS.folder, "dumps")
        subprocess.run([sys.executable, os.path.join(SOURCE, "bench/flight_recorder.py"), dumps, "1024", "12"], check=True,
                       stdout=subprocess.DEVNULL, timeout=300)
        subprocess.run([JOBS.tool, "import", "-q", "-o", path, dumps], check=True, timeout=300)
    return path


class Page(html.parser.HTMLParser):
    """What is on a page: the text that is seen without scripts, elements by name, and what is not closed."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.text, self.elements, self.data = [], [], [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, name, attributes):
        self.elements.append((name, dict(attributes)))
        if name not in VOID:
            self.open.append(name)

    def handle_startendtag(self, name, attributes):
        self.elements.append((name, dict(attributes)))

    def handle_endtag(self, name):
        while self.open and self.open[-1] != name and self.open[-1] in OPTIONAL:
            self.open.pop()
        assert self.open and self.open[-1] == name, "</%s> closes %s" % (name, self.open[-3:])
        self.open.pop()

    def handle_data(self, data):
        if "script" in self.open:
            self.data = data if data.startswith('{"end"') else self.data
        elif "style" not in self.open:
            self.text.append(data)

    def words(self):
        return " ".join("".join(self.text).split())

    def all(self, name, **attributes):
        return [found for tag, found in self.elements if tag == name and all(found.get(key) == value for key, value in attributes.items())]


class Html(unittest.TestCase):
    def page(self, trace, *arguments):
        text = JOBS.export("html", trace, *arguments)
        return text, Page(text)

    def test_it_says_all_without_scripts(self):
        text, page = self.page("hang")
        words = page.words()
        findings = JOBS.findings("hang")
        self.assertEqual(len(page.all("article")), len(findings))
        for finding in findings:
            self.assertIn(finding["what"][1:], words)
            self.assertIn(finding["todo"][1:], words)
            self.assertIn(finding["fingerprint"], words)
            for side in finding["sides"]:
                self.assertIn(side["call"], words)
                for frame in side["frames"]:
                    self.assertIn(frame["function"], words)
            self.assertEqual(len(page.all("details", id="about-" + finding["code"])), 1)
        cells = [found["title"] for found in page.all("li", tabindex="0")]
        self.assertEqual(len(cells), 8)         # 4 ranks of 2 communicators
        self.assertEqual(sum("has not called" in title for title in cells if title.startswith("rank 3 ")), 1)
        self.assertEqual(len(page.all("svg")), 4)
        card = text.split("<article", 1)[1].split("</article>")[0]
        self.assertRegex(card, r"<p class=at><code>[^\n]*train\.c:\d+</code></p><p class=what>")
        self.assertLess(card.index("<p class=todo>"), card.index("<ul class=sides>"), "the fix comes before the details")
        key = text.split("<section id=ranks>", 1)[1].split("<ul class=key>", 1)[1].split("</ul>")[0]
        self.assertIn("has not called what others wait in", key)
        self.assertNotIn("has finished", key, "a mark that does not occur")
        self.assertEqual(len(page.all("path", **{"class": "stuck"})), 4)
        self.assertLess(len(text), 200000)

    def test_a_colleague_sees_the_fault_first(self):
        """Title and heading are the headline; the lines of source are beside each side, and who waits for whom is a tree."""
        text, _ = self.page("hang")
        headline = r"DC201: ranks 0-2 wait in ncclAllReduce\(count=1, int32, sum\) #0 of comm control \(4 ranks\); rank 3 never called it"
        self.assertRegex(text, "<title>%s - ddpcheck</title>" % headline)
        self.assertRegex(text, "<p class=verdict>1 error</p><h1 class=headline>%s</h1>" % headline)
        marked = re.findall(r"<mark> *(\d+)  ([^\n]*)\n</mark>", text)
        for line, shown in marked:
            with open(os.path.join(SOURCE, "trainer/train.c"), encoding="utf-8") as file:
                self.assertEqual(html.unescape(shown), file.read().split("\n")[int(line) - 1])
        self.assertEqual(len(marked), 2)
        waits = text.split("<section id=waits>")[1].split("</section>")[0]
        self.assertRegex(waits, r"--depth:0\">(<strong>a cycle</strong>: )?ranks? \S+ waits? in nccl")
        self.assertRegex(waits, r"--depth:1\">rank \S+ has not called it|--depth:1\">ranks \S+ have not called it")

    def test_no_file_of_a_stranger_is_read(self):
        """Of a process of another host the page has no source, whatever its trace names."""
        folder = os.path.join(JOBS.folder, "stranger")
        shutil.copytree(os.path.join(JOBS.folder, "hang"), folder)
        path, = [each for each in glob.glob(os.path.join(folder, "*.db"))]
        with sqlite3.connect(path) as database:
            database.execute("UPDATE process SET boot_id = 'another'")
        text, _ = self.page("stranger")
        self.assertIn("DC201", text)
        self.assertNotIn("<mark>", text)

    def test_a_clean_job(self):
        _, page = self.page("clean")
        words = page.words()
        self.assertEqual(page.all("article", **{"class": "error"}), [])
        self.assertEqual(page.all("path", **{"class": "stuck"}), [])
        self.assertTrue("No finding" in words or page.all("article"))
        self.assertRegex(words, r"job\d+ processes on \S+ranks from")
        self.assertEqual({found["class"] for found in page.all("li", tabindex="0")}, {"over"})

    def test_a_thousand_ranks(self):
        text, page = self.page(many())
        self.assertEqual(len(page.all("ul", **{"class": "ranks dense"})), 1)
        cells = [found for found in page.all("li", tabindex="0") if "tabindex" in found]
        of_all = cells[:1024]
        self.assertEqual([found["title"].split()[1] for found in of_all], [str(rank) for rank in range(1024)])
        self.assertEqual([rank for rank, found in enumerate(of_all) if found["class"] == "behind"], [517])
        self.assertIn("Ranks <span class=range>0-516,</span><wbr><span class=range>518-1023</span>", text)
        self.assertRegex(page.words(), r"of comm default_pg \(1024 ranks\); rank 517 never called it")
        self.assertNotIn("process 0 on", page.words())
        self.assertIn("imported fromflight-recorder", page.words())
        ranks = text.split("<section id=ranks>")[1]
        self.assertLess(ranks.index("<table>"), ranks.index("<ul class=\"ranks dense\">"), "few rows say more than many cells")
        self.assertRegex(ranks, r"(?s)\A.*?<tbody><tr><th scope=row class=behind><i>!</i> <span class=range>517<", "the worst first")
        self.assertRegex(ranks, r"<details class=resolved><summary>\d+ more communicators, in which no rank waits")
        self.assertLess(len(text), 400000)

    def test_hosts_are_ranges(self):
        """64 hosts of 8 ranks, whose launcher is not known."""
        folder = os.path.join(JOBS.folder, "hosts")
        os.mkdir(folder)
        subprocess.run([os.path.join(BUILD, "bench", "bench_rank_traces"), folder, "skipped", "512"], check=True, timeout=100)
        _, page = self.page("hosts")
        self.assertIn("job512 processes on n[00000-00063]recorded", page.words())

    def test_it_asks_for_nothing(self):
        text, page = self.page("hang")
        for name, attributes in page.elements:
            self.assertNotIn(name, ("link", "img", "iframe", "object", "embed", "form", "base"))
            self.assertNotIn("src", attributes)
            self.assertFalse(attributes.get("href", "#").startswith(("http", "//")), attributes)
        style = "".join(re.findall(r"<style>(.*?)</style>", text, re.S))
        self.assertNotRegex(style, r"url\(|@import")
        self.assertIn("default-src 'none'", page.all("meta", **{"http-equiv": "Content-Security-Policy"})[0]["content"])

    def test_names_are_text(self):
        """A program whose path would be markup, and is not UTF-8."""
        folder = os.fsencode(JOBS.folder) + b'/x<script>alert(1)<'
        path = folder + b'/script>&amp;"\xff\xe2\x9c'
        os.mkdir(folder)
        os.symlink(JOBS.line.trainer, path)
        subprocess.run([JOBS.tool, "run", "--emulate", "2", "-o", "odd", "--", path, "--model", "cnn", "--dataset-size", "16",
                        "--ranks", "1", "--iterations", "1"], cwd=JOBS.folder, capture_output=True, timeout=100)
        _, page = self.page("odd")
        self.assertEqual([found for found in page.all("script") if found.get("type") != "application/json"], [{}])
        self.assertIn('x<script>alert(1)</script>&amp;"???', page.words())
        json.loads(JOBS.export("chrome", "odd"))
        json.loads(JOBS.export("sarif", "odd"))
        xml.etree.ElementTree.fromstring(JOBS.export("junit", "odd"))

    def test_the_details_are_the_operations(self):
        _, page = self.page("hang")
        data = json.loads(page.data)
        JOBS.line.trace = os.path.join(JOBS.folder, "hang")
        self.assertEqual(sum(len(row["ops"]) for row in data["rows"]), JOBS.line.query("SELECT count(*) FROM v_collective")[0][0])
        self.assertEqual(sum(op[4] == -1 for row in data["rows"] for op in row["ops"]), 4)
        for row in data["rows"]:
            for lane, name, number, begin, end in row["ops"]:
                self.assertLess(lane, row["lanes"])
                self.assertTrue(data["names"][name].split("(")[0] in ("AllReduce", "Broadcast", "AllGather"))
                self.assertTrue(0 <= begin <= data["end"] and (end < 0 or begin <= end <= data["end"]))


@unittest.skipUnless(CHROMIUM, "needs Chromium")
class Browser(unittest.TestCase):
    def run_browser(self, name, *arguments):
        done = subprocess.run([CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr",
                               "--user-data-dir=" + os.path.join(JOBS.folder, "profile"), *arguments,
                               "file://" + os.path.join(JOBS.folder, name)], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        console = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
        self.assertEqual(console, [], "the page complains")
        return done.stdout

    def test_with_and_without_scripts(self):
        path = os.path.join(JOBS.folder, "x.html")
        JOBS.export("html", "-o", path, "hang")
        with open(path) as file:
            text = file.read()
        with open(os.path.join(JOBS.folder, "plain.html"), "w") as file:
            file.write(text.replace("<script>", "<script type=none>"))
        drawn = self.run_browser("x.html", "--window-size=1280,2000", "--dump-dom")
        self.assertEqual(drawn.count("<canvas"), 1)
        self.assertRegex(drawn, r'<div id="picture" hidden')
        self.assertNotIn("no-script", drawn.split("<body", 1)[1][:40])
        plain = self.run_browser("plain.html", "--window-size=1280,2000", "--dump-dom")
        self.assertEqual(plain.count("<canvas"), 0)
        self.assertNotRegex(plain, r'<div id="picture" hidden')
        self.assertIn("DC201", plain)

    def test_keys_and_pointer(self):
        """What a reader does: zoom, go from operation to operation, point at one."""
        script = """<script>addEventListener('load', function () {
          var canvas = document.querySelector('canvas'), description = document.getElementById('description'), log = [];
          function press(key) { canvas.dispatchEvent(new KeyboardEvent('keydown', {key: key, bubbles: true, cancelable: true})); }
          function say(what) { log.push(what + '=' + description.textContent); }
          canvas.focus();
          press('a'); press('n'); say('first');
          press('n'); say('second');
          press('p'); say('back');
          press('ArrowDown'); press('n'); say('down');
          ['+', '+', '-', 'ArrowLeft', 'ArrowRight', 'Home', 'End', 'ArrowUp', 'ArrowUp', 'e'].forEach(press);
          var box = canvas.getBoundingClientRect();
          canvas.dispatchEvent(new PointerEvent('pointermove', {clientX: box.right - 3, clientY: box.top + 36, bubbles: true}));
          say('pointed');
          document.querySelectorAll('.tools button').forEach(function (button) { button.click(); });
          location.hash = '#about-DC201';
          setTimeout(function () {
            log.push('open=' + document.getElementById('about-DC201').open);
            document.body.setAttribute('data-log', JSON.stringify(log));
          }, 50);
        });</script></body>"""
        path = os.path.join(JOBS.folder, "keys.html")
        JOBS.export("html", "-o", path, "hang")
        with open(path) as file:
            text = file.read().replace("</body>", script)
        with open(path, "w") as file:
            file.write(text)
        drawn = self.run_browser("keys.html", "--window-size=1280,2000", "--virtual-time-budget=5000", "--dump-dom")
        log = dict(line.split("=", 1) for line in json.loads(html.unescape(re.search(r'data-log="([^"]*)"', drawn).group(1))))
        self.assertRegex(log["first"], r"^rank 0: \w+\(.* of comm \w+ #0from .* for ")
        self.assertTrue(log["second"].startswith("rank 0: ") and log["second"] != log["first"])
        self.assertEqual(log["back"], log["first"])
        self.assertTrue(log["down"].startswith("rank 1: "))
        self.assertRegex(log["pointed"], r"^rank 0: AllReduce\(count=1, int32, sum\) .*never ended$")     # its second lane
        self.assertEqual(log["open"], "true")

    def test_nothing_is_wider_than_the_window(self):
        """Nor is a rank's number wider than its cell, with 1,024 of them."""
        probe = ("<script>addEventListener('load',function(){document.title='width '+document.documentElement.scrollWidth+' of '"
                 "+document.documentElement.clientWidth+', cut '+[].filter.call(document.querySelectorAll('.ranks li'),"
                 "function(cell){return cell.scrollWidth>cell.clientWidth}).length})</script></body>")
        for trace in "hang", many():
            path = os.path.join(JOBS.folder, "wide.html")
            JOBS.export("html", "-o", path, trace)
            with open(path) as file:
                text = file.read().replace("</body>", probe)
            with open(path, "w") as file:
                file.write(text)
            for width in (1280, 500):       # headless Chromium has no narrower windows
                title = re.search(r"<title>width (\d+) of (\d+), cut (\d+)",
                                  self.run_browser("wide.html", "--window-size=%d,900" % width, "--dump-dom"))
                self.assertLessEqual(int(title.group(1)), int(title.group(2)))
                self.assertEqual(title.group(3), "0", (trace, width))


if __name__ == "__main__":
    unittest.main()
