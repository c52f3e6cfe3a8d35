# SPDX-License-Identifier: BSD-2-Clause
"""The page of .html: how fast it is written, how large it is, when its first picture is there, and how smoothly
it moves. In headless Chromium without a GPU, of a made-up profile without two equal neighbours."""
import os
import subprocess
import sys

from libbench import Broken, Runs, bench, budget, at_least, pick, scratch, spread, table

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))

import libbrowser  # noqa: E402, of the tests
import libe2e  # noqa: E402

SAMPLES, THREADS, STACKS = 1_000_000, 40, 100_000
LARGE_SAMPLES, LARGE_THREADS = 4_000_000, 400
READY = "document.documentElement.dataset.ready === 'yes'"
FRAMES = 180

# Moves once a picture; the pictures a second, and ms of work in each: the median and the 99th percentile.
MOVE = """new Promise((done) => {
  const took = [], begin = performance.now();
  const step = () => {
    const before = performance.now();
    (%s)(took.length);
    took.push(performance.now() - before);
    if (took.length < FRAMES) return requestAnimationFrame(step);
    const sorted = [...took].sort((a, b) => a - b);
    done({rate: 1000 * FRAMES / (performance.now() - begin), p50: sorted[FRAMES >> 1], p99: sorted[Math.floor(FRAMES * 0.99)]});
  };
  requestAnimationFrame(step);
})""".replace("FRAMES", str(FRAMES))

MOVES = {
    "panning the flame graph": ("page.change({zoom: [0.2, 0.6], view: 'flame'})",
                                "(i) => page.pictures().flame.pan(i % 60 < 30 ? 0.01 : -0.01)"),
    "zooming it": ("page.change({zoom: [0, 1], view: 'flame'})",
                   "(i) => page.pictures().flame.scaleBy(i % 60 < 30 ? 0.95 : 1 / 0.95, 0.4)"),
    "panning the time order": ("page.change({zoom: null, view: 'time', time: [5e6, 6e6]})",
                               "(i) => page.pictures().chart.pan(i % 60 < 30 ? 0.02 : -0.02)"),
    "dragging a selection of time": ("page.change({time: null, view: 'flame'})",
                                     "(i) => page.change({time: [1e6, 2e6 + i * 1e5]}, false)"),
}


def write(samples, threads, name):
    """Seconds and MB."""
    words = [str(samples), str(threads), str(STACKS), "html", scratch(name)]
    out = subprocess.run([bench("big_profile"), *words], check=True, capture_output=True, text=True).stdout
    seconds, peak, _before = map(float, out.split())
    return seconds, peak


def look(path, runs):
    with libbrowser.Browser() as browser:
        page = browser.page("file://" + path)
        page.wait(READY)
        runs["first picture"].append(page.evaluate("performance.getEntriesByName('first-picture')[0].startTime"))
        for name, (prepare, move) in MOVES.items():
            page.evaluate(prepare)
            result = page.evaluate(MOVE % move)
            for key, value in result.items():
                runs[f"{name}: {key}"].append(value)
        if page.messages():
            raise Broken(page.messages())


def pages():
    runs = Runs()
    for _ in range(pick(5, 2)):
        seconds, peak = write(LARGE_SAMPLES, LARGE_THREADS, "large.html")
        runs["large: s"].append(seconds)
        runs["large: MB"].append(peak)
    write(SAMPLES, THREADS, "page.html")
    size = os.path.getsize(scratch("page.html")) / SAMPLES
    try:
        for _ in range(pick(5, 2)):
            look(scratch("page.html"), runs)
    except libe2e.Skip as skip:
        raise Broken(str(skip)) from skip
    table(f"The page of {SAMPLES:,} samples and {STACKS:,} stacks, in headless Chromium",
          [f"big_profile {SAMPLES} {THREADS} {STACKS} html page.html",
           f"big_profile {LARGE_SAMPLES} {LARGE_THREADS} {STACKS} html large.html"],
          ["", "figure"],
          [["bytes a sample", f"{size:.2f}"], ["first picture, ms", spread(runs["first picture"])],
           [f"{LARGE_SAMPLES // 1000000} M samples of {LARGE_THREADS} threads: s", spread(runs["large: s"], 2)],
           ["  peak memory with the profile itself, MB", spread(runs["large: MB"])]] +
          [[f"{name}: {what}", spread(runs[f"{name}: {key}"], 1)] for name in MOVES
           for key, what in (("rate", "pictures a second"), ("p50", "ms each, p50"), ("p99", "ms each, p99"))],
          [budget("page, bytes a sample", size, 12, "bytes"),
           budget("page, first picture", min(runs["first picture"]), 1000, "ms", 0),
           at_least("page, pictures a second while panning", max(runs["panning the flame graph: rate"]), 59, "a second", 1),
           budget("page, writing 4 M samples", min(runs["large: s"]), 3, "s"),
           budget("page, memory of that", max(runs["large: MB"]), 300, "MB", 0)])
