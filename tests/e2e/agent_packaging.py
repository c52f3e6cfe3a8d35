#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""The agent under its systemd unit: what packaging/sysprof-agent.service says is read from the file and applied by hand.

Its user, its capabilities, its mounts, its system call filters, its environment. A directive that this does not apply and
does not know fails the test, so that the unit and what is tested here cannot differ. What this machine's root has no
capability for is left out and said.
"""
import contextlib
import glob
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.request

import yaml

import libe2e as e

UNIT = os.path.join(e.TOP, "packaging/sysprof-agent.service")
USER, TENANT = 64001, 64002  # unused
SERVICE, CHAIN = "in-a-container", ("outer", "middle", "inner", "leaf")
FAMILIES = {name: getattr(socket, name) for name in ("AF_UNIX", "AF_INET", "AF_INET6", "AF_NETLINK")}
# What the agent cannot do without, and what lacks then, as `sysprof agent --check` calls it.
NEEDED = {"CAP_BPF", "CAP_PERFMON"}

# Directives that change nothing of what a process may do that is tested here, or that take PID 1 or a cgroup.
OF_THE_MANAGER = {"Type", "NotifyAccess", "ExecReload", "Restart", "RestartSec", "TimeoutStopSec", "WatchdogSec",
                  "StateDirectoryMode", "CacheDirectoryMode", "ConfigurationDirectory", "MemoryHigh", "MemoryMax",
                  "CPUQuota", "TasksMax", "Nice", "Group", "LimitMEMLOCK", "LimitNOFILE", "LimitCORE"}
# Those whose whole effect a user without the capability has anyway, or that forbid what is not done here.
NO_USE_OF = {"ProtectKernelModules", "ProtectClock", "ProtectHostname", "LockPersonality", "RestrictRealtime",
             "RestrictSUIDSGID", "SystemCallArchitectures", "KeyringMode",
             "SystemCallErrorNumber"}  # here such a call kills: a helper that bears its refusal would hide it


class Unit:
    """The [Service] section: every directive's values, in order."""

    def __init__(self, path):
        self.values, section = {}, ""
        with open(path, encoding="utf-8") as f:
            for line in map(str.strip, f):
                if line.startswith("["):
                    section = line
                elif section == "[Service]" and line and line[0] not in "#;":
                    key, _, value = line.partition("=")
                    self.values.setdefault(key, []).append(value)
        self.used = set()

    def all(self, key):
        self.used.add(key)
        return self.values.get(key, [])

    def one(self, key):
        (value,) = self.all(key)
        return value

    def words(self, key):
        return " ".join(self.all(key)).split()

    def assert_all_used(self):
        left = set(self.values) - self.used - OF_THE_MANAGER - NO_USE_OF
        assert not left, f"directives that are not applied here: {sorted(left)}"


def expanded(words):
    """System calls of a SystemCallFilter=, its groups by the names that are in them."""
    calls, groups, done = set(), list(words), set()
    while groups:
        word = groups.pop()
        assert not word.startswith("~"), "a list of what is forbidden is not applied here"
        if not word.startswith("@"):
            calls.add(word)
        elif word not in done:
            done.add(word)
            text = e.run("systemd-analyze", "syscall-filter", word, check=0).out
            groups += [line.strip() for line in text.splitlines()[1:] if line.strip() and "#" not in line]
    return calls


def capabilities_here():
    """Of this process: those that it can hand on."""
    status = e.read("/proc/self/status")
    return int(re.search(r"CapBnd:\s*(\w+)", status)[1], 16) & int(re.search(r"CapPrm:\s*(\w+)", status)[1], 16)


def numbered(names):
    """A set of capabilities as the kernel has it."""
    text = e.run("capsh", "--decode=" + "f" * 16).out.partition("=")[2].strip().split(",")
    return sum(1 << text.index(name.lower()) for name in names)


