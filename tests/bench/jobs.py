# SPDX-License-Identifier: BSD-2-Clause
"""The programs whose stacks are judged, as people run them. Their sources are in tests/bench/programs."""
import glob
import os
import pwd
import shutil
import subprocess
import tempfile

from libbench import BUILD, Broken, Program, pick, scratch
from workloads import write

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCES = os.path.join(TOP, "tests/bench/programs")
FETCHED = os.path.join(os.path.dirname(BUILD), "build/programs")
SECONDS = pick(2, 1)  # run time of programs that end by themselves
EXECS = pick(20000, 4000)

# under sudo's variables sysprof starts commands as the caller
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("SUDO_")}


class Missing(Exception):
    """This program is not here. The text says what is lacking."""


class Job:
    """A command to be recorded from its start on, or with `attach` in the middle of its run.

    `beside` makes a Program that runs meanwhile, and whose end is the recording's. `finish` is called when
    all is over.
    """

    def __init__(self, *command, env=None, attach=False, beside=None, finish=None):
        self.command = [str(a) for a in command]
        self.env = dict(ENVIRONMENT, **(env or {}))
        self.attach, self.beside = attach, beside
        self.finish = finish or (lambda: None)


def need(*names):
    """The first of these commands that is here."""
    for name in names:
        found = shutil.which(name)
        if found:
            return found
    raise Missing(f"no {' or '.join(names)}")


def source(name):
    return os.path.join(SOURCES, name)


def directory(name):
    return tempfile.mkdtemp(prefix=name + "-", dir=scratch(""))


def remover(path):
    return lambda: shutil.rmtree(path, ignore_errors=True)


def prepare(*command, env=None):
    """Something a job needs: if it fails, the job cannot be."""
    done = subprocess.run([str(a) for a in command], capture_output=True, text=True, cwd=scratch(""), check=False,
                          stdin=subprocess.DEVNULL, env=dict(ENVIRONMENT, **(env or {})))
    if done.returncode:
        raise Broken(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stderr}")


def compiled(out, compiler, *flags, path):
    prepare(need(compiler), *flags, "-o", scratch(out), path)
    return scratch(out)


def interpreted(interpreter, *arguments, env=None):
    return lambda: Job(need(interpreter), *arguments, SECONDS, env=env)


# ---- programs that were linked and compiled in one way or another -------------------------------

def frames(name, *flags, compiler="gcc"):
    return compiled("frames-" + name, compiler, "-O2", "-fomit-frame-pointer", *flags, path=source("frames.c"))


def linked_by(linker):
    def job():
        need("ld." + linker)
        return Job(frames(linker, "-fuse-ld=" + linker), 40, SECONDS)
    return job


def musl():
    return Job(frames("musl", "-static", compiler="musl-gcc"), 40, SECONDS)


def attached():
    return Job(frames("attached"), 40, 600, attach=True)


def attached_beside_execs():
    storm = compiled("execs", "gcc", "-O2", path=source("execs.c"))
    return Job(frames("attached"), 40, 600, attach=True, beside=lambda: Program(storm, EXECS, "/bin/true"))


def exceptions():
    path = os.path.join(TOP, "tests/fixtures/unwind/exceptions.cc")
    return Job("timeout", SECONDS, compiled("exceptions", "g++", "-O2", "-fomit-frame-pointer", path=path))


def rust():
    return Job(compiled("spin", "rustc", "-O", path=source("spin.rs")), SECONDS)


def go_environment(cache):
    return {"GOCACHE": cache, "GOPATH": scratch("gopath"), "GOFLAGS": "", "GO111MODULE": "off", "GOTOOLCHAIN": "local"}


def go_program():
    prepare(need("go"), "build", "-o", scratch("collect"), source("collect.go"),
            env=go_environment(os.path.join(BUILD, "bench", "gocache")))
    return Job(scratch("collect"), SECONDS)


# ---- compilers and builds -----------------------------------------------------------------------

