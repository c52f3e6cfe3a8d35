# SPDX-License-Identifier: BSD-2-Clause
"""profiles.py DIR: profiles of zprofile of work of several kinds, DIR/python-NAME.pb.gz."""
import hashlib
import json
import re
import sys
import threading
import time

from zprofile.cpu_profiler import CPUProfiler


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


class Tree:
    def __init__(self, depth):
        self.left = self.right = None
        if depth:
            self.left, self.right = Tree(depth - 1), Tree(depth - 1)

    def size(self):
        return 1 + sum(child.size() for child in (self.left, self.right) if child)


WORK = {
    "fibonacci": lambda: fibonacci(16),
    "tree": lambda: Tree(8).size(),
    "sorted": lambda: sorted(range(5000), key=lambda i: i * 7919 % 5003),
    "encoded": lambda: json.loads(json.dumps({"a": ["x"] * 500, "b": {str(i): i for i in range(500)}})),
    "matched": lambda: re.sub(r"(\w+)@(\w+)", r"\2 at \1", "a@b, " * 500),
    "hashed": lambda: [hashlib.sha256(b"x" * i).digest() for i in range(300)],
}


def profile(function, seconds):
    """A profile of a thread, and the CPU time of that thread."""
    done, used = threading.Event(), []

    def work():
        while not done.is_set():
            function()
        used.append(time.thread_time())

    thread = threading.Thread(target=work)
    thread.start()
    data = CPUProfiler().profile(seconds)
    done.set()
    thread.join()
    return data, used[0]


for name, function in WORK.items():
    seconds = 0.25
    data, used = profile(function, seconds)
    while used < 0.1:  # other programs have the CPUs
        seconds *= 2
        data, used = profile(function, seconds)
    with open(f"{sys.argv[1]}/python-{name}.pb.gz", "wb") as file:
        file.write(data)
