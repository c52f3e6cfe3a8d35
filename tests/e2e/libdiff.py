# SPDX-License-Identifier: BSD-2-Clause
"""
What `sysprof diff` computes of shares in folded files and .cpuprofile files, written down a second time, with the
distributions of scipy. Run as a program by the python that has scipy: libdiff.py NOISE OLD… -- NEW…, which prints JSON.
"""
import collections
import json
import math
import sys

Q = 0.05
MIN = 20


def read(path):
    """{stack: samples}; the first field is a thread's name."""
    stacks = collections.Counter()
    with open(path, encoding="utf-8") as file:
        for line in file:
            stack, count = line.rstrip("\n").rsplit(" ", 1)
            stacks[tuple(stack.split(";")[1:])] += int(count)
    return stacks


def read_timed(path):
    """([(ns from the start, stack)], ns in all)"""
    with open(path, encoding="utf-8") as file:
        profile = json.load(file)
    nodes = {node["id"]: node for node in profile["nodes"]}
    stacks = {profile["nodes"][0]["id"]: ()}
    for node in profile["nodes"]:
        for child in node.get("children", []):
            stacks[child] = stacks[node["id"]] + (nodes[child]["callFrame"]["functionName"],)
    samples, at = [], 0
    for node, delta in zip(profile["samples"], profile["timeDeltas"]):
        at += delta * 1000
        samples.append((at, stacks[node]))
    return samples, (profile["endTime"] - profile["startTime"]) * 1000


class Side:
    def __init__(self, paths):
        self.timed = [read_timed(path) for path in paths if path.endswith(".cpuprofile")]
        self.files = [collections.Counter(stack for _, stack in samples) for samples, _ in self.timed]
        self.files = self.files or [read(path) for path in paths]

    def shift(self):
        """Of the longest file: a block is 2 to its power ns."""
        longest = max([duration for _, duration in self.timed], default=0)
        return max(longest.bit_length() - 7, 0)

    def blocks(self, wanted, shift):
        """The samples whose stack is `wanted`, by block of time."""
        result = []
        for samples, duration in self.timed:
            count = max(duration >> shift, 1)
            counts = [0] * count
            for at, stack in samples:
                counts[min(at >> shift, count - 1)] += wanted(stack)
            result += counts
        return result

    def counts(self, wanted):
        """By file: the samples whose stack is `wanted`."""
        return [sum(count for stack, count in file.items() if wanted(stack)) for file in self.files]


def whole(_stack):
    return True


def median_ratio(weighed):
    """Of (ratio, weight): half of the weight has this ratio or less."""
    whole_weight, below = sum(weight for _, weight in weighed), 0
    for ratio, weight in sorted(weighed):
        below += weight
        if 2 * below >= whole_weight:
            return ratio
    return 1


