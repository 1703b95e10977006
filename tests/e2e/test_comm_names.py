"""What the program calls its communicators (ncclConfig_t.commName) is what ddpcheck calls them, everywhere."""

import sys

from line import Line


def main():
    with Line(sys.argv[1], name="comm-names") as line:
        _, _, err = line.run([line.trainer, "--ranks", "4", "--iterations", "20", "--fault", "partial-barrier"], ["--timeout", "3"])
        assert "#0 of comm control (4 ranks); rank 3 never called it" in err, err
        _, text, _ = line.call([line.tool, "report", line.trace])
        words = " ".join(text.split())
        assert "#0 of comm control (4 ranks); rank 3 never called it" in words, text
        for name in ("control", "generator", "discriminator"):
            assert "comm %s (communicator " % name in text, text
        _, findings, _ = line.report()
        assert "of comm generator (4 ranks) that ranks 0-2 have not called" in findings[0]["sides"][1]["where"], findings
        for arguments, said in ((["tui", "--once"], "comm control  "), (["tui", "--once", "--view", "sequence"], "comm control, 4 ranks"),
                                (["tui", "--once", "--view", "timeline"], "comm control, "), (["tui", "--once", "--view", "memory"], "of comm generator"),
                                (["tui", "--once", "--view", "waits"], "of comm control (4 ranks)"),
                                (["export", "--format", "html"], "comm generator"),
                                (["export", "--format", "prometheus"], 'comm_name="discriminator"')):
            _, text, err_reader = line.call([line.tool, *arguments, line.trace])
            assert said in text, (arguments, text[:4000], err_reader)
    print(err.splitlines()[0])


if __name__ == "__main__":
    main()
