#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""pictures.py [BUILD [NAME…]]: makes docs/pictures/page-*.png, as root, with python3, node, clang and chromium.

It records the three at once for ten seconds, writes the page of .html, and looks at it in headless Chromium; for
page-compare.png it compares the two versions of docs/examples/orders.c, for page-waiting.png and page-locks.png it records
docs/examples/convoy.c.
"""
import os
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(TOP, "build"))
LARGEST = 200_000  # bytes of a picture
SECONDS = 10

os.environ.setdefault("BUILD", BUILD)
sys.dont_write_bytecode = True
sys.path.append(os.path.join(TOP, "tests", "e2e"))
sys.path.append(os.path.join(TOP, "tools"))

import libbrowser  # noqa: E402, by its path
from libpictures import shrink  # noqa: E402

# Works for a part of each second, as many services do: a pattern for the heat map.
PYTHON = """
import json, re, time, zlib
def load(n): return json.loads(json.dumps([{"id": i, "name": "item %d" % i, "tags": ["a", "b"]} for i in range(n)]))
def pack(rows): return zlib.compress(json.dumps(rows).encode(), 6)
def index(rows): return {word: row["id"] for row in rows for word in re.findall(r"\\w+", row["name"])}
def handle(): rows = load(600); index(rows); return pack(rows)
end = time.time() + SECONDS
while time.time() < end:
    begin = time.time()
    while time.time() - begin < 0.45: handle()
    time.sleep(max(0, begin + 1 - time.time()))
"""

NODE = """
function sortRows(rows) { return rows.sort((a, b) => a.weight - b.weight); }
function makeRows(n) { return Array.from({length: n}, (_, i) => ({id: i, weight: Math.sin(i) * n, text: 'row ' + i})); }
function render(rows) { return rows.map((r) => `<li>${r.text.replace('row', 'line')}: ${r.weight.toFixed(2)}`).join(''); }
const end = Date.now() + SECONDS * 1000;
while (Date.now() < end) render(sortRows(makeRows(3000)));
"""

COMPILE = ("for f in firefox cpuprofile folded report; do clang -O2 -g -std=gnu11 -D_GNU_SOURCE -Iinclude -Iuserspace "
           "-c userspace/export/$f.c -o /dev/null; done")

WORKLOAD = f"""
python3 service.py &
node --perf-basic-prof --interpreted-frames-native-stack server.js &
(cd "$SOURCES" && while kill -0 $! 2>/dev/null; do {COMPILE}; sleep 1; done) &
wait
"""

# name: (fragment, dark, width, height, script before)
PICTURES = {
    "flame": ("group=process", False, 1280, 800, "hover('sortRows')"),
    "search": ("group=process&down=1&query=Eval", True, 1280, 800, ""),
    "time": ("view=time&threads=THREAD&time=2000000-2120000", False, 1280, 800, ""),
    "sandwich": ("view=sandwich", False, 1280, 800, "choose('_PyEval_EvalFrameDefault')"),
    "heat": ("view=heat&threads=THREAD&time=3000000-3460000", True, 1280, 800, ""),
}

COMPARED = {"compare": ("", False, 1280, 640, "hover('find_discount')")}

WAITING = {
    "waiting": ("mode=waiting&measure=cpu&group=state", False, 1280, 700, "hover('pthread_mutex_lock')"),
    "locks": ("mode=wall&measure=cpu&view=locks", False, 1280, 640, ""),
}

HELPERS = """
const choose = (name) => page.change({fn: [...Array(page.profile.functionName.length).keys()].find((f) => page.profile.nameOf(f) === name) ?? -1});
const hover = (name) => {
  const f = page.pictures().flame, at = f.surface.canvas.getBoundingClientRect();
  for (let i = 1; i < f.tree.count; i++) {
    const box = f.tree.fn[i] >= 0 && page.profile.nameOf(f.tree.fn[i]) === name && f.boxOf(i);
    if (!box || box.w < 50) continue;
    f.surface.canvas.dispatchEvent(new PointerEvent('pointermove', {clientX: at.left + box.x + 40, clientY: at.top + box.y + 8, bubbles: true}));
    return;
  }
};
"""


def record(folder):
    for name, text in (("service.py", PYTHON), ("server.js", NODE), ("workload.sh", WORKLOAD)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text.replace("SECONDS", str(SECONDS)))
    command = "record -F 997 -o page.sysprof -- bash workload.sh".split()
    subprocess.run([os.path.join(BUILD, "sysprof"), *command], check=True, cwd=folder, env={**os.environ, "SOURCES": TOP})
    return os.path.join(folder, "page.sysprof")


def compare(folder):
    source, path = os.path.join(TOP, "docs", "examples", "orders.c"), os.path.join(folder, "compared.html")
    for name, flags in ("old", []), ("new", ["-DNEW"]):
        subprocess.run(["cc", "-O1", "-g", *flags, "-o", os.path.join(folder, name), source], check=True)
    subprocess.run([os.path.join(BUILD, "sysprof"), "compare", "--view", "share", "-n", "8", "-o", path, "--",
                    os.path.join(folder, "old"), "---", os.path.join(folder, "new")], check=True)
    return path


def record_waits(folder):
    source, path = os.path.join(TOP, "docs", "examples", "convoy.c"), os.path.join(folder, "convoy.html")
    subprocess.run(["cc", "-O1", "-g", "-pthread", "-o", "convoy", source], check=True, cwd=folder)
    subprocess.run([os.path.join(BUILD, "sysprof"), "record", "--wall", "--wall-cpu", "5%", "-o", "convoy.html", "--", "./convoy", "4"], check=True, cwd=folder)
    return path


def convert(folder):
    path = os.path.join(folder, "page.html")
    subprocess.run([os.path.join(BUILD, "sysprof"), "convert", record(folder), "-o", path], check=True)
    return path


def take(browser, path, name, fragment, dark, width, height, script):
    page = browser.page("about:blank")
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
    page.dark(dark)
    page.call("Page.navigate", url="file://" + path)
    page.wait("document.documentElement.dataset.ready === 'yes'")
    if "THREAD" in fragment:
        thread = page.evaluate("page.profile.threads.filter((t) => page.profile.threadName(t) === 'python3').sort((a, b) => b.cpu - a.cpu)[0].number")
        fragment = fragment.replace("THREAD", str(thread))
    page.evaluate(f"location.hash = {fragment!r}; new Promise((r) => setTimeout(r, 300))")
    page.evaluate(f"{{ {HELPERS} {script}; }} new Promise((r) => setTimeout(r, 300))")
    picture = os.path.join(TOP, "docs", "pictures", f"page-{name}.png")
    page.screenshot(picture)
    if page.messages():
        sys.exit(f"{name}: {page.messages()}")
    shrink(picture)
    size = os.path.getsize(picture)
    print(f"docs/pictures/page-{name}.png: {size} bytes")
    if size > LARGEST:
        sys.exit(f"larger than {LARGEST} bytes")
    page.close()


def main():
    os.makedirs(os.path.join(TOP, "docs", "pictures"), exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="pictures-") as folder:
        for make, pictures in (convert, PICTURES), (compare, COMPARED), (record_waits, WAITING):
            wanted = {name: rest for name, rest in pictures.items() if name in sys.argv[2:] or not sys.argv[2:]}
            if not wanted:
                continue
            path = make(folder)
            with libbrowser.Browser() as browser:
                for name, rest in wanted.items():
                    take(browser, path, name, *rest)


main()