MOUNTS = """
state=$1 cache=$2; shift 2
mount -t tmpfs tmpfs /var/lib; mkdir /var/lib/sysprof; mount --bind "$state" /var/lib/sysprof
mount -t tmpfs tmpfs /var/cache; mkdir /var/cache/sysprof; mount --bind "$cache" /var/cache/sysprof
# all but these; what the unit says protects /proc/sys and /sys comes after it
while read -r _ _ _ _ place _; do
	case $place in
	/proc | /proc/* | /sys | /sys/* | /dev | /dev/* | /var/lib/sysprof | /var/cache/sysprof) ;;
	*) mount -o remount,bind,ro "$(printf %b "$place")" ;;
	esac
done </proc/self/mountinfo
mount --bind /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys
mount --bind /sys /sys; mount -o remount,bind,ro /sys
mount --bind /sys/fs/cgroup /sys/fs/cgroup; mount -o remount,bind,ro /sys/fs/cgroup
exec "$@"
"""


class Confined:
    """A command line as the unit would run it, and what goes with it."""

    def __init__(self, name, less=()):
        self.unit = u = Unit(UNIT)
        self.dir = e.scratch(name)
        self.state, self.cache = self.dir + "/state", self.dir + "/cache"
        for path in self.dir, self.state, self.cache:
            os.makedirs(path, mode=0o755, exist_ok=True)
        for path in self.state, self.cache:
            os.chown(path, USER, USER)
            os.chmod(path, 0o700)
        assert u.one("User") == "sysprof"
        assert u.one("StateDirectory") == u.one("CacheDirectory") == "sysprof"
        for key, value in (("ProtectSystem", "strict"), ("ProtectHome", "read-only"), ("PrivateTmp", "no"),
                           ("ProtectProc", "default"), ("ProtectKernelTunables", "yes"), ("NoNewPrivileges", "yes"),
                           ("ProtectControlGroups", "yes"), ("MemoryDenyWriteExecute", "yes")):
            assert u.one(key) == value, (key, u.values[key])
        wanted = u.words("CapabilityBoundingSet")
        assert wanted == u.words("AmbientCapabilities"), "what it may have is what it gets"
        here = capabilities_here()
        self.capabilities = [c for c in wanted if c not in less and numbered([c]) & here]
        self.lacking = [c for c in wanted if not numbered([c]) & here]
        self.environment = dict(line.split("=", 1) for line in u.all("Environment"))
        self.calls = self.dir + "/calls"
        calls = expanded(u.words("SystemCallFilter"))
        if u.one("RestrictNamespaces") == "yes":
            calls -= {"unshare", "setns"}
        e.write(self.calls, "\n".join(sorted(calls)))
        self.families = ",".join(str(int(FAMILIES[f])) for f in u.words("RestrictAddressFamilies"))
        self.oom = u.one("OOMScoreAdjust")
        self.mask = u.one("UMask")
        self.program, *self.arguments = u.one("ExecStart").split()

    def command(self, *arguments):
        caps = ",".join("+" + c.lower().removeprefix("cap_") for c in self.capabilities)
        return ["unshare", "--mount", "--propagation", "private", "sh", "-euc", MOUNTS, "sh", self.state, self.cache,
                "choom", "-n", self.oom, "--", "setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups",
                "--inh-caps=-all," + caps, "--ambient-caps=-all," + caps, "--bounding-set=-all," + caps,
                "--no-new-privs", os.path.join(e.BUILD, "tests/e2e/unit_filter"), self.calls, self.families,
                e.SYSPROF, *self.arguments[:1], *arguments]

    def environ(self, **more):
        return {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **self.environment, **more}

    def start(self, *arguments, **environment):
        self.log = open(self.dir + "/log", "w+", encoding="utf-8")
        self.p = subprocess.Popen(self.command(*arguments), stdout=self.log, stderr=self.log,
                                  env=self.environ(**environment), umask=int(self.mask, 8), cwd="/")
        return self

    def said(self):
        self.log.seek(0)
        return self.log.read()


# ---- what is profiled ---------------------------------------------------------------------------

