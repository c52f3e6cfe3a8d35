# SPDX-License-Identifier: BSD-2-Clause
"""Programs as people run them, to be recorded: a compiler, JavaScript, Java, C."""
import shutil

from libbench import Program, fixture, scratch

NODE = "function f(n) { return n < 2 ? n : f(n - 1) + f(n - 2); } for (;;) f(25);"

NODE_DEEP = ("function deep(n, f) { return n ? deep(n - 1, f) + 1 : f(); }"
             "function work() { let x = 0; for (let i = 0; i < 1e6; i++) x += i % 7; return x; }"
             "for (;;) deep(12, work);")

JAVA = """public class Busy {
	static long f(int n) {
		return n < 2 ? n : f(n - 1) + f(n - 2);
	}
	public static void main(String[] arguments) {
		for (long x = 0;;)
			x += f(25);
	}
}
"""

PYTHON = """
def f(n):
    return n if n < 2 else f(n - 1) + f(n - 2)
while True:
    f(20)
"""

PYTHON_DEEP = """
def deep(n):
    return deep(n - 1) + 1 if n else sum(i % 7 for i in range(100000))
while True:
    deep(12)
"""


def c_source():
    """A second or so of work for a compiler."""
    body = "\tfor (int i = 0; i < n; i++) {{ x = x * {k} + v[i % 16]; v[x % 16] += x >> {s}; }}\n"
    text = ["typedef unsigned long u;\n"]
    for k in range(400):
        text.append(f"u f{k}(u *v, int n, u x)\n{{\n" +
                    "".join(body.format(k=2 * k + j, s=1 + j) for j in range(6)) +
                    "\treturn x;\n}\n")
    return "".join(text)


def write(name, text):
    with open(scratch(name), "w", encoding="utf-8") as f:
        f.write(text)
    return scratch(name)


def compiling():
    clang = shutil.which("clang") or shutil.which("cc")
    source = write("busy.c", c_source())
    return clang and f"while :; do {clang} -O2 -c -o /dev/null {source}; done"


def compiler():
    command = compiling()
    return command and Program("sh", "-c", command)


def java():
    # a source file by itself needs the compiler, which a runtime alone does not have
    if not shutil.which("java") or not shutil.which("javac"):
        return None
    return Program("java", "-Xmx128m", "-XX:-UsePerfData", write("Busy.java", JAVA))


def node():
    return shutil.which("node") and Program("node", "-e", NODE)


STARTERS = {
    "clang": compiler,
    "node": node,
    "java": java,
    "chain": lambda: Program(fixture("chain"), 600),
    "python": lambda: Program("python3", "-c", PYTHON),
}


class Busy:
    """Those of the named workloads that this machine has; python3 in place of what it has not."""

    def __init__(self, *names):
        self.running, self.missing = {}, []
        for name in names:
            program = STARTERS[name]()
            if program:
                self.running[name] = program
            else:
                self.missing.append(name)
        if self.missing:
            self.running["python3"] = STARTERS["python"]()

    def names(self):
        missing = f" ({', '.join(self.missing)} not here)" if self.missing else ""
        return ", ".join(self.running) + missing

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for program in self.running.values():
            program.close()