def go_build():
    cache = directory("gocache")
    return Job(need("go"), "build", "-a", "net/http", env=go_environment(cache), finish=remover(cache))


def make_project():
    need("make"), need("clang"), need("bpftool")
    copy = directory("project")
    shutil.copy(os.path.join(TOP, "Makefile"), copy)
    for name in ("bpf", "include", "userspace", "tools"):
        shutil.copytree(os.path.join(TOP, name), os.path.join(copy, name))
    return Job("make", "-s", "-C", copy, "-j2", "BUILD=" + os.path.join(copy, "build"), finish=remover(copy))


def rustc():
    text = ["use std::collections::BTreeMap;\n"]
    for k in range(120):
        text.append(f"pub fn f{k}(v: &mut Vec<u64>, m: &mut BTreeMap<String, u64>) -> u64 {{\n"
                    f"  let mut x = {k}u64;\n"
                    f"  for (i, w) in v.iter_mut().enumerate().filter(|(i, _)| i % {k + 2} != 1) {{\n"
                    f"    *w = w.rotate_left({k % 60}) ^ i as u64; x = x.wrapping_mul({2 * k + 3}) + *w;\n"
                    f"    *m.entry(format!(\"{{x}}-{k}\")).or_insert(0) += x;\n  }}\n"
                    f"  m.values().map(|n| n / {k + 1}).max().unwrap_or(x)\n}}\n")
    return Job(need("rustc"), "-O", "--crate-type", "rlib", "-o", scratch("large.rlib"), write("large.rs", "".join(text)))


def cc_source():
    """Templates to instantiate."""
    text = ["#include <algorithm>\n#include <map>\n#include <string>\n#include <vector>\n"]
    for k in range(60):
        text.append(f"struct S{k} {{ int a[{k + 1}]; bool operator<(const S{k} &o) const {{ return *a < *o.a; }} }};\n"
                    f"long f{k}(std::vector<S{k}> &v, std::map<std::string, S{k}> &m) {{\n"
                    f"  std::sort(v.begin(), v.end()); long n = {k};\n"
                    f"  for (auto &[key, s] : m) n += key.size() * s.a[0];\n"
                    f"  std::stable_sort(v.rbegin(), v.rend()); return n + (v.empty() ? 0 : v[0].a[0]);\n}}\n")
    return write("large.cc", "".join(text))


def compiler(name):
    return lambda: Job(need(name), "-std=c++17", "-O2", "-c", "-o", scratch("large.o"), cc_source())


# ---- large programs -----------------------------------------------------------------------------

def chromium():
    data = directory("chromium")
    return Job(need("chromium", "chromium-browser"), "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
               "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
               "--user-data-dir=" + data, "--dump-dom", "file://" + source("page.html"), env={"HOME": data},
               finish=remover(data))


