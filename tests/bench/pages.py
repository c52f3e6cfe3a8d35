# SPDX-License-Identifier: BSD-2-Clause
"""The page of .html: how fast it is written, how large it is, when its first picture is there, and how smoothly
it moves. In headless Chromium without a GPU, of a made-up profile without two equal neighbours."""
import os
import subprocess
import sys

from libbench import SYSPROF, Broken, Runs, bench, budget, at_least, pick, scratch, spread, table

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))

import html_code  # noqa: E402, of the tests
import libbrowser  # noqa: E402
import libe2e  # noqa: E402

SAMPLES, THREADS, STACKS = 1_000_000, 40, 100_000
LARGE_SAMPLES, LARGE_THREADS = 4_000_000, 400
MANY_THREADS, SERVICES = 500, 100
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


# What is listed beside the timeline, in a timeline of the height of a window: folded services, and all their threads.
LISTS = {"folded": "", "open": "page.pictures().timeline.find('worker');"}
SCROLL = ("{ document.getElementById('timeline').style.height = '600px'; %s }",
          "(i) => (page.pictures().timeline.rows.scrollTop = 90 * (i % 120 < 60 ? i % 120 : 120 - i % 120))")

# Of a function that up to half of the samples have: ms until the picture of what is left is painted.
FILTER = """(() => {
  page.change({view: 'flame', group: GROUP, time: null, filter: ''});
  const { total } = page.rows().ticks, half = page.whole().ticks / 2, f = total.reduce((best, n, f) => (n < half && !(n <= total[best]) ? f : best), -1);
  const text = `--KIND=^${page.profile.nameOf(f).replace(/[^0-9A-Za-z_]/g, (c) => `\\\\${c}`)}$`, after = new MessageChannel();
  return new Promise((done) => setTimeout(() => {
    const before = performance.now();
    after.port1.onmessage = () => done(performance.now() - before);
    page.change({filter: `'${text}'`});
    requestAnimationFrame(() => after.port2.postMessage(0));
  }, 200)); })()"""
RATES = (("rate", "pictures a second"), ("p50", "ms each, p50"), ("p99", "ms each, p99"))
FILTERS = ("focus", "ignore", "hide", "show-from", "collapse")


def write(samples, threads, name, services=0):
    """Seconds and MB."""
    words = [str(samples), str(threads), str(STACKS), "html", scratch(name), str(services)]
    out = subprocess.run([bench("big_profile"), *words], check=True, capture_output=True, text=True).stdout
    seconds, peak, _before = map(float, out.split())
    return seconds, peak


def move(page, name, steps, runs):
    prepare, step = steps
    page.evaluate(prepare)
    for key, value in page.evaluate(MOVE % step).items():
        runs[f"{name}: {key}"].append(value)


def look(path, runs, name, group, moves):
    with libbrowser.Browser() as browser:
        page = browser.page("file://" + path)
        page.wait(READY)
        runs[f"{name}: first picture"].append(page.evaluate("performance.getEntriesByName('first-picture')[0].startTime"))
        for what, steps in moves.items():
            move(page, what, steps, runs)
        for kind in FILTERS:
            runs[f"{name}: --{kind}"].append(page.evaluate(FILTER.replace("KIND", kind).replace("GROUP", f"'{group}'")))
        if page.messages():
            raise Broken(page.messages())


