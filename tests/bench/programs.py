# SPDX-License-Identifier: BSD-2-Clause
"""Programs as people run them, and how much of their stacks is whole: beside perf's copies of 64 KB.

What is not on this machine is left out, with a word. Sources are in tests/bench/programs.
"""
import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import stack_ends
from libbench import BUILD, PERF, SYSPROF, Broken, Program, at_least, pick, scratch, table
from workloads import write

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCES = os.path.join(TOP, "tests/bench/programs")
FETCHED = os.path.join(os.path.dirname(BUILD), "build/programs")
HZ = 499
SECONDS = pick(2.5, 1.5)   # what runs as long as it is told
LONGEST = pick(8, 4)       # what runs to its end is recorded no longer
PERF_SCRIPT = pick(12, 6)  # and perf script no longer than this

# sudo's variables would make sysprof start commands as the caller
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("SUDO_")}


class Missing(Exception):
    """This program is not here; the text says what is lacking."""


def need(*names):
    """The first command of that name or path."""
    for name in names:
        found = shutil.which(name)
        if found:
            return found
    raise Missing(" or ".join(names))


class Job:
    """What is recorded: a command from its start on, or (attach) in the middle of its run."""

    def __init__(self, *command, env=None, attach=False, beside=None):
        self.command = [str(a) for a in command]
        self.env = dict(ENVIRONMENT, **(env or {}))
        self.attach = attach
        self.beside = beside  # makes a Program that runs meanwhile; its end ends the recording

    def ours(self, folded, recording):
        outputs = ["-q", "-F", HZ, "-o", folded, "-o", recording]
        return [SYSPROF, "record", *outputs]

    def perf(self, data):
        return [PERF, "record", "-q", "-B", "-N", "-F", HZ, "-e", "cpu-clock", "--call-graph", "dwarf,65528", "-m",
                "16M", "-o", data]


def run_profiler(job, arguments):
    """The profiler with the job to its end, or to LONGEST."""
    if job.attach:
        return attach_profiler(job, arguments)
    return bounded([*arguments, "--", *job.command], LONGEST, job.env)


def attach_profiler(job, arguments):
    with Program(*job.command) as target:
        time.sleep(1)
        if not target.running():
            raise target.broken()
        if not job.beside:
            return bounded([*arguments, "-p", target.pid], SECONDS, job.env)
        with job.beside() as beside:
            return bounded([*arguments, "-p", target.pid], 3 * LONGEST, job.env, beside)


def bounded(command, seconds, env, beside=None):
    """A profiler, ended by Ctrl-C after that time, or with what runs beside. Nothing it started is left."""
    log = scratch("programs.log")
    with open(log, "wb") as out:
        p = subprocess.Popen([str(a) for a in command], stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env,
                             cwd=scratch(""), start_new_session=True)
    end = time.monotonic() + seconds
    try:
        while p.poll() is None and time.monotonic() < end and (beside is None or beside.running()):
            time.sleep(0.02)
        if p.poll() is None:
            p.send_signal(signal.SIGINT)
        p.wait(90)
    except subprocess.TimeoutExpired:
        raise Broken(f"{command[0]} does not end") from None
    finally:
        try:
            os.killpg(p.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        p.wait()
    with open(log, encoding="utf-8", errors="replace") as f:
        return p.returncode, f.read()


# ---- the programs -------------------------------------------------------------------------------

def python_loop(seconds):
    return ("import time\nend = time.time() + %g\n"
            "def f(n): return n if n < 2 else f(n - 1) + f(n - 2)\n"
            "while time.time() < end:\n f(16); sorted(str(i) for i in range(1000))\n" % seconds)


def javascript(seconds):
    return ("const end = Date.now() + %d; function f(n) { return n < 2 ? n : f(n - 1) + f(n - 2); }"
            "while (Date.now() < end) { f(20); JSON.parse(JSON.stringify([...Array(1000).keys()])); }" %
            (1000 * seconds))


PERL = ("use Time::HiRes 'time'; my $end = time + %g; sub f { my $n = shift; $n < 2 ? $n : f($n-1) + f($n-2) }"
        "while (time < $end) { f(14); my %%h = map { $_ => 1 } 1..1000; my @s = sort keys %%h }")
RUBY = ("e = Time.now + %g; def f(n) n < 2 ? n : f(n-1) + f(n-2) end;"
        "while Time.now < e do f(16); (1..1000).map(&:to_s).sort end")
PHP = ("function f($n) { return $n < 2 ? $n : f($n-1) + f($n-2); } $e = microtime(true) + %g;"
       "while (microtime(true) < $e) { f(16); $a = array_map('strval', range(1, 1000)); sort($a); }")
LUA = ("local e = os.clock() + %g; local function f(n) if n < 2 then return n end return f(n-1) + f(n-2) end\n"
       "while os.clock() < e do f(20); local t = {} for i = 1, 1000 do t[i] = tostring(i) end table.sort(t) end")
ERLANG = ("-module(spin).\n-export([main/1]).\n"
          "f(N) when N < 2 -> N;\nf(N) -> f(N-1) + f(N-2).\n"
          "loop(End) -> case erlang:monotonic_time(millisecond) < End of true -> f(20), "
          "lists:sort([integer_to_list(I) || I <- lists:seq(1, 1000)]), loop(End); false -> ok end.\n"
          "main(Ms) -> loop(erlang:monotonic_time(millisecond) + Ms), halt().\n")
SQL = ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {0}) "
       "SELECT count(*), sum(i * i % 7), count(DISTINCT i % 1000) FROM n;")