# A user's container, as far as it matters: a private file system, of a user's own.
CONTAINER = """
mkdir -p "$1"; mount -t tmpfs -o mode=0700,uid=$2,gid=$2 tmpfs "$1"
install -o $2 -m 0500 "$3" "$1/app"; shift 3; exec "$@"
"""

HOT = """
function hotOne() {
	const pause = Date.now() + 15; let s = 0;
	while (Date.now() < pause) for (let i = 0; i < 1e4; i++) s += Math.sqrt(i ^ s);
	if (Date.now() > end) clearInterval(timer);
	return s;
}
const end = Date.now() + 300000, timer = setInterval(hotOne, 60);
"""


def as_tenant(*command):
    """It takes what others leave of the CPUs: some samples of it are enough."""
    return ["nice", "-n", "19", "setpriv", "--reuid", str(TENANT), "--regid", str(TENANT), "--clear-groups", *map(str, command)]


def in_container(name, *command):
    place = e.scratch(name)
    return ["unshare", "--mount", "--propagation", "private", "sh", "-euc", CONTAINER, "sh", place, str(TENANT),
            e.fixture("chain-no-fp"), *as_tenant(place + "/app", *command)]


def manager_socket():
    """The socket of the service manager, and the messages that it got."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    path = e.scratch("notify")
    s.bind(path)
    os.chmod(path, 0o777)
    s.setblocking(False)
    return s, path


def reported(s):
    texts = []
    while True:
        try:
            texts.append(s.recv(4096).decode())
        except BlockingIOError:
            return texts


def rows_of(paths):
    """Stacks of windows."""
    out = e.scratch("window.folded")
    for path in paths:
        e.run(e.SYSPROF, "convert", path, "-o", out, check=0)
        yield from e.folded(out)


def assert_seen(rows):
    """The container's stacks whole, the JIT's code and the kernel's by name. Tests that run beside have functions of such names, too."""
    own = [r for r in rows if r[0][0] == SERVICE]
    chain = [r for r in own if "leaf" in r[0] and not e.kernel_part(r[0])]
    print(f"{e.total(chain)} samples of the container, {e.share(chain, lambda f: e.has_chain(f, *CHAIN)):.3f} whole")
    assert e.total(chain) >= 20 and e.share(chain, lambda f: e.has_chain(f, *CHAIN)) >= 0.9, chain[:20]
    hot = [r for r in own if any("hotOne" in f for f in r[0])]
    assert e.total(hot) >= 5, [r for r in own if any("node" in f for f in r[0])][:20]
    in_kernel = [f for r in rows for f in e.kernel_part(r[0])]
    assert len(set(in_kernel)) >= 5 and not any(f.startswith("0x") for f in in_kernel), in_kernel[:20]


@contextlib.contextmanager
def seen_programs(name):
    """A container of another user's, and code of a JIT."""
    service = {**os.environ, "OTEL_SERVICE_NAME": SERVICE}
    with e.Background(*in_container(name, "300"), env=service), \
            e.Background(*as_tenant("node", "--perf-basic-prof", "-e", HOT), cwd="/tmp", env=service) as node:
        yield
    if os.path.exists(f"/tmp/perf-{node.pid}.map"):
        os.unlink(f"/tmp/perf-{node.pid}.map")


def wait_until_seen(p, said, out, meanwhile=lambda: None):
    """Where others take the CPU the first stacks come before their tables."""
    looked_at = set()

    def has_window():
        meanwhile()
        assert p.poll() is None, (p.returncode, said())
        new = set(glob.glob(out + "/*.pb.gz")) - looked_at
        looked_at.update(new)
        return any(map(is_seen, new))

    e.wait_for(has_window, 150, "a window with all that")


def is_seen(path):
    try:
        assert_seen(list(rows_of([path])))
        return True
    except AssertionError as err:
        print(str(err)[:1000])
        return False


# ---- the cases ----------------------------------------------------------------------------------