def look_at_services(runs):
    """Many threads of many services, as on a host that runs containers."""
    write(SAMPLES, MANY_THREADS, "services.html", SERVICES)
    scrolls = {f"scrolling threads, {name}": (SCROLL[0] % prepare, SCROLL[1]) for name, prepare in LISTS.items()}
    for _ in range(pick(5, 2)):
        look(scratch("services.html"), runs, "services", "service", scrolls)
    table(f"The page of {SAMPLES:,} samples of {MANY_THREADS} threads in {SERVICES} services, in headless Chromium",
          [f"big_profile {SAMPLES} {MANY_THREADS} {STACKS} html services.html {SERVICES}"], ["", "figure"],
          [["first picture, ms", spread(runs["services: first picture"])]] +
          [[f"a filter by service, --{kind}: ms", spread(runs[f"services: --{kind}"], 1)] for kind in FILTERS] +
          [[f"{name}: {what}", spread(runs[f"{name}: {key}"], 1)] for name in scrolls for key, what in RATES],
          [budget("page of 500 threads, first picture", min(runs["services: first picture"]), 1000, "ms", 0),
           budget("page of 500 threads, a filter by service", max(min(runs[f"services: --{kind}"]) for kind in FILTERS), 150, "ms", 0)] +
          [at_least(f"page of 500 threads, pictures a second while {name}", max(runs[f"{name}: rate"]), 59, "a second", 1)
           for name in scrolls])


# Opening Code of a function, after that of another one: ms until it is laid out, of each time.
CODE = """(async () => {
  const find = (name) => page.profile.functionName.findIndex((_, f) => page.profile.nameOf(f) === name), large = find('large'), took = [];
  page.change({view: 'code', fn: large});
  await page.code().load();
  for (let i = 0; i < TIMES; i++) {
    page.change({view: 'code', fn: find('main'), copy: ''});
    await new Promise((done) => setTimeout(done, 20));
    const before = performance.now();
    page.change({view: 'code', fn: large, copy: ''});
    document.getElementById('view-code').getBoundingClientRect();
    took.push(performance.now() - before);
  }
  return [took, page.code().figuresOfAll().texts.length]; })()"""


def look_at_code():
    source, program, path = scratch("large.c"), scratch("large"), scratch("code.html")
    with open(source, "wb") as file:
        file.write(html_code.LARGE)
    subprocess.run(["cc", "-O0", "-g", "-o", program, source], check=True)
    subprocess.run([SYSPROF, "record", "-q", "-o", path, "--", program], check=True)
    with libbrowser.Browser() as browser:
        page = browser.page("file://" + path)
        page.wait(READY)
        took, instructions = page.evaluate(CODE.replace("TIMES", str(pick(30, 5))))
    table(f"Code of a function of {instructions:,} instructions in the page, in headless Chromium", ["sysprof record -o code.html -- large"], ["", "figure"],
          [["opened, ms", spread(took, 1)]], [budget("page, opening Code of 10,000 instructions", min(took), 100, "ms", 0)])


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
            look(scratch("page.html"), runs, "page", "merged", MOVES)
        look_at_services(runs)
        look_at_code()
    except libe2e.Skip as skip:
        raise Broken(str(skip)) from skip
    table(f"The page of {SAMPLES:,} samples and {STACKS:,} stacks, in headless Chromium",
          [f"big_profile {SAMPLES} {THREADS} {STACKS} html page.html",
           f"big_profile {LARGE_SAMPLES} {LARGE_THREADS} {STACKS} html large.html"],
          ["", "figure"],
          [["bytes a sample", f"{size:.2f}"], ["first picture, ms", spread(runs["page: first picture"])],
           [f"{LARGE_SAMPLES // 1000000} M samples of {LARGE_THREADS} threads: s", spread(runs["large: s"], 2)],
           ["  peak memory with the profile itself, MB", spread(runs["large: MB"])]] +
          [[f"a filter, --{kind}: ms", spread(runs[f"page: --{kind}"], 1)] for kind in FILTERS] +
          [[f"{name}: {what}", spread(runs[f"{name}: {key}"], 1)] for name in MOVES for key, what in RATES],
          [budget("page, bytes a sample", size, 12, "bytes"),
           budget("page, first picture", min(runs["page: first picture"]), 1000, "ms", 0),
           at_least("page, pictures a second while panning", max(runs["panning the flame graph: rate"]), 59, "a second", 1),
           budget("page, a filter of 1 M samples", max(min(runs[f"page: --{kind}"]) for kind in FILTERS), 150, "ms", 0),
           budget("page, writing 4 M samples", min(runs["large: s"]), 3, "s"),
           budget("page, memory of that", max(runs["large: MB"]), 300, "MB", 0)])
