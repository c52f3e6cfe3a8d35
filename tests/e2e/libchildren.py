# SPDX-License-Identifier: BSD-2-Clause
"""The child processes of a running sysprof, as /proc shows them, compared with a table of classes.

A Watch polls the children of a program and of its children, some hundred times a second. While a child is not what its
class in the table says, it is stopped, read and continued, so that one that lives for milliseconds is seen in each of its
states. A child that has been what its class says must remain so.

The table (helper_classes.json) has for each class
  name, parent     the name of the process (null: any other program than sysprof), and the class of its parent
  most             how many of them a parent may have at one time; one more is of another class
  becomes          the class that it turns into
  group            its process group: its own, its parent's, sysprof's
  capabilities     those permitted, of those that sysprof has; none is inheritable or ambient
  bounding         the bounding set
  no_new_privs, filters, oom, root
                   a builder also has one thread, and has mapped no ring of the kernel's
  dumpable         null: until it first borrows a user
  read_by_parent   its parent reads its memory
  user             user and group; other groups: none, or sysprof's where the user is. "own": a user that no other process
                   has; "borrows": file system user, groups and effective capabilities may be a target's for a while
  descriptors      how many there may be of each kind; "*": files and directories, and whatever else was opened
  limits           as set by the class; all others are sysprof's. "above sysprof": so many bytes more than sysprof has of
                   address space, "of memory": a share of the machine's memory, "most": at most so many
"""
import contextlib
import ctypes
import errno
import json
import os
import re
import signal
import threading
import time

STOPPED_MS = 20  # until a child that gets SIGSTOP is stopped; one that waits for a device is looked at without
POLL_S = 0.0005
CALM_POLL_S, CALM_AFTER_S = 0.01, 1  # between polls when no child has come for a while
CAPABILITY_SYS_PTRACE = 19
KEPT = "Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Seccomp_filters"
LIMITS = {"Max address space": "AS", "Max file size": "FSIZE", "Max cpu time": "CPU", "Max core file size": "CORE",
          "Max open files": "NOFILE", "Max processes": "NPROC", "Max locked memory": "MEMLOCK"}
libc = ctypes.CDLL(None, use_errno=True)


def read(pid, name):
    with open(f"/proc/{pid}/{name}", encoding="utf-8", errors="replace") as f:
        return f.read()


def stat_of(pid):
    """The fields behind the name: state, parent, process group …; the start time is number 19."""
    return read(pid, "stat").rpartition(")")[2].split()


def status_of(pid):
    return dict(line.split(":", 1) for line in read(pid, "status").splitlines() if ":" in line)


def children_of(pid):
    """Those of all threads."""
    found = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                found += map(int, read(pid, f"task/{task}/children").split())
    return found


def kind_of(link):
    """What a descriptor is, without its number: socket, pipe, memfd, anon_inode:[NAME] …"""
    match = re.fullmatch(r"(socket|pipe):\[\d+\]", link)
    if match:
        return match[1]
    if link.startswith("/memfd:"):
        return "memfd"
    return link


def descriptors_of(pid):
    """{number: kind}; a file is "file", a directory "directory"."""
    found = {}
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            kind = kind_of(os.readlink(f"/proc/{pid}/fd/{fd}"))
            if kind.startswith("/") and not kind.startswith("/dev/"):
                kind = "directory" if os.path.isdir(f"/proc/{pid}/fd/{fd}") else "file"
            found[int(fd)] = kind
    return found


def limits_of(pid):
    """{name: (soft, hard)}, None: there is none."""
    found = {}
    for line in read(pid, "limits").splitlines()[1:]:
        name, values = line[:26].strip(), line[26:].split()[:2]
        if name in LIMITS:
            found[LIMITS[name]] = tuple(None if value == "unlimited" else int(value) for value in values)
    return found


