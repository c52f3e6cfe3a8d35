#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""pictures.py [BUILD [NAME…]]: makes docs/pictures/page-*.png, as root, with python3, node, clang and chromium.

It records the three at once for ten seconds, writes the page of .html, and looks at it in headless Chromium; for
page-compare.png it compares the two versions of docs/examples/orders.c, for page-code.png it records that, for
page-service.png it records three examples as services, for page-waiting.png and page-locks.png docs/examples/convoy.c. Those of real programs that wait need control groups with limits, PostgreSQL and gunicorn.
"""
import contextlib
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

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
           "-c userspace/formats/out/$f.c -o /dev/null; done")

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
    "time": ("view=time&threads=THREAD&time=BURST120", False, 1280, 800, ""),
    "sandwich": ("view=sandwich", False, 1280, 800, "choose('load')"),
    "heat": ("view=heat&threads=THREAD&time=BURST460", True, 1280, 800, ""),
}

COMPARED = {"compare": ("", False, 1280, 640, "hover('find_discount')")}

CODE = {"code": ("", False, 1280, 700, "choose('sum_order'); page.change({view: 'code'}); document.getElementById('timeline').hidden = true")}

WAITING = {
    "waiting": ("mode=waiting&measure=cpu&group=state", False, 1280, 700, "hover('pthread_mutex_lock')"),
    "locks": ("mode=wall&measure=cpu&view=locks", False, 1280, 640, ""),
}

SERVICES = {"service": ("group=service&sort=name&filter=--service%3Dshop%20--service%3Dsearch%20--show-from%3D%5Ehandle", False, 1280, 800, "showMenu('words')")}

BY_STATE = "mode=waiting&measure=cpu&group=state"
THROTTLED = {"throttled": ("mode=wall&measure=cpu&group=state", False, 1180, 560, "")}
DISK = {"disk": (BY_STATE, False, 1180, 860, "hover('fdatasync')")}
GIL = {"gil": ("mode=waiting&measure=cpu&view=locks", False, 1180, 640, "")}
POOL = {"pool": (BY_STATE + "&parked=1", False, 1180, 640, "")}
PORT = 18765

HELPERS = """
const choose = (name) => page.change({fn: [...Array(page.profile.functionName.length).keys()].find((f) => page.profile.nameOf(f) === name) ?? -1});
const pointAt = (name, type) => {
  const f = page.pictures().flame, at = f.surface.canvas.getBoundingClientRect();
  for (let i = 1; i < f.tree.count; i++) {
    const box = f.tree.fn[i] >= 0 && page.profile.nameOf(f.tree.fn[i]) === name && f.boxOf(i);
    if (!box || box.w < 50) continue;
    f.surface.canvas.dispatchEvent(new PointerEvent(type, {clientX: at.left + box.x + 40, clientY: at.top + box.y + 8, bubbles: true, cancelable: true}));
    return;
  }
};
const hover = (name) => pointAt(name, 'pointermove');
const showMenu = (name) => pointAt(name, 'contextmenu');
"""


# When a thread goes on after a pause, in µs.
BURST = """(({time, threads}) => { const t = threads[%d]; let i = t.first + 1;
while (i < t.end - 1 && (time[i] < 2e6 || time[i] - time[i - 1] < 2e5)) i++; return time[i]; })(page.profile)"""


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


def record_orders(folder):
    source, path = os.path.join(TOP, "docs", "examples"), os.path.join(folder, "orders.html")
    copy = shutil.copytree(source, os.path.join(folder, "src"))
    os.chmod(folder, 0o755)  # sources that all may read
    subprocess.run(["cc", "-O1", "-g", f"-fdebug-prefix-map={copy}=/src", "-o", "../orders", f"{copy}/orders.c"], check=True, cwd=copy)
    subprocess.run([os.path.join(BUILD, "sysprof"), "record", "-F", "997", "--source-map", f"/src={copy}", "-o", path, "--", "./orders"], check=True, cwd=folder)
    return path


def record_waits(folder):
    source, path = os.path.join(TOP, "docs", "examples", "convoy.c"), os.path.join(folder, "convoy.html")
    subprocess.run(["cc", "-O1", "-g", "-pthread", "-o", "convoy", source], check=True, cwd=folder)
    subprocess.run([os.path.join(BUILD, "sysprof"), "record", "--wall", "--wall-cpu", "5%", "-o", "convoy.html", "--", "./convoy", "4"], check=True, cwd=folder)
    return path


def record_waits_of(folder, pids):
    path = os.path.join(folder, "waits.html")
    subprocess.run([os.path.join(BUILD, "sysprof"), "record", "--wall", "--wall-cpu", "5%", "-p", pids, "-d", "4", "-o", path], check=True)
    return path


@contextlib.contextmanager
def limited(controller, limits):
    """A command line's beginning: what follows runs in a control group with these limits, {file of version 1 or 2: text}."""
    for top in f"/sys/fs/cgroup/{controller}", "/sys/fs/cgroup":
        group = os.path.join(top, "sysprof-pictures")
        with contextlib.suppress(OSError):
            os.mkdir(group)
            break
    else:
        sys.exit("no control group can be made")
    try:
        for name, text in limits.items():
            if os.path.exists(os.path.join(group, name)):
                with open(os.path.join(group, name), "w", encoding="ascii") as file:
                    file.write(text)
        yield ["sh", "-c", f'echo $$ >{group}/cgroup.procs && exec "$@"', "sh"]
    finally:
        time.sleep(1)
        os.rmdir(group)