JAVA = """public class Spin {
  static long fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
  public static void main(String[] a) {
    long end = System.nanoTime() + (long)(Double.parseDouble(a[0]) * 1e9), sum = 0;
    while (System.nanoTime() < end) sum += fib(20) + String.valueOf(sum).hashCode();
    System.out.println(sum);
  }
}
"""
PAGE = """<!DOCTYPE html><title>page</title><style>p { color: #345; margin: 1px }</style><body><script>
for (let i = 0; i < 3000; i++) {
  const p = document.createElement("p");
  p.textContent = "paragraph " + [...Array(30).keys()].map(n => (n * i) % 97).join(" ");
  document.body.appendChild(p);
}
document.title = document.body.offsetHeight;
</script></body>
"""
POSTGRES = """
initdb -D "$1" -A trust -U postgres >/dev/null
pg_ctl -D "$1" -w -l "$1/log" -o "-k $1 -c listen_addresses=''" start >/dev/null
q() { psql -q -h "$1" -U postgres -d postgres -c "$2" >/dev/null; }
q "$1" "CREATE TABLE t AS SELECT i, md5(i::text) AS m FROM generate_series(1, 200000) i"
q "$1" "CREATE INDEX ON t (m)"
q "$1" "SELECT count(*), max(a.m) FROM t a JOIN t b ON a.m = b.m WHERE a.i % 3 = 0"
pg_ctl -D "$1" -m immediate stop >/dev/null
"""


def built(name, compiler, *flags, source=None):
    source = source or glob.glob(os.path.join(SOURCES, name.split("-")[0] + ".*"))[0]
    out = scratch(name)
    done = subprocess.run([need(compiler), *flags, "-o", out, source], capture_output=True, text=True, env=ENVIRONMENT,
                          cwd=scratch(""), check=False)
    if done.returncode:
        raise Missing(f"{compiler} {' '.join(flags)}: {done.stderr.strip().splitlines()[-1:]}")
    return out


def frames(*flags, name):
    return built(f"frames-{name}", "gcc", "-O2", "-fomit-frame-pointer", *flags)


def linked_by(linker):
    def job():
        need("ld." + linker)
        return Job(frames(f"-fuse-ld={linker}", name=linker), 40, SECONDS)
    return job


def rust():
    return Job(built("spin", "rustc", "-O"), SECONDS)


def go_environment(cache):
    return {"GOCACHE": cache, "GOFLAGS": "-mod=mod", "GO111MODULE": "off", "GOTOOLCHAIN": "local",
            "GOPATH": scratch("gopath")}


