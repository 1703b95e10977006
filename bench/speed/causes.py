"""What slows a made-up job: on which ranks, from when, how much, and which finding reports it."""

# The code of the finding that reports a kind.
CODES = {
    "slow-host": "DC601", "small-operations": "DC602", "unoverlapped": "DC603", "slow-device": "DC604", "throttle-after": "DC604",
    "more-work": "DC605", "slow-link": "DC606", "slow-since": "DC607", "pause": "DC608",
}


class Cause:
    """ranks: on which it acts; since: from which iteration; amount: seconds or a factor less 1, by kind."""

    def __init__(self, kind, ranks, since=0, amount=0.0, period=0, mode=""):
        self.kind, self.ranks, self.since, self.amount, self.period, self.mode = kind, tuple(ranks), since, amount, period, mode

    def prepare(self, groups):
        """Acts on the communicators, before the job starts."""

    def apply(self, rank, iteration):
        """Acts on a rank at the start of an iteration; returns for how long its host stalls."""
        if iteration < self.since:
            return 0.0
        if self.kind == "slow-host":
            return self.amount
        if self.kind in ("slow-device", "throttle-after", "slow-since"):
            rank.device *= 1 + self.amount
        return 0.0
