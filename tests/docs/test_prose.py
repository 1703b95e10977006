"""tools/prose finds what it is meant to find, and nothing in this tree: test_prose.py [DDPCHECK [DDPTRAIN]]"""

import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import unittest

TOOL = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "tools/prose")
PROGRAMS = [program for program in sys.argv[1:] if program]


def load():
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("prose", TOOL)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("prose", loader))
    loader.exec_module(module)
    return module


class Prose(unittest.TestCase):
    prose = load()

    def page(self, text):
        return list(self.prose.wrong_in_page("p.md", text))

    def test_listed_words(self):
        self.assertEqual(self.page("# One\n\nHow to\nmend it.\n"), ['p.md:3: "mend": fix'])
        self.assertEqual(self.page("Write `mend` or mend-all.\n\n    mend\n\n```\nmend\n```\n"), [])
        self.assertEqual(self.page("| a | as I told you |\n| --- | --- |\n")[0][:9], "p.md:1: \"")

    def test_long_sentences(self):
        longest = "A" + " word" * (self.prose.LONGEST - 1)
        self.assertEqual(self.page(longest + ".\n"), [])
        self.assertEqual(self.page(longest + " more.\n")[0][:34], "p.md:1: a sentence of 41 words: A ")
        self.assertEqual(self.page("- %s.\n- %s. %s.\n" % (longest[2:], longest, longest)), [])
        self.assertIn("words a sentence", self.page((longest + ".\n\n") * 6)[0])

    def test_messages(self):
        found = list(self.prose.wrong_in_source("s.c", '/* mend */\nf("it was "\n  "told");\ng("mend");\n'))
        self.assertEqual(found, ['s.c:2: "told": record, report, print or show'])

    def test_this_tree(self):
        run = subprocess.run([TOOL] + PROGRAMS, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100)
        self.assertEqual(run.returncode, 0, run.stdout.decode())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