def test_the_unit_is_sound():
    """systemd's own judgement: no directive that it does not know, and an exposure that does not grow."""
    place = e.scratch("sysprof-agent.service")
    with open(UNIT, encoding="utf-8") as f, open(place, "w", encoding="utf-8") as out:
        # the program is not installed here, and its manual page neither
        out.write(f.read().replace("/usr/bin/sysprof", "/usr/bin/true").replace("Documentation=", "#"))
    result = e.run("systemd-analyze", "verify", "--man=no", place)
    print(result.out, result.err)
    ours = [line for line in (result.out + result.err).splitlines() if "sysprof-agent" in line]
    assert result.status == 0 and not ours, result
    result = e.run("systemd-analyze", "security", "--offline=true", "--threshold=100", place)
    exposure = float(re.search(r"exposure level for sysprof-agent.service: ([\d.]+)", result.out)[1])
    print(result.out)
    assert exposure <= 5.0, result.out


def test_each_missing_capability_is_named():
    e.need_root()
    confined = Confined("check")
    result = e.run(*confined.command("--check", "--sink", "dir:/var/lib/sysprof", "--spool", "/var/lib/sysprof"),
                   env=confined.environ())
    print(result, "not to be had here:", confined.lacking)
    assert result.status == 0 and "the agent can run here" in result.out, result
    confined.unit.assert_all_used()
    for capability in confined.capabilities:
        if capability == "CAP_SYS_RESOURCE":  # only before Linux 5.11
            continue
        without = Confined("check", less=[capability])
        result = e.run(*without.command("--check", "--sink", "dir:/var/lib/sysprof"), env=without.environ())
        print(capability, result.out)
        assert "MISSING  " + capability.lower() in result.out, (capability, result)
        assert (result.status != 0) == (capability in NEEDED), (capability, result)


@e.long
def test_it_sees_what_root_sees():
    """Whole stacks and names of another user's container, code of a JIT, services, the kernel's names."""
    e.need_root()
    confined = Confined("unit")
    state, (manager, notify), messages = confined.state, manager_socket(), []
    config = e.scratch("agent.conf")
    with open(config, "w", encoding="utf-8") as f:
        f.write("[agent]\nwindow = 10\nlisten = none\ncpu = 0\nmemory = 0\nfrequency = 499\n[sink files]\nto = dir:/var/lib/sysprof/out\n")
    os.makedirs(state + "/out")
    os.chown(state + "/out", USER, USER)
    with seen_programs("theirs"):
        confined.start(*confined.arguments[1:], "--config", config, NOTIFY_SOCKET=notify, WATCHDOG_USEC="2000000")

        try:
            # a socket holds ten messages
            wait_until_seen(confined.p, confined.said, state + "/out", lambda: messages.extend(reported(manager)))
            own, below = e.status_of(confined.p.pid), [e.status_of(c) for c in e.descendants(confined.p.pid)]
            begin = time.monotonic()
            confined.p.send_signal(signal.SIGTERM)
            assert confined.p.wait(timeout=60) == 0, confined.said()
            took = time.monotonic() - begin
        finally:
            confined.p.kill()
    print(confined.said(), f"ended in {took:.2f} s")
    # its user, and its capabilities
    wanted = numbered(confined.capabilities)
    assert own["Uid"].split() == [str(USER)] * 4 and own["NoNewPrivs"] == "1" and own["Seccomp"] == "2", own
    for kind in "CapEff", "CapPrm", "CapBnd", "CapAmb":
        assert int(own[kind], 16) == wanted, (kind, own)
    below = [{k: h[k] for k in ("Name", "State", "CapEff", "NoNewPrivs")} for h in below]
    print(*below, sep="\n")
    for helper in below:
        assert int(helper["CapEff"], 16) & ~wanted == 0 and helper["NoNewPrivs"] == "1", helper
    for name in "sysprof-reader", "sysprof-builder", "sysprof-jit":
        # one that a filter killed is a zombie
        assert any(h["Name"] == name and h["State"][0] != "Z" for h in below), (name, below)
    assert all(int(h["CapEff"], 16) == 0 for h in below if h["Name"] == "sysprof-builder"), below
    messages += reported(manager)
    assert messages[0] == "READY=1" and messages[-1] == "STOPPING=1", messages
    assert messages.count("WATCHDOG=1") >= 3, messages
    # what it saw
    windows = [json.load(open(name, encoding="utf-8")) for name in sorted(glob.glob(state + "/out/*.json"))]
    names = {s["labels"]["service_name"] for w in windows for s in w["services"]}
    print(names)
    assert SERVICE in names, names
    assert os.listdir(confined.cache + "/unwind-tables"), "tables are kept for the next start"
    # no other user reads what it keeps
    for name in glob.glob(state + "/*") + glob.glob(state + "/out/*"):
        st = os.stat(name)
        assert st.st_uid == USER and not st.st_mode & 0o077 or name.endswith("/out"), (name, oct(st.st_mode))