@contextlib.contextmanager
def running(*command, **options):
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options) as program:
        time.sleep(2)
        yield program
        program.terminate()


def record_throttled(folder):
    # the second limit keeps what else runs on this machine out of the picture
    with limited("cpu", {"cpu.cfs_quota_us": "30000", "cpu.max": "30000 100000", "cpu.shares": "200000", "cpu.weight": "10000"}) as begin, \
            running(*begin, sys.executable, os.path.join(TOP, "docs", "examples", "app.py")) as program:
        return record_waits_of(folder, str(program.pid))


def record_database(folder):
    """pgbench on a disk that takes 150 writes a second, as a small one of a cloud does."""
    bin_, base = max(glob.glob("/usr/lib/postgresql/*/bin")), os.path.join(folder, "pg")
    user, at = ("runuser", "-u", "postgres", "--"), ("-h", base, "-p", str(PORT), "postgres")
    os.chmod(folder, 0o755)
    os.mkdir(base)
    shutil.chown(base, "postgres")
    subprocess.run([*user, bin_ + "/initdb", "-A", "trust", "-D", base + "/data"], check=True, stdout=subprocess.DEVNULL)
    device = os.stat(base).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    with limited("blkio", {"blkio.throttle.write_iops_device": f"{number} 150", "io.max": f"{number} wiops=150"}) as begin, \
            running(*begin, *user, bin_ + "/postgres", "-D", base + "/data", "-k", base, "-p", str(PORT), "-h", ""):
        subprocess.run([*user, bin_ + "/pgbench", "-i", "-q", "-s", "5", *at], check=True, stderr=subprocess.DEVNULL)
        with running(*user, bin_ + "/pgbench", "-c", "8", "-T", "30", "-n", *at):
            pids = subprocess.run(["pgrep", "-d,", "-x", "postgres"], check=True, capture_output=True, text=True).stdout.strip()
            path = record_waits_of(folder, pids)
        subprocess.run([*user, bin_ + "/pg_ctl", "stop", "-m", "fast", "-D", base + "/data"], check=True, stdout=subprocess.DEVNULL)
    return path


def record_services(folder):
    """Three services, by the names that they have given themselves."""
    examples, path = os.path.join(TOP, "docs", "examples"), os.path.join(folder, "host.html")
    subprocess.run(["cc", "-O1", "-g", "-o", "orders", os.path.join(examples, "orders.c")], check=True, cwd=folder)
    programs = {"shop": (sys.executable, os.path.join(examples, "app.py")), "search": ("node", os.path.join(examples, "app.js")),
                "billing": ("sh", "-c", "while ./orders; do :; done")}
    with contextlib.ExitStack() as stack:
        for name, command in programs.items():
            stack.enter_context(running(*command, cwd=folder, env={**os.environ, "OTEL_SERVICE_NAME": name}))
        subprocess.run([os.path.join(BUILD, "sysprof"), "record", "--service", f"^({'|'.join(programs)})$", "-d", "10", "-o", path], check=True)
    return path


def request_until(end):
    while time.monotonic() < end:
        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/") as answer:
            answer.read()


def record_service(folder, clients):
    command = ("gunicorn", "--threads", "8", "-b", f"127.0.0.1:{PORT}", "service:app")
    with running(*command, cwd=os.path.join(TOP, "docs", "examples"), env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}) as program:
        end = time.monotonic() + 8
        threads = [threading.Thread(target=request_until, args=(end if clients else end - 7,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        time.sleep(2)
        pids = subprocess.run(["pgrep", "-d,", "-f", "service:app"], check=True, capture_output=True, text=True).stdout.strip()
        path = record_waits_of(folder, pids)
        for thread in threads:
            thread.join()
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
        burst = int(page.evaluate(BURST % thread))
        fragment = re.sub(r"BURST(\d+)", lambda size: f"{burst}-{burst + 1000 * int(size[1])}", fragment.replace("THREAD", str(thread)))
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
        for make, pictures in (convert, PICTURES), (compare, COMPARED), (record_orders, CODE), (record_services, SERVICES), (record_waits, WAITING), \
                (record_throttled, THROTTLED), (record_database, DISK), (lambda to: record_service(to, True), GIL), \
                (lambda to: record_service(to, False), POOL):
            wanted = {name: rest for name, rest in pictures.items() if name in sys.argv[2:] or not sys.argv[2:]}
            if not wanted:
                continue
            path = make(folder)
            with libbrowser.Browser() as browser:
                for name, rest in wanted.items():
                    take(browser, path, name, *rest)


main()