class Capabilities(ctypes.Structure):
    _fields_ = [("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32)]


@contextlib.contextmanager
def without_ptrace():
    """Within the with block CAP_SYS_PTRACE of the calling thread is permitted, but not in effect."""
    header, before, now = (ctypes.c_uint32 * 2)(0x20080522, 0), (Capabilities * 2)(), (Capabilities * 2)()
    get, put = {"x86_64": (125, 126), "aarch64": (90, 91)}[os.uname().machine]
    assert not libc.syscall(get, header, before) and not libc.syscall(get, header, now)
    now[0].effective &= ~(1 << CAPABILITY_SYS_PTRACE)
    assert not libc.syscall(put, header, now), os.strerror(ctypes.get_errno())
    try:
        yield
    finally:
        assert not libc.syscall(put, header, before), os.strerror(ctypes.get_errno())


class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]


def is_dumpable(pid):
    """
    Without ptrace, reading its memory is refused if it is not dumpable, and else fails since there is nothing at address 0.
    The files in /proc of a process of another user show it by their owner.
    """
    if os.stat(f"/proc/{pid}").st_uid != os.geteuid():
        return os.stat(f"/proc/{pid}/environ").st_uid == os.stat(f"/proc/{pid}").st_uid
    byte = ctypes.create_string_buffer(1)
    local, remote = Vector(ctypes.addressof(byte), 1), Vector(0, 1)
    with without_ptrace():
        ctypes.set_errno(0)
        libc.process_vm_readv(pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
        error = ctypes.get_errno()
    if error not in (errno.EFAULT, errno.EPERM):
        raise OSError(error, os.strerror(error))
    return error == errno.EFAULT


class State:
    """All that /proc says of a process at one moment."""

    def __init__(self, pid):
        stat, status = stat_of(pid), status_of(pid)
        self.pid, self.parent, self.group, self.begin = pid, int(stat[1]), int(stat[2]), int(stat[19])
        self.name, self.exe = status["Name"].strip(), os.readlink(f"/proc/{pid}/exe")
        self.status = {key: status.get(key, "0").strip() for key in KEPT}
        self.users, self.groups = self.status["Uid"].split(), self.status["Gid"].split()
        self.address_space = int(status.get("VmPeak", "0").split()[0]) << 10
        self.root = os.readlink(f"/proc/{pid}/root")
        self.descriptors, self.limits = descriptors_of(pid), limits_of(pid)
        self.threads, self.maps_rings = int(status["Threads"]), "anon_inode:" in read(pid, "maps")
        self.oom = int(read(pid, "oom_score_adj"))
        self.dumpable = is_dumpable(pid)
        self.cpu_ns = int(read(pid, "schedstat").split()[0])

    def mask(self, which):
        return int(self.status["Cap" + which], 16)

    def __repr__(self):
        return (f"{self.pid} {self.name!r}, child of {self.parent}, group {self.group}, root {self.root}, "
                f"oom {self.oom}, {'dumpable' if self.dumpable else 'not dumpable'}, {self.cpu_ns / 1e6:.1f} ms of CPU time\n"
                f"      {self.status}\n      {self.limits}\n      {self.descriptors}")


# ---- the classes ---------------------------------------------------------------------------------

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "helper_classes.json")
NAMES = {name: number for number, name in enumerate(
    "chown dac_override dac_read_search fowner fsetid kill setgid setuid setpcap linux_immutable net_bind_service "
    "net_broadcast net_admin net_raw ipc_lock ipc_owner sys_module sys_rawio sys_chroot sys_ptrace sys_pacct sys_admin "
    "sys_boot sys_nice sys_resource sys_time sys_tty_config mknod lease audit_write audit_control setfcap mac_override "
    "mac_admin syslog wake_alarm block_suspend audit_read perfmon bpf checkpoint_restore".split())}


def memory_of_machine():
    with open("/proc/meminfo", encoding="ascii") as f:
        return int(f.readline().split()[1]) << 10


class Differences(list):
    """What of a state is not as its class says."""

    def expect(self, what, is_so, wanted):
        if is_so != wanted:
            self.append(f"{what} is {is_so}, not {wanted}")

    def at_most(self, what, number, most):
        if number is None or number > most:
            self.append(f"{what} is {number}, more than {most}")


class Class:
    def __init__(self, name, row):
        self.name, self.row = name, row

    def compare(self, state, parent, sysprof, targets):
        """Differences of the state of a child. `sysprof`, `parent`: their states; `targets`: [(user, group)]."""
        found = Differences()
        self._rights(found, state, sysprof)
        self._user(found, state, sysprof, targets)
        found.expect("root", "empty" if re.fullmatch(r"/proc/\d+/fdinfo", state.root) else state.root,
                     "empty" if self.row["root"] == "empty" and self._is_root(sysprof) else sysprof.root)
        found.expect("oom", state.oom, self.row["oom"])
        if self.row["name"] == "sysprof-builder":
            found.expect("threads, rings of the kernel", (state.threads, state.maps_rings), (1, False))
        # it is not dumpable because it has changed its user, which takes privileges
        stays = self.row.get("read_by_parent") and not self._is_root(sysprof)
        if self.row["dumpable"] is not None:
            found.expect("dumpable", state.dumpable, sysprof.dumpable if stays else self.row["dumpable"])
        group = {"own": state.pid, "parent's": parent.group, "sysprof's": sysprof.group}[self.row["group"]]
        found.expect("process group", state.group, group)
        self._descriptors(found, state)
        for name, limit in state.limits.items():
            self._limit(found, name, limit, sysprof)
        return found

    @staticmethod
    def _is_root(sysprof):
        return sysprof.users[1] == "0"

    def _mask(self, names, own):
        return own if names == "sysprof's" else own & sum(1 << NAMES[name] for name in names)

    def _rights(self, found, state, sysprof):
        permitted = self._mask(self.row["capabilities"], sysprof.mask("Prm"))
        found.expect("permitted", hex(state.mask("Prm")), hex(permitted))
        if not self.row.get("borrows") or state.mask("Eff") & ~permitted:
            found.expect("effective", hex(state.mask("Eff")), hex(permitted & sysprof.mask("Eff")))
        bounding = self.row["bounding"]
        if bounding != "sysprof's" and not sysprof.mask("Eff") >> NAMES["setpcap"] & 1:
            bounding = "sysprof's"  # nothing can be taken out of it
        found.expect("bounding set", hex(state.mask("Bnd")), hex(self._mask(bounding, sysprof.mask("Bnd"))))
        for kind in "Inh", "Amb":
            found.expect(kind, hex(state.mask(kind)), hex(sysprof.mask(kind) if permitted else 0))
        found.expect("no_new_privs", int(state.status["NoNewPrivs"]),
                     max(self.row["no_new_privs"], int(sysprof.status["NoNewPrivs"])))
        filters = self.row["filters"] + int(sysprof.status["Seccomp_filters"])
        found.expect("filters", int(state.status["Seccomp_filters"]), filters)
        found.expect("seccomp", int(state.status["Seccomp"]), 2 if filters else 0)

    def _user(self, found, state, sysprof, targets):
        user, given = self.row["user"], (state.users, state.groups)
        others = set(state.status["Groups"].split())
        if user == "own" and self._is_root(sysprof):
            own = str(0x7f000000 + state.pid)
            found.expect("users", given, ([own] * 4, [own] * 4))
            found.expect("groups", others, set())
        elif user == "target's":
            if given not in [([u] * 4, [g] * 4) for u, g in targets]:
                found.append(f"users are {given}, not of a target")
            found.expect("groups", others, set())
        elif user == "sudo's":
            found.expect("users", given, ([os.environ["SUDO_UID"]] * 4, [os.environ["SUDO_GID"]] * 4))
            found.expect("groups", others - {os.environ["SUDO_GID"]}, set())
        elif self.row.get("borrows"):
            found.expect("users", (state.users[:3], state.groups[:3]), (sysprof.users[:3], sysprof.groups[:3]))
            if (state.users[3], state.groups[3]) not in [(sysprof.users[3], sysprof.groups[3]), *targets]:
                found.append(f"its file system user {state.users[3]}:{state.groups[3]} is not a target's")
        else:
            found.expect("users", given, (sysprof.users, sysprof.groups))
            found.expect("groups", others, set(sysprof.status["Groups"].split()))

    def _descriptors(self, found, state):
        kinds, rest = {}, 0
        for kind in state.descriptors.values():
            kinds[kind] = kinds.get(kind, 0) + 1
        for kind, count in kinds.items():
            if kind in self.row["descriptors"]:
                rest += max(0, count - self.row["descriptors"][kind])
            elif "*" not in self.row["descriptors"]:
                found.append(f"{count} descriptors of {kind}")
            else:
                rest += count
        found.at_most(f"the number of further descriptors ({kinds})", rest, self.row["descriptors"].get("*", 0))

    def _limit(self, found, name, limit, sysprof):
        wanted = self.row["limits"].get(name)
        if wanted is None:
            found.expect(f"limit {name}", limit[1], sysprof.limits[name][1])
        elif isinstance(wanted, int):
            inherited = sysprof.limits[name][1]
            wanted = wanted if inherited is None else min(wanted, inherited)
            # of CPU time the hard limit comes a second later: then it is killed
            found.expect(f"limit {name}", limit, (wanted, wanted + 1 if name == "CPU" and limit[1] != wanted else wanted))
        else:
            (how, number), = wanted.items()
            most = {"above sysprof": sysprof.address_space + number, "of memory": number * memory_of_machine(),
                    "most": number}[how]
            found.at_most(f"limit {name}", limit[0], most)
            found.at_most(f"hard limit {name}", limit[1], most + 1)


def classes():
    with open(TABLE, encoding="utf-8") as f:
        return {name: Class(name, row) for name, row in json.load(f).items()}


# ---- watching ------------------------------------------------------------------------------------

CPU_MS_UNTIL_SET_UP = 100  # of CPU time that a child may take until it is what its class says
LOOK_AGAIN_S = 0.2


class Child:
    """One child process, from when it was first seen."""

    def __init__(self, pid, parent):
        self.pid, self.parent = pid, parent
        self.begin, self.state, self.is_a, self.looked = None, None, None, 0.0
        self.best = []  # the differences from the class that is nearest
        self.been = set()

    def __repr__(self):
        return f"{self.state}\n      " + "\n      ".join(self.best)


class Watch(threading.Thread):
    """All children of a running sysprof, within the with block. `seen` has the classes that were there."""

    def __init__(self, pid, targets=()):
        super().__init__(daemon=True)
        self.pid, self.targets, self.classes = pid, [(str(u), str(g)) for u, g in targets], classes()
        self.exe, self.sysprof, self.sysprof_read = os.readlink(f"/proc/{pid}/exe"), State(pid), 0.0
        self.children, self.past, self.failures, self.ending, self.error, self.polls = {}, [], [], False, None, 0
        self.last_birth = time.monotonic()
        # what a child leaves behind becomes ours
        libc.prctl(36, 1)

    # ---- one child

    def _candidates(self, child, state):
        parent = child.parent.is_a if child.parent else "sysprof"
        for c in self.classes.values():
            if "most" in c.row and self._count(c.name, child) >= c.row["most"]:
                continue
            if c.row["parent"] == parent and (c.row["name"] == state.name or
                                              (c.row["name"] is None and state.exe != self.exe)):
                yield c

    def _count(self, name, child):
        """Others of a class that live and have the same parent."""
        return sum(c.is_a == name and c.parent is child.parent and c is not child for c in self.children.values())

    def _stopped(self, pid):
        """Stop it; False: it waits for a device, or has ended."""
        os.kill(pid, signal.SIGSTOP)
        end = time.monotonic() + STOPPED_MS / 1000
        while time.monotonic() < end:
            if stat_of(pid)[0] in "TtZX":
                return True
        return False

    def _compare(self, child, state):
        """Whether it is what a class of its says; that becomes its class."""
        if child.begin not in (None, state.begin):
            raise ProcessLookupError  # the number is another one's
        child.state, child.begin = state, state.begin
        parent = child.parent.state if child.parent else self.sysprof
        nearest = None
        for c in self._candidates(child, state):
            differences = c.compare(state, parent, self.sysprof, self.targets)
            if nearest is None or len(differences) < len(nearest):
                nearest = differences
                child.best = [f"{c.name}: {text}" for text in differences]
            if not differences:
                child.is_a = c.name
                child.been.add(c.name)
                return True
        if nearest is None:
            child.best = ["it is of no known class"]
        return False

    def _read_sysprof(self):
        self.sysprof, self.sysprof_read = State(self.pid), time.monotonic()

    def _look(self, child):
        now = time.monotonic()
        if not child.is_a or now - self.sysprof_read > LOOK_AGAIN_S:
            self._read_sysprof()  # the limits of children depend on its size
        if child.is_a:
            if now - child.looked < LOOK_AGAIN_S and "becomes" not in self.classes[child.is_a].row:
                return
            child.looked = now
            if self._compare(child, State(child.pid)) or "becomes" in self.classes[child.is_a].row:
                return
        # the parts of a state are read one after the other
        try:
            self._stopped(child.pid)
            self._read_sysprof()
            good = self._compare(child, State(child.pid))
            if child.is_a and not good:
                self.failures.append(f"{child.is_a} is one no longer: {child}")
        finally:
            os.kill(child.pid, signal.SIGCONT)

    # ---- all of them

    def _find(self):
        """Those that live, parents first."""
        found = [(pid, None) for pid in children_of(self.pid)]
        found += [(pid, None) for pid in children_of(os.getpid()) if pid != self.pid and pid in self.children]
        for pid, parent in found:
            child = self.children.get(pid)
            if child is None:
                child = self.children[pid] = Child(pid, parent)
                self.last_birth = time.monotonic()
            yield child
            if child.is_a != "COMMAND" and child.state and child.state.exe == self.exe:
                found += [(pid, child) for pid in children_of(child.pid)]

    def _ended(self, child):
        if not child.is_a and child.state and child.state.cpu_ns > CPU_MS_UNTIL_SET_UP * 1000000:
            self.failures.append(f"it has worked without being what its class says: {child}")

    def _poll(self):
        living = set()
        for child in self._find():
            living.add(child.pid)
            with contextlib.suppress(OSError, KeyError, IndexError, ValueError):  # it has ended
                self._look(child)
        for pid in set(self.children) - living:
            self._ended(self.children[pid])
            self.past.append(self.children.pop(pid))

    def run(self):
        try:
            while not self.ending:
                with contextlib.suppress(OSError, KeyError, IndexError):
                    self._poll()
                self.polls += 1
                time.sleep(CALM_POLL_S if time.monotonic() - self.last_birth > CALM_AFTER_S else POLL_S)
        except BaseException as e:  # pylint: disable=broad-except
            self.error = e
            raise

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *why):
        self.ending = True
        self.join()

    @property
    def seen(self):
        """{class: how many processes}"""
        result = {}
        for child in [*self.past, *self.children.values()]:
            for name in child.been:
                result[name] = result.get(name, 0) + 1
        return result

    def strangers(self):
        """Those that live and are not what a class says."""
        return [child for child in list(self.children.values()) if not child.is_a]

    def never_known(self):
        """Those that ended before they were what a class says."""
        return [child for child in self.past if not child.is_a]

    def check(self):
        assert self.error is None, self.error
        assert not self.failures, "\n".join(self.failures)