def go_program():
    go, out = need("go"), scratch("collect")
    subprocess.run([go, "build", "-o", out, os.path.join(SOURCES, "collect.go")], check=True, capture_output=True,
                   env=dict(ENVIRONMENT, **go_environment(os.path.join(BUILD, "bench", "gocache"))))
    return Job(out, SECONDS)


def go_build():
    cache = tempfile.mkdtemp(prefix="gocache", dir=scratch(""))
    return Job(need("go"), "build", "-a", "net/http", env=go_environment(cache))


def make_project():
    """The sources, without what git does not know of."""
    copy = tempfile.mkdtemp(prefix="project", dir=scratch(""))
    for name in ("Makefile", "bpf", "include", "userspace", "tools", "tests", "docs"):
        source, target = os.path.join(TOP, name), os.path.join(copy, name)
        (shutil.copytree if os.path.isdir(source) else shutil.copy)(source, target)
    need("make"), need("clang"), need("bpftool")
    return Job("make", "-C", copy, "-j2", "BUILD=" + os.path.join(copy, "build"))


def rust_source():
    text = ["use std::collections::BTreeMap;\n"]
    for k in range(120):
        text.append(f"pub fn f{k}(v: &mut Vec<u64>, m: &mut BTreeMap<String, u64>) -> u64 {{\n"
                    f"  let mut x = {k}u64;\n"
                    f"  for (i, w) in v.iter_mut().enumerate().filter(|(i, _)| i % {k + 2} != 1) {{\n"
                    f"    *w = w.rotate_left({k % 60}) ^ i as u64; x = x.wrapping_mul({2 * k + 3}) + *w;\n"
                    f"    *m.entry(format!(\"{{x}}-{k}\")).or_insert(0) += x;\n  }}\n"
                    f"  m.values().map(|n| n / {k + 1}).max().unwrap_or(x)\n}}\n")
    return write("large.rs", "".join(text))


def rustc():
    return Job(need("rustc"), "-O", "--crate-type", "rlib", "-o", scratch("large.rlib"), rust_source())


def cc_source():
    """Much for a compiler to instantiate; sqlite3.c where the oracles' build has fetched it."""
    found = glob.glob(os.path.join(os.path.dirname(BUILD), "build/oracle/**/sqlite3.c"), recursive=True)
    if found:
        return found[0]
    text = ["#include <algorithm>\n#include <functional>\n#include <map>\n#include <string>\n#include <vector>\n"]
    for k in range(60):
        text.append(f"struct S{k} {{ int a[{k + 1}]; bool operator<(const S{k} &o) const {{ return a[0] < o.a[0]; }} }};\n"
                    f"long f{k}(std::vector<S{k}> &v, std::map<std::string, S{k}> &m) {{\n"
                    f"  std::sort(v.begin(), v.end()); long n = {k};\n"
                    f"  for (auto &[key, s] : m) n += key.size() * s.a[0];\n"
                    f"  std::stable_sort(v.rbegin(), v.rend()); return n + (v.empty() ? 0 : v[0].a[0]);\n}}\n")
    return write("large.cc", "".join(text))


def compiled_by(compiler):
    return lambda: Job(need(compiler), "-O2", "-w", "-c", "-o", scratch("large.o"), cc_source())


def chromium():
    page = write("page.html", PAGE)
    data = tempfile.mkdtemp(prefix="chromium", dir=scratch(""))
    return Job(need("chromium", "chromium-browser"), "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
               "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
               "--user-data-dir=" + data, "--dump-dom", "file://" + page, env={"HOME": data})


def postgres():
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    if not found:
        raise Missing("postgresql")
    home = tempfile.mkdtemp(prefix="sysprof-bench-pg", dir="/tmp")
    subprocess.run(["chown", "postgres:postgres", home], check=True)
    job = Job(need("setpriv"), "--reuid=postgres", "--regid=postgres", "--clear-groups", "sh", "-c",
              f"cd {home} && {POSTGRES}", "sh", home + "/data",
              env={"PATH": os.path.dirname(found[-1]) + ":" + os.environ["PATH"], "LC_ALL": "C"})
    job.cleanup = home
    return job