# A container's file system, made of what the manifest mounts: $1, then "TARGET SOURCE ro|rw" lines in $2.
CONTAINED = """
root=$1 mounts=$2; shift 2
mount --bind "$root" "$root"
mount --rbind /proc "$root/proc"; mount --rbind /sys "$root/sys"
mount -t tmpfs tmpfs "$root/dev"; touch "$root/dev/null"; mount --bind /dev/null "$root/dev/null"
while read -r target source mode; do
	mount --bind "$source" "$root$target"
	mount -o "remount,bind,$mode" "$root$target"
done <"$mounts"
mount -o remount,bind,ro "$root"
exec chroot "$root" "$@"
"""


def image():
    """A root directory with the program, and setpriv, which is the runtime here."""
    root = e.scratch("image")
    for program, target in ((e.SYSPROF, "/usr/bin/sysprof"), (shutil.which("setpriv"), "/setpriv")):
        for path in [program, *re.findall(r"(/\S+) \(0x", e.run("ldd", program).out)]:
            place = root + (target if path == program else path)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            shutil.copy(path, place)
    return root


@e.alone  # it names every process of the host before it ends
@e.long
def test_it_runs_as_the_manifest_says():
    """packaging/container/daemonset.yaml: its mounts, capabilities, arguments and environment."""
    e.need_root()
    with open(os.path.join(e.TOP, "packaging/container/daemonset.yaml"), encoding="utf-8") as f:
        config, daemonset = yaml.safe_load_all(f)
    pod = daemonset["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    security = container["securityContext"]
    assert pod["hostPID"] and not pod.get("hostNetwork") and not pod["automountServiceAccountToken"], pod
    assert (security["privileged"], security["allowPrivilegeEscalation"], security["readOnlyRootFilesystem"]) == \
        (False, False, True), security
    assert security["runAsUser"] == 0 and security["capabilities"]["drop"] == ["ALL"], security
    wanted = ["CAP_" + c for c in security["capabilities"]["add"]]
    # of the unit, and of helpers that start as root and must not stay root
    assert set(wanted) == set(Unit(UNIT).words("CapabilityBoundingSet")) | \
        {"CAP_SETUID", "CAP_SETGID", "CAP_SYS_CHROOT"}, "the unit and the manifest differ"

    root, volumes = image(), {v["name"]: v for v in pod["volumes"]}
    conf = config["data"]["agent.conf"]
    assert "to = pyroscope:" in conf, conf
    with open(e.scratch("mounts"), "w", encoding="utf-8") as f:
        for mount in container["volumeMounts"]:
            volume, writable = volumes[mount["name"]], not mount.get("readOnly")
            assert writable == (mount["name"] == "spool"), mount
            source = e.scratch("volume-" + mount["name"])
            if "hostPath" in volume and not writable and os.path.isdir(volume["hostPath"]["path"]):
                source = volume["hostPath"]["path"]
            os.makedirs(source, exist_ok=True)
            if "configMap" in volume:
                e.write(source + "/agent.conf", re.sub("to = .*", "to = dir:/var/lib/sysprof/out", conf))
            os.makedirs(root + mount["mountPath"], exist_ok=True)
            f.write(f"{mount['mountPath']} {source} {'rw' if writable else 'ro'}\n")
    for directory in "proc", "sys", "dev", "tmp":
        os.makedirs(f"{root}/{directory}", exist_ok=True)
    os.makedirs(e.scratch("volume-spool") + "/out", exist_ok=True)
    fields = {"spec.nodeName": "node-1", "status.podIP": "127.0.0.1"}
    environment = {v["name"]: v["value"] if "value" in v else fields[v["valueFrom"]["fieldRef"]["fieldPath"]]
                   for v in container["env"]}
    arguments = [re.sub(r"\$\((\w+)\)", lambda m: environment[m[1]], a) for a in container["args"]]
    port = e.free_port()  # another agent may be on this host
    arguments = [a.replace(":4041", f":{port}") for a in arguments]
    caps = ",".join("+" + c.lower().removeprefix("cap_") for c in wanted if numbered([c]) & capabilities_here())
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-euc", CONTAINED, "sh", root, e.scratch("mounts"),
               "/setpriv", "--inh-caps=-all", "--bounding-set=-all," + caps, "--no-new-privs", "/usr/bin/sysprof", "agent"]
    # first what is missing, then windows
    check = e.run(*command, *arguments, "--check", env=environment)
    print(check)
    assert check.status == 0 and "MISSING" not in check.out, check
    out = e.scratch("volume-spool") + "/out"
    with open(e.scratch("container.log"), "w+", encoding="utf-8") as log, seen_programs("theirs-too"):
        p = subprocess.Popen([*command, *arguments, "--window", "10", "--cpu", "0", "--memory", "0", "--frequency", "499"], stdout=log, stderr=log, env=environment)
        try:
            wait_until_seen(p, lambda: e.read(log.name), out)
            for probe in "readinessProbe", "livenessProbe":
                with urllib.request.urlopen(f"http://127.0.0.1:{port}{container[probe]['httpGet']['path']}") as f:
                    assert f.status == 200
            p.terminate()
            assert p.wait(timeout=60) == 0
        finally:
            p.kill()
            log.seek(0)
            print(log.read())
    nodes = {s["labels"]["node"] for name in glob.glob(out + "/*.json")
             for s in json.load(open(name, encoding="utf-8"))["services"]}
    assert nodes == {"node-1"}, nodes


