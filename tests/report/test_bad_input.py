"""What is no trace, or a broken one, or wrong use: a message that names it, status 2, and never a crash."""

import os
import random
import shutil
import socket
import sqlite3
import unittest

from tool import Tool, main


class BadInput(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tool = Tool(main.build)
        cls.tool.make("missing")

    @classmethod
    def tearDownClass(cls):
        cls.tool.close()

    def copy(self, name):
        """A copy of a good trace to be broken, as the database's path."""
        folder = self.tool.path(name)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.tool.path("missing"), folder)
        return os.path.join(folder, "node-01.db")

    def refused(self, *arguments, says):
        status, out, err = self.tool.call(*arguments)
        self.assertEqual(status, 2, err)
        self.assertTrue(err.startswith("ddpcheck"), err)
        self.assertEqual(err.count("\n"), 1, err)
        for words in says:
            self.assertIn(words, err)
        return out

    def write(self, name, content):
        with open(self.tool.path(name), "wb") as file:
            file.write(content)

    def test_not_there(self):
        self.refused("report", "nowhere", says=["nowhere", "there is no trace"])

    def test_the_address_of_a_hub(self):
        """One that nobody listens at: the message has no token."""
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            address = "nats://secret@127.0.0.1:%d" % sock.getsockname()[1]
            status, out, err = self.tool.call("report", address)
        self.assertEqual((status, out, err.count("\n")), (2, "", 1), err)
        self.assertRegex(err, "127.0.0.1|libnats")      # libnats need not be there
        self.assertNotIn("secret", err)

    def test_no_database(self):
        self.write("notes.db", b"Dear diary, today the job hung again. " * 100)
        self.refused("report", "notes.db", says=["notes.db is not a trace"])
        self.write("nothing.db", b"")
        self.refused("report", "nothing.db", says=["nothing.db is not a trace"])

    def test_another_programs_database(self):
        with sqlite3.connect(self.tool.path("other.db")) as other:
            other.execute("CREATE TABLE event(a)")
        self.refused("report", "other.db", says=["other.db is not a trace"])

    def test_directory_without_a_trace(self):
        os.mkdir(self.tool.path("bare"))
        self.refused("report", "bare", says=["bare", "ddpcheck run"])

    def test_newer_schema(self):
        path = self.copy("newer")
        with sqlite3.connect(path) as database:
            database.execute("PRAGMA user_version = 2000")
        database.close()
        self.refused("report", "newer", says=["newer/node-01.db", "2.0"])

    def test_newer_minor_schema_is_read(self):
        path = self.copy("minor")
        with sqlite3.connect(path) as database:
            database.execute("PRAGMA user_version = 1999")
        database.close()
        self.assertEqual(self.tool.call("report", "minor")[0], 1)

    @unittest.skipIf(os.geteuid() == 0, "root may read everything")
    def test_no_permission(self):
        os.chmod(self.copy("secret"), 0)
        self.refused("report", "secret", says=["secret/node-01.db", "Permission denied"])

    def test_cut_off(self):
        """Whatever is left of a database gives either its report or one message, or both."""
        path = self.copy("cut")
        size = os.path.getsize(path)
        for left in [size - 1, size - 4096, size // 2, size // 2 + 100, 8192, 4096, 1000, 99, 16, 1]:
            with self.subTest(left=left):
                os.truncate(self.copy("cut"), left)
                out = self.refused("report", "cut", says=["cut/node-01.db"])
                # What can't be read was recorded all the same, and a part that is clean does not clear the rest.
                self.assertNotIn("Nothing was recorded", out)
                self.assertNotIn("No finding in ", out.replace("No finding in the part", ""))

    def test_noise(self):
        """Pages overwritten with noise: no crash, and an answer."""
        noise = random.Random(7)
        for turn in range(12):
            path = self.copy("noise")
            with open(path, "r+b") as file:
                for _ in range(turn % 3 + 1):
                    file.seek(noise.randrange(100, os.path.getsize(path) - 64))
                    file.write(noise.randbytes(64))
            status, _, err = self.tool.call("report", "noise")
            self.assertIn(status, (0, 1, 2, 3), err)
            self.assertEqual(status == 2, err.startswith("ddpcheck"), err)

    def test_one_bad_of_two(self):
        self.write("bad.db", b"no")
        self.refused("report", "missing", "bad.db", says=["bad.db"])

    def test_records_that_make_no_sense(self):
        path = self.copy("senseless")
        with sqlite3.connect(path) as database:
            database.execute("UPDATE event SET w8 = -1, w5 = -1, w1 = -1 WHERE seq % 7 = 0")
            database.execute("UPDATE event SET api = 9999, phase = 77 WHERE seq % 11 = 0")
        database.close()
        status, _, err = self.tool.call("report", "senseless")
        self.assertIn(status, (0, 1, 3), err)

    def test_wrong_use(self):
        self.refused("report", "--jsno", "missing", says=["--jsno", "--json"])
        self.refused("report", "--fail-on", "sometimes", "missing", says=["error|warning|note", "sometimes"])
        self.refused("report", "--only", "DC999", "missing", says=["DC999", "explain --list"])
        self.refused("report", "--hang-after", "soon", "missing", says=["--hang-after", "soon"])
        self.refused("rport", says=["error: no command 'rport' (did you mean 'report'?). See 'ddpcheck --help'."])
        self.refused("diff", "missing", says=["it takes two traces: ddpcheck diff GOOD BAD"])
        self.refused("run", "--emulate", "0", "--", "true", says=["--emulate takes 1 to 256 devices"])

    def test_programs_that_are_not_there(self):
        if not os.path.exists(os.path.join(main.build, "lib", "libddpcheck.so")):
            self.skipTest("the shim was not built")
        for program, in_path in ("no-such-program", True), ("/no/such/program", False), ("./not-there", False):
            status, _, err = self.tool.call("run", "-o", "none", "--", program)
            self.assertEqual(status, 127, err)
            self.assertEqual("is it in PATH?" in err, in_path, err)


if __name__ == "__main__":
    main()