class Comparison:
    def __init__(self, old, new, noise):
        from scipy import stats
        self.stats, self.noise = stats, noise
        self.sides = Side(old), Side(new)
        self.by_run = min(len(old), len(new)) >= 3
        self.changed = set()
        self.size = [sum(side.counts(whole)) for side in self.sides]

    def unchanged(self, stack):
        return stack[-1] not in self.changed

    def estimate(self, side, wanted):
        """(value, variance, degrees of freedom)"""
        base = self.sides[0].counts(self.unchanged)
        scale = sum(base) / self.size[0]
        part, rest = side.counts(wanted), side.counts(self.unchanged)
        n, u = sum(part), sum(rest)
        both = sum(side.counts(lambda stack: wanted(stack) and self.unchanged(stack)))
        ratio = n / u
        of_samples = (max(n - 2 * ratio * both + ratio ** 2 * u, 0) if n else 0.5) / u ** 2
        if self.by_run:
            values = [scale * p / r for p, r in zip(part, rest)]
            mean = sum(values) / len(values)
            variance = sum((v - mean) ** 2 for v in values) / (len(values) - 1)
            return mean, max(variance / len(values), scale ** 2 * of_samples), len(values) - 1
        freedom, variance = math.inf, of_samples
        of_blocks, blocks = self.block_variance(side, wanted, ratio)
        if of_blocks > variance:
            variance, freedom = of_blocks, blocks - 1
        noisy = (n - both ** 2 / u) * sum(side.counts(whole)) / len(side.files)
        of_runs = (self.noise / u) ** 2 * noisy
        if variance > 0:
            freedom *= ((variance + of_runs) / variance) ** 2
        return scale * ratio, scale ** 2 * (variance + of_runs), freedom

    def block_variance(self, side, wanted, ratio):
        """(variance of the ratio by blocks, their number): doubled until it has settled."""
        shift = max(s.shift() for s in self.sides)
        part, rest = side.blocks(wanted, shift), side.blocks(self.unchanged, shift)
        best, blocks, step = 0.0, 0, 1
        while len(part) // step >= 16:
            count = len(part) // step
            rows = [(sum(part[i:i + step]), sum(rest[i:i + step])) for i in range(0, count * step, step)]
            size = sum(r for _, r in rows)
            variance = sum((p - ratio * r) ** 2 for p, r in rows) / size ** 2 * count / (count - 1)
            settled = step > 1 and variance <= best * (1 + 1 / math.sqrt(count))
            if variance > best:
                best, blocks = variance, count
            if settled:
                break
            step *= 2
        return best, blocks

    def test(self, wanted):
        (old, old_var, old_df), (new, new_var, new_df) = (self.estimate(s, wanted) for s in self.sides)
        variance = old_var + new_var
        parts = old_var ** 2 / old_df + new_var ** 2 / new_df
        freedom = variance ** 2 / parts if parts > 0 else math.inf
        dist = self.stats.norm() if math.isinf(freedom) else self.stats.t(freedom)
        error = math.sqrt(variance)
        if variance > 0:
            p = 2 * dist.sf(abs(new - old) / error)
            half = error * dist.isf(0.025)
        else:
            p, half = float(new == old), 0
        result = {"old": old, "new": new, "p": p, "low": new - old - half, "high": new - old + half}
        if old > 0 and new > 0:
            result.update(self.relative(old, old_var, old_df, new, new_var, new_df))
        return result

    def relative(self, old, old_var, old_df, new, new_var, new_df):
        a, b = old_var / old ** 2, new_var / new ** 2
        parts = a ** 2 / old_df + b ** 2 / new_df
        freedom = (a + b) ** 2 / parts if parts > 0 else math.inf
        dist = self.stats.norm() if math.isinf(freedom) else self.stats.t(freedom)
        half = math.sqrt(a + b) * dist.isf(0.025)
        ratio = new / old
        return {"relative": ratio - 1, "relative_low": ratio * math.exp(-half) - 1,
                "relative_high": ratio * math.exp(half) - 1}

    def functions(self):
        """Those with enough samples: {name: (total, own)} of both sides."""
        total, own = collections.Counter(), collections.Counter()
        for side in self.sides:
            for file in side.files:
                for stack, count in file.items():
                    own[stack[-1]] += count
                    for name in set(stack):
                        total[name] += count
        return {name: (total[name], own[name]) for name in total if total[name] >= MIN}

    def find_changed(self, functions):
        """Own code that differs, one function at a time, the largest difference first."""
        while True:
            tests = []
            for name, (_, own) in functions.items():
                if own < MIN or name in self.changed:
                    continue
                tests.append((name, self.test(lambda stack, name=name: stack[-1] == name)))
            middle = median_ratio([(t["new"] / t["old"], t["old"]) for _, t in tests if t["old"] > 0])
            found = [(abs(t["new"] - t["old"]), name) for name, t in tests
                     if t["p"] < Q / len(functions) and
                     abs(t["new"] - middle * t["old"]) >= 0.5 * abs(t["new"] - t["old"])]
            if not found:
                return
            self.changed.add(max(found)[1])
            for side, size in zip(self.sides, self.size):
                if sum(side.counts(self.unchanged)) < size / 2:
                    self.changed = set()
                    return

    def tests(self):
        functions = self.functions()
        self.find_changed(functions)
        wanted = {("total", False): (whole, sum(self.size), True)}
        for name, (total, own) in functions.items():
            wanted[name, False] = (lambda stack, name=name: name in stack), total, own > 0.95 * total
            if own >= MIN and own <= 0.95 * total:
                wanted[name, True] = (lambda stack, name=name: stack[-1] == name), own, True
        return {key: dict(self.test(test), size=size, is_own=own) for key, (test, size, own) in wanted.items()}


def add_q(tests, size):
    """Benjamini and Hochberg, weighted by the samples at stake, most of all those of 5 %; own code has nine tenths."""
    weight = {k: max(min(t["size"], size - t["size"]), 1) / size for k, t in tests.items()}
    weight = {k: w if w < 0.05 else 0.05 ** 2 / w for k, w in weight.items()}
    key = "total", False
    weight[key] = 0.05 if tests[key]["low"] != tests[key]["high"] else 0
    for is_own, part in (True, 0.9), (False, 0.1):
        family = [k for k in tests if tests[k]["is_own"] == is_own]
        total = sum(weight[k] for k in family)
        alone = not any(weight[k] for k in tests if k not in family)
        weight.update({k: weight[k] / total * (1 if alone else part) for k in family if total})
    mean = sum(weight.values()) / len(weight)
    scaled = {k: t["p"] * mean / weight[k] if weight[k] else math.inf for k, t in tests.items()}
    order = sorted(tests, key=scaled.get)
    least = 1.0
    for rank in range(len(order), 0, -1):
        k = order[rank - 1]
        least = min(least, scaled[k] * len(order) / rank)
        tests[k]["q"] = least


def main():
    noise, *words = sys.argv[1:]
    dashes = words.index("--")
    c = Comparison(words[:dashes], words[dashes + 1:], float(noise))
    tests = c.tests()
    add_q(tests, sum(c.size))
    print(json.dumps([{"function": name, "own_code": own, **t} for (name, own), t in tests.items()]))


if __name__ == "__main__":
    main()
