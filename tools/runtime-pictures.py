#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""runtime-pictures.py [BUILD [NAME…]]: makes docs/pictures/runtime-NAME.png, as root, with chromium, and python3, node or java.

Each program of docs/examples is started as anybody would start it; then `sysprof record -p PID -d 5 -o app.html`.
"""
import os
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(TOP, "build"))
EXAMPLES = os.path.join(TOP, "docs", "examples")
LARGEST = 160_000  # bytes of a picture
HEIGHT = 720

os.environ.setdefault("BUILD", BUILD)
sys.dont_write_bytecode = True
sys.path.append(os.path.join(TOP, "tests", "e2e"))
sys.path.append(os.path.join(TOP, "tools"))

import libbrowser  # noqa: E402, by its path
from libpictures import shrink  # noqa: E402

# name: (command in docs/examples, the function that the picture is zoomed to)
PROGRAMS = {
    "python": ([sys.executable, "app.py"], "handle_request"),
    "node": (["node", "app.js"], "handleRequest"),
    "java": (["java", "App.java"], "App.handleRequest"),
}


# pixels; below is what starts the program
SCROLL = {"python": 300, "node": 380, "java": 300}


def record(command, folder):
    """Once it has got beyond its start. The page."""
    program = subprocess.Popen(command, cwd=EXAMPLES)
    try:
        time.sleep(2)
        subprocess.run([os.path.join(BUILD, "sysprof"), "record", "-p", str(program.pid), "-d", "5", "-o", "app.html"], check=True, cwd=folder)
        return os.path.join(folder, "app.html")
    finally:
        program.kill()
        program.wait()


ZOOM = """{
const tree = page.pictures().flame.tree;
const node = [...Array(tree.count).keys()].find((i) => tree.fn[i] >= 0 && page.profile.nameOf(tree.fn[i]) === FUNCTION);
if (node) page.change({node, zoom: null});
}
new Promise((r) => setTimeout(r, 800))
"""


def take(browser, page_path, name, function):
    page = browser.page("about:blank")
    page.call("Emulation.setDeviceMetricsOverride", width=1280, height=HEIGHT, deviceScaleFactor=1, mobile=False)
    page.call("Page.navigate", url="file://" + page_path)
    page.wait("document.documentElement.dataset.ready === 'yes'")
    page.evaluate(ZOOM.replace("FUNCTION", repr(function)))
    page.mouse("mouseWheel", 640, HEIGHT - 200, deltaX=0, deltaY=-SCROLL[name])
    page.evaluate("new Promise((r) => setTimeout(r, 500))")
    picture = os.path.join(TOP, "docs", "pictures", f"runtime-{name}.png")
    page.screenshot(picture)
    if page.messages():
        sys.exit(f"{name}: {page.messages()}")
    page.close()
    shrink(picture)
    size = os.path.getsize(picture)
    print(f"docs/pictures/runtime-{name}.png: {size} bytes")
    if size > LARGEST:
        sys.exit(f"larger than {LARGEST} bytes")


def main():
    wanted = sys.argv[2:] or list(PROGRAMS)
    with tempfile.TemporaryDirectory(prefix="pictures-") as folder, libbrowser.Browser() as browser:
        for name in wanted:
            command, function = PROGRAMS[name]
            take(browser, record(command, folder), name, function)


main()