def postgres():
    """Its programs refuse root. The server is a daemon, so it is stopped for sure."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/pg_ctl"))
    control = found[-1] if found else need("pg_ctl")
    try:
        pwd.getpwnam("postgres")
    except KeyError:
        raise Missing("no user postgres") from None
    home = directory("postgres")
    shutil.chown(home, "postgres", "postgres")
    as_user = (need("setpriv"), "--reuid=postgres", "--regid=postgres", "--clear-groups")
    environment = {"PATH": os.path.dirname(control) + ":" + os.environ["PATH"], "LC_ALL": "C"}
    script = shutil.copy(source("postgres.sh"), home)

    def finish():
        if os.path.exists(home + "/data/postmaster.pid"):
            prepare(*as_user, control, "-D", home + "/data", "-m", "immediate", "stop")
        remover(home)()
    return Job(*as_user, "sh", script, home + "/data", env=environment, finish=finish)


def ffmpeg():
    return Job(need("ffmpeg"), "-loglevel", "error", "-f", "lavfi", "-i",
               f"testsrc=duration={2 * SECONDS}:size=1280x720:rate=30", "-c:v", "libx264", "-f", "null", "-")


def git():
    """A repository with 500 commits, made by fast-import."""
    repository, stream = directory("repository"), []
    for i in range(500):
        text = "".join(f"line {n} of {i % 20} as of {i if n % 50 == i % 50 else n}\n" for n in range(1000))
        stream.append(f"commit refs/heads/master\ncommitter n <n@example.org> {1600000000 + i} +0000\ndata 2\n{i % 10}\n\n"
                      f"M 644 inline f{i % 20}\ndata {len(text)}\n{text}\n")
    git_ = [need("git"), "-C", repository]
    prepare(*git_, "init", "-q", "-b", "master")
    subprocess.run([*git_, "fast-import", "--quiet"], input="".join(stream), text=True, check=True, capture_output=True)
    return Job("sh", source("git.sh"), repository, env={"HOME": repository}, finish=remover(repository))


def sqlite():
    return Job(need("sqlite3"), ":memory:",
               f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {2000000 * SECONDS}) "
               "SELECT count(*), sum(i * i % 7), count(DISTINCT i % 1000) FROM n")


def openssl():
    return Job(need("openssl"), "speed", "-seconds", SECONDS, "-bytes", "4096", "-evp", "sha256")


# ---- runtimes -----------------------------------------------------------------------------------

def java(*flags):
    def job():
        need("java")
        prepare(need("javac"), "-d", scratch(""), source("Spin.java"))
        return Job("java", *flags, "-Xmx128m", "-XX:-UsePerfData", "-cp", scratch(""), "Spin", SECONDS)
    return job


def erlang(*flags):
    def job():
        prepare(need("erlc"), "-o", scratch(""), source("spin.erl"))
        return Job(need("erl"), *flags, "-noshell", "-pa", scratch(""), "-run", "spin", "main", f"{SECONDS:.1f}",
                   env={"HOME": scratch("")})
    return job


def fetched(name, *arguments):
    """One of programs/fetch.sh, or of the system."""
    def job():
        found = [p for p in glob.glob(os.path.join(FETCHED, "npm/node_modules/@*/**", name), recursive=True)
                 if os.path.isfile(p)]
        return Job(found[0] if found else need(name), *arguments, source("spin.js"), SECONDS,
                   env={"HOME": scratch(""), "NO_COLOR": "1"})
    return job


PROGRAMS = {
    "C, ld.bfd": linked_by("bfd"),
    "C, gold": linked_by("gold"),
    "C, lld": linked_by("lld"),
    "C, musl, static": musl,
    "C, attached": attached,
    "C, attached beside execs": attached_beside_execs,
    "C++, exceptions": exceptions,
    "Rust": rust,
    "Go, garbage collector": go_program,
    "go build": go_build,
    "make -j2": make_project,
    "rustc": rustc,
    "clang": compiler("clang++"),
    "gcc": compiler("g++"),
    "chromium": chromium,
    "postgres": postgres,
    "ffmpeg": ffmpeg,
    "git": git,
    "sqlite3": sqlite,
    "openssl": openssl,
    "perl": interpreted("perl", source("spin.pl")),
    "ruby": interpreted("ruby", source("spin.rb")),
    "php": interpreted("php", source("spin.php")),
    "python3": interpreted("/usr/bin/python3", source("spin.py")),
    "pypy3": interpreted("pypy3", source("spin.py")),
    "luajit": interpreted("luajit", source("spin.lua")),
    "erl +JPperf true": erlang("+JPperf", "true"),
    "node": interpreted("node", source("spin.js")),
    "node --perf-basic-prof": interpreted("node", "--perf-basic-prof", source("spin.js")),
    "bun": fetched("bun", "run"),
    "deno": fetched("deno", "run"),
    "java": java(),
    "java +PreserveFramePointer": java("-XX:+PreserveFramePointer"),
}
# share of whole stacks that is due: of all samples, of those after a process's first 50 ms
DUE = {name: (99, 99.5) for name in ("go build", "make -j2", "rustc", "clang", "chromium", "postgres")}