def ffmpeg():
    return Job(need("ffmpeg"), "-loglevel", "error", "-f", "lavfi", "-i",
               f"testsrc=duration={2.4 * SECONDS:g}:size=1280x720:rate=30", "-c:v", "libx264", "-f", "null", "-")


def attached():
    return Job(frames(name="plain"), 40, 60, attach=True)


def attached_beside_execs():
    storm, count = built("execs", "gcc", "-O2"), pick(20000, 5000)
    return Job(frames(name="plain"), 40, 120, attach=True, beside=lambda: Program(storm, count, "/bin/true"))


def java(*flags):
    def job():
        need("java")
        done = subprocess.run([need("javac"), "-d", scratch(""), write("Spin.java", JAVA)], capture_output=True, check=False)
        if done.returncode:
            raise Missing("javac")
        return Job(need("java"), *flags, "-Xmx128m", "-XX:-UsePerfData", "-cp", scratch(""), "Spin", SECONDS)
    return job


def erlang():
    source = write("spin.erl", ERLANG)
    subprocess.run([need("erlc"), "-o", scratch(""), source], check=True, capture_output=True)
    return Job(need("erl"), "+JPperf", "true", "-noshell", "-pa", scratch(""), "-eval",
               f"spin:main({int(1000 * SECONDS)}).", env={"HOME": scratch("")})


def fetched(name, *arguments):
    def job():
        found = glob.glob(os.path.join(FETCHED, "npm/node_modules/*/*", name)) + \
            glob.glob(os.path.join(FETCHED, "npm/node_modules/*/*/bin", name))
        return Job(found[0] if found else need(name), *arguments, write("spin.js", javascript(SECONDS)),
                   env={"HOME": scratch(""), "NO_COLOR": "1"})
    return job


def script(interpreter, *arguments):
    return lambda: Job(need(interpreter), *arguments)


def git():
    repository = scratch("repository")
    git_ = [need("git"), "-C", repository, "-c", "user.name=n", "-c", "user.email=e@example.org"]
    if not os.path.exists(repository):
        os.mkdir(repository)
        subprocess.run([*git_, "init", "-q"], check=True, capture_output=True)
        for i in range(800):
            with open(os.path.join(repository, f"f{i % 20}"), "a", encoding="utf-8") as f:
                f.write(f"{i} " * 200 + "\n")
        subprocess.run([*git_, "add", "."], check=True)
        subprocess.run([*git_, "commit", "-q", "-m", "all"], check=True)
    loop = ("end=$(($(date +%s) + $1)); cd \"$2\"; while [ $(date +%s) -lt $end ]; do "
            "git log -p --stat >/dev/null; git gc -q --aggressive; git fsck >/dev/null 2>&1; done")
    return Job("sh", "-c", loop, "sh", round(SECONDS), repository)


def exceptions():
    source = os.path.join(TOP, "tests/fixtures/unwind/exceptions.cc")
    return Job("timeout", SECONDS, built("exceptions", "g++", "-O2", "-fomit-frame-pointer", source=source))


