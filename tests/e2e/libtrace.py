# SPDX-License-Identifier: BSD-2-Clause
"""A program under ptrace, with its children: each system call that a child makes can be looked at,
and changed, before the kernel sees it. So accidents happen exactly where a test wants them."""
import ctypes
import os
import platform
import signal

from libe2e import Skip

CONT, GETREGS, SETREGS, SYSCALL = 7, 12, 13, 24
GETEVENTMSG, SEIZE = 0x4201, 0x4206
TRACESYSGOOD, TRACEFORK, TRACEVFORK, TRACECLONE, EXITKILL = 1, 2, 4, 8, 0x100000
EVENT_FORKS = (1, 2, 3)
WALL = 0x40000000

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)


class Registers(ctypes.Structure):
    """struct user_regs_struct of x86_64."""
    _fields_ = [(name, ctypes.c_ulonglong) for name in (
        "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss "
        "fs_base gs_base ds es fs gs").split()]


def ptrace(request, pid, address=0, data=0):
    result = _libc.ptrace(request, pid, address, data)
    if result == -1 and ctypes.get_errno():
        raise OSError(ctypes.get_errno(), f"ptrace {request:#x} of {pid}")
    return result


class Child:
    """A process that the traced program made."""

    def __init__(self, pid):
        self.pid = pid
        self.inside = False  # a system call
        self.state = {}      # of whoever looks

    def registers(self):
        registers = Registers()
        ptrace(GETREGS, self.pid, 0, ctypes.addressof(registers))
        return registers

    def set_registers(self, registers):
        ptrace(SETREGS, self.pid, 0, ctypes.addressof(registers))

    def link(self, fd):
        try:
            return os.readlink(f"/proc/{self.pid}/fd/{fd}")
        except OSError:
            return ""


def traceable():
    """The environment, but that leaks are not looked for: LSan does that by ptrace itself."""
    options = os.environ.get("ASAN_OPTIONS", "")
    return dict(os.environ, ASAN_OPTIONS=f"{options}:detect_leaks=0".lstrip(":"))


class Traced:
    """Runs a program to its end; `look(child, registers)` is called at the entry of each system call
    of its children. True from it leaves the child stopped for good."""

    def __init__(self, look, *args, log):
        if platform.machine() != "x86_64":
            raise Skip("registers are known for x86_64 alone")
        self.look, self.children = look, {}
        actions = [(os.POSIX_SPAWN_OPEN, 2, log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644),
                   (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0)]
        self.pid = os.posix_spawn(args[0], [str(a) for a in args], traceable(),
                                  file_actions=actions)
        ptrace(SEIZE, self.pid, 0, TRACESYSGOOD | TRACEFORK | TRACEVFORK | TRACECLONE | EXITKILL)

    def finish(self):
        """Its exit status as the shell has it."""
        while True:
            pid, status = os.waitpid(-1, WALL)
            if os.WIFSTOPPED(status):
                try:
                    self._stopped(pid, status)
                except ProcessLookupError:
                    pass  # it was killed meanwhile
            elif pid == self.pid:
                return os.waitstatus_to_exitcode(status)

    def _stopped(self, pid, status):
        number, event = os.WSTOPSIG(status), status >> 16
        if pid == self.pid:
            if event in EVENT_FORKS:
                message = ctypes.c_ulong()
                ptrace(GETEVENTMSG, pid, 0, ctypes.addressof(message))
                self.children.setdefault(message.value, Child(message.value))
            ptrace(CONT, pid, 0, 0 if event or number & 0x80 else number)
            return
        child = self.children.setdefault(pid, Child(pid))
        if number == signal.SIGTRAP | 0x80:
            child.inside = not child.inside
            if child.inside and self.look(child, child.registers()):
                return
        ptrace(SYSCALL, pid, 0, 0 if event or number & 0x80 else number)
