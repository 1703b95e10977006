"""Editors put a byte order mark before UTF-8 text: every format is recognized and read behind it."""

import gzip
import os
import unittest

from importer import Importer, main

MARK = b"\xef\xbb\xbf"
SAMPLES = ("nccl_log/missing.log", "watchdog/missing.log", "inspector/behind.log", "ras/behind.json", "kineto/nccl")


class Marked(Importer):
    def mark(self, sample, name, change):
        """Copies a file or folder with the mark before each file; gzip files have it inside."""
        found = []
        for path in self.files(self.data(sample)):
            with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
                target = os.path.join(name, os.path.relpath(path, self.data(sample)).replace(".", "_") + os.path.splitext(path)[1])
                found.append(self.write(target.removesuffix(".gz"), change(MARK + file.read())))
        return found

    def files(self, path):
        if os.path.isfile(path):
            return [path]
        return [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in sorted(names)]

    def test_samples(self):
        for sample in SAMPLES:
            plain = self.importing(self.data(sample))
            self.assertEqual(plain.status, 0, plain.err)
            for name, change in (("plain", bytes), ("packed", gzip.compress)):
                with self.subTest(sample=sample, name=name):
                    marked = self.importing(*self.mark(sample, os.path.join(name, sample), change))
                    self.assertEqual((marked.status, marked.err), (0, ""))
                    self.assertEqual([(finding["code"], finding["what"]) for finding in marked.findings],
                                     [(finding["code"], finding["what"]) for finding in plain.findings])

    def test_nothing_but_the_mark(self):
        result = self.importing(self.write("empty.json", MARK))
        self.assertEqual(result.status, 2)


if __name__ == "__main__":
    main()