# name: (makes the job, share of all samples that is the goal, the same after 50 ms)
GOALS = (99, 99.5)
PROGRAMS = {
    "C, ld.bfd": (linked_by("bfd"), None),
    "C, gold": (linked_by("gold"), None),
    "C, lld": (linked_by("lld"), None),
    "Rust": (rust, None),
    "Go, a collecting loop": (go_program, None),
    "go build": (go_build, GOALS),
    "make -j2 of this project": (make_project, GOALS),
    "rustc": (rustc, GOALS),
    "clang": (compiled_by("clang"), GOALS),
    "gcc": (compiled_by("gcc"), None),
    "chromium, one page": (chromium, GOALS),
    "postgres, initdb and three queries": (postgres, GOALS),
    "ffmpeg, libx264": (ffmpeg, None),
    "C, 40 deep, attached": (attached, None),
    "C, 40 deep, attached beside execs": (attached_beside_execs, None),
    "C++ exceptions": (exceptions, None),
    "C, musl, static": (lambda: Job(built("frames-musl", "musl-gcc", "-O2", "-static", "-fomit-frame-pointer"), 40,
                                    SECONDS), None),
    "python3": (script("/usr/bin/python3", "-c", python_loop(SECONDS)), None),
    "pypy3": (script("pypy3", "-c", python_loop(SECONDS)), None),
    "perl": (script("perl", "-e", PERL % SECONDS), None),
    "ruby": (script("ruby", "-e", RUBY % SECONDS), None),
    "php": (script("php", "-r", PHP % SECONDS), None),
    "luajit": (script("luajit", "-e", LUA % SECONDS), None),
    "node": (script("node", "-e", javascript(SECONDS)), None),
    "node --perf-basic-prof": (script("node", "--perf-basic-prof", "-e", javascript(SECONDS)), None),
    "bun": (fetched("bun", "run"), None),
    "deno": (fetched("deno", "run"), None),
    "java -XX:+PreserveFramePointer": (java("-XX:+PreserveFramePointer"), None),
    "java": (java(), None),
    "erl +JPperf true": (erlang, None),
    "openssl speed": (script("openssl", "speed", "-seconds", "1", "-evp", "sha256"), None),
    "sqlite3": (script("sqlite3", ":memory:", SQL.format(int(1_000_000 * SECONDS))), None),
    "git log, gc, fsck": (git, None),
}


# ---- measuring ----------------------------------------------------------------------------------

def ours(job):
    folded, recording = scratch("programs.folded"), scratch("programs.sysprof")
    status, told = run_profiler(job, job.ours(folded, recording))
    if not os.path.exists(recording):
        raise Broken(f"{' '.join(job.command)}: status {status}\n{told}")
    try:
        return stack_ends.of_recording(recording), stack_ends.named_share(folded)
    finally:
        os.unlink(folded)
        os.unlink(recording)


def perf_whole(job):
    """What perf's column says."""
    data = scratch("programs.perf")
    try:
        run_profiler(job, job.perf(data))
        with open(scratch("programs.script"), "w+b") as out:
            done = subprocess.run(["timeout", "-s", "KILL", str(PERF_SCRIPT), PERF, "script", "--no-inline", "--max-stack",
                                   "1024", "-F", "comm,pid,tid,ip,sym,dso", "-i", data], stdout=out,
                                  stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
            out.seek(0)
            samples, whole = stack_ends.of_perf_script(line.decode(errors="replace") for line in out)
        if done.returncode in (137, -9):
            return f"timed out ({100 * whole / max(1, samples):.1f} of {samples:,})"
        if done.returncode:
            return f"perf script: status {done.returncode}"
        return f"{100 * whole / samples:.1f}" if samples else "no samples"
    finally:
        for path in (data, scratch("programs.script")):
            if os.path.exists(path):
                os.unlink(path)


def measured(make):
    jobs = []
    try:
        jobs.append(make())
        ends, named = ours(jobs[0])
        told = "no perf"
        if PERF:
            jobs.append(make())
            told = perf_whole(jobs[1])
        return ends, named, told
    finally:
        for job in jobs:
            if hasattr(job, "cleanup"):
                shutil.rmtree(job.cleanup, ignore_errors=True)


def programs():
    os.chmod(scratch(""), 0o711)
    rows, notes, missing = [], [], []
    for name, (make, goals) in PROGRAMS.items():
        try:
            ends, named, perf = measured(make)
        except Missing as e:
            missing.append(f"{name} ({e})")
            continue
        rows.append([name, f"{ends.samples():,}", f"{ends.whole():.2f}", f"{ends.whole_late():.2f}", f"{named:.1f}",
                     perf, ends.reasons()])
        print("  ".join(rows[-1]), flush=True)
        if goals:
            notes += [at_least(f"{name}, whole stacks", ends.whole(), goals[0], "%"),
                      at_least(f"{name}, whole stacks after 50 ms", ends.whole_late(), goals[1], "%")]
    table("programs", "", ["program", "samples", "whole %", "after 50 ms %", "named %", "perf whole %", "the rest, %"],
          rows, notes + ["missing: " + ", ".join(missing)])
