"""Archives: what is in them is read as if they were directories, and what strangers put into them does no harm."""

import bz2
import gzip
import io
import lzma
import os
import tarfile
import unittest
import zipfile

from importer import Importer, main

LINE = ("[rank%d]:[E626 06:24:44.903881913 ProcessGroupNCCL.cpp:616] [Rank %d] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=9, NumelOut=9, Timeout(ms)=600000) ran for 600020 milliseconds before timing out.\n")
LOGS = {"job/rank_%d.log" % rank: (LINE % (rank, rank)).encode() for rank in range(2)}


def tar(members, mode="w"):
    """Members: name -> bytes, or a TarInfo."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as archive:
        for name, content in members.items():
            info = content if isinstance(content, tarfile.TarInfo) else tarfile.TarInfo(name)
            if info is not content:
                info.size = len(content)
            archive.addfile(info, None if info is content else io.BytesIO(content))
    return file.getvalue()


def zipped(members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def link(name, kind):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, "/etc/hostname"
    return info


class Archives(Importer):
    def setUp(self):
        super().setUp()
        if "built without libarchive" in self.importing(self.write("x.zip", zipped(LOGS))).err:
            raise unittest.SkipTest("built without libarchive")

    def test_all_kinds_say_the_same(self):
        both = b"".join(LOGS.values())
        archives = {
            "a.tar": tar(LOGS), "a.tar.gz": tar(LOGS, "w:gz"), "a.tar.xz": tar(LOGS, "w:xz"), "a.tar.bz2": tar(LOGS, "w:bz2"),
            "a.zip": zipped(LOGS), "a.log.xz": lzma.compress(both), "a.log.bz2": bz2.compress(both), "no-name": zipped(LOGS),
            "b.tar": tar({name + ".gz": gzip.compress(content) for name, content in LOGS.items()}),
        }
        for name, content in archives.items():
            with self.subTest(name):
                result = self.importing(self.write(name, content))
                self.assertEqual([(f["code"], [s["ranks"] for s in f["sides"]]) for f in result.findings if f["severity"] == "error"],
                                 [("DC904", ["0-1"])], result.err)

    def test_names_are_only_shown(self):
        outside = os.path.join(self.folder, "outside.log")
        members = {"../" * 9 + outside.lstrip("/"): LOGS["job/rank_0.log"], outside: LOGS["job/rank_1.log"],
                   "a\x1b[31m\nb": b"nothing\n", "link": link("link", tarfile.SYMTYPE), "hard": link("hard", tarfile.LNKTYPE),
                   "pipe": link("pipe", tarfile.FIFOTYPE)}
        result = self.importing(self.write("evil.tar", tar(members)))
        self.assertEqual([f["code"] for f in result.findings if f["severity"] == "error"], ["DC904"])
        self.assertFalse(os.path.exists(outside))
        self.assertIn("evil.tar: left out 3 of its members, which are links or devices", result.err)
        self.assertNotIn("\x1b", result.err)

    def test_a_bomb_is_refused(self):
        packer = lzma.LZMACompressor(preset=1)
        bomb = b"".join(packer.compress((b"b" * 65535 + b"\n") * 16) for _ in range(80)) + packer.flush()
        result = self.importing(self.write("bomb.xz", bomb))
        self.assertIn("it unpacks to more than 1032 times its size", result.err)

    def test_damage_is_said(self):
        whole = {"a.tar.gz": tar(LOGS, "w:gz"), "a.tar.xz": tar(LOGS, "w:xz"), "a.tar": tar({"rank_0.log": LOGS["job/rank_0.log"] * 900})}
        for name, content in whole.items():
            with self.subTest(name):
                result = self.importing(self.write(name, content[:len(content) * 2 // 3]))
                self.assertRegex(result.err, "was cut|damaged or cut")


if __name__ == "__main__":
    main()