def test_three_failures_make_a_safe_start():
    """kill -9 three times; the fourth start is without tables, and says so where it is looked for."""
    e.need_root()
    confined = Confined("safe")
    arguments = (*confined.arguments[1:], "--sink", "dir:/var/lib/sysprof/out", "--window", "10", "--listen",
                 "unix:/var/lib/sysprof/metrics")
    os.makedirs(confined.state + "/out")
    os.chown(confined.state + "/out", USER, USER)

    def metrics():
        with socket.socket(socket.AF_UNIX) as s:
            try:
                s.connect(confined.state + "/metrics")
            except OSError:
                return ""
            s.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            text = b""
            while piece := s.recv(65536):
                text += piece
            return text.decode() if b" 200 " in text.partition(b"\r")[0] else ""

    for turn in range(4):
        confined.start(*arguments)
        try:
            text = e.wait_for(metrics, what="metrics")
            safe = re.search(r"^sysprof_safe_mode\S* (\d)", text, re.M)
            assert safe and safe[1] == ("1" if turn == 3 else "0"), (turn, text)
            if turn == 3:
                confined.p.terminate()
                assert confined.p.wait(timeout=60) == 0, confined.said()
        finally:
            confined.p.kill()
            confined.p.wait()
    assert "three failures in ten minutes" in confined.said(), confined.said()
    # its end was in order: the next start is a whole one
    assert not os.path.exists(confined.state + "/starts"), os.listdir(confined.state)


e.main(globals())
