# SPDX-License-Identifier: BSD-2-Clause
"""Go programs for the end-to-end tests: which go there is, and building with it."""
import os
import shutil

from libe2e import BUILD, Skip, run, scratch

SOURCES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "fixtures/go")
RUNTIMES = os.path.join(os.path.dirname(BUILD), "build/runtimes")
# what is compiled of Go itself, which is most; `make` has put there what all need, as the user that called it
CACHE = os.path.join(os.path.dirname(BUILD), "build/go-cache")


def go():
    for path in (shutil.which("go"), os.path.join(RUNTIMES, "go/bin/go")):
        if path and os.path.exists(path):
            return path
    raise Skip("there is no Go")


def environment(cgo=False):
    """No network, no version but the one that is there."""
    toolchain = os.environ.get("GOTOOLCHAIN", "local")
    return dict(os.environ, GOTOOLCHAIN=toolchain, GOFLAGS="-mod=mod", GOPROXY="off", CGO_ENABLED=str(int(cgo)), GOCACHE=CACHE)


def go_build(package, output, *flags, cgo=False):
    """The program that a directory of SOURCES, or one by its absolute path, builds; its path."""
    program = scratch(output)
    # without -buildvcs=false it asks git, which refuses a tree of somebody else
    run(go(), "build", "-buildvcs=false", *flags, "-o", program, ".", cwd=os.path.join(SOURCES, package),
        env=environment(cgo), check=0, timeout=300)
    return program


def pprof(*args):
    """Go's pprof, which looks for symbols in its own places and sends no requests."""
    built = os.path.join(CACHE, "pprof")
    command = [built] if os.path.exists(built) else [go(), "tool", "pprof"]
    return run(*command, *args, check=0, timeout=300, env=dict(environment(), PPROF_TMPDIR=scratch("pprof-tmp"))).out
