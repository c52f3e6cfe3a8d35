# SPDX-License-Identifier: BSD-2-Clause
"""
JDKs: those of the system, and those in the directory $JDKS. $JDK is the version that tests of one version take; else 17.
Programs are compiled by the system's javac, for the oldest.
"""
import contextlib
import glob
import os
import shutil

from libe2e import Skip, run, scratch

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fixtures/java")
MAJOR = int(os.environ.get("JDK", "17"))


def jdks():
    """The directory of a JDK of each major version."""
    found = {}
    for home in sorted(glob.glob("/usr/lib/jvm/*")) + sorted(glob.glob(os.environ.get("JDKS", "") + "/*")):
        release = os.path.join(home, "release")
        if not all(os.path.exists(x) for x in (os.path.join(home, "bin/java"), release)):
            continue
        with open(release, encoding="utf-8") as f:
            version = next((line.split('"')[1] for line in f if line.startswith("JAVA_VERSION=")), None)
        if version:
            found.setdefault(int(version.split(".")[0]), os.path.realpath(home))
    if not found or not shutil.which("javac"):
        raise Skip("there is no JDK")
    return found


def jdk(major=MAJOR):
    if major not in jdks():
        raise Skip(f"there is no JDK {major}")
    return jdks()[major]


def cpu_ns(pid):
    """Of all threads of a JVM."""
    total = 0
    for tid in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as f:
            total += int(f.read().split()[0])
    return total


def compiled(name):
    """The directory with the classes of one of the programs, compiled once."""
    place = scratch(f"classes-{name}")
    if not os.path.exists(place):
        os.mkdir(place)
        run("javac", "-d", place, os.path.join(SOURCES, name + ".java"), check=0)
    return place
