#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside
"""What the shells complete, in the shells themselves: each command's options, and no others."""
import os
import pty
import re
import select
import shutil
import time

import libe2e as e

PLACE = os.path.join(e.BUILD, "completions")


def commands():
    return re.findall(r"^  ([a-z-]+) +", e.sysprof("help", check=0).out.partition("Commands:")[2], re.M)


def options_of(command):
    if command in ("version", "help"):
        return set()
    text = re.sub(r"sysprof \w+ --[a-z-]+", "", e.sysprof("help", command, check=0).out)  # of other commands
    return set(re.findall(r"--[a-z][a-z-]+", text))


def in_bash(line):
    """As the package bash-completion has it loaded, by its name."""
    script = f"""
    mkdir -p "$1/bash-completion/completions"; cp "$2/sysprof" "$1/bash-completion/completions/"
    export XDG_DATA_HOME="$1"; . /usr/share/bash-completion/bash_completion; __load_completion sysprof
    COMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}; read -ra COMP_WORDS <<<"$COMP_LINE"
    [[ $COMP_LINE != *' ' ]] || COMP_WORDS+=('')
    COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _sysprof; printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    return e.run("bash", "--norc", "-c", script, "bash", e.scratch("bash"), PLACE).out.split()


def in_fish(line):
    script = f"source {PLACE}/sysprof.fish; complete -C '{line}'"
    out = e.run("fish", "--no-config", "-c", script, env={**os.environ, "HOME": e.scratch("home")}).out
    return [row.split("\t")[0] for row in out.splitlines()]


class Zsh:
    """One on a terminal, since its completion is for people. Wide and high, so that it lists without questions."""

    def __init__(self):
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.environ.update({"TERM": "dumb", "COLUMNS": "250", "LINES": "200", "HOME": e.SCRATCH})
            os.execvp("zsh", ["zsh", "-f", "-i"])
        os.set_blocking(self.fd, False)
        # the options are requested with their descriptions, which have to survive the quoting
        self.say(f"PS1=; stty cols 250 rows 200; fpath=({PLACE} $fpath); autoload -U compinit; compinit -D -u; "
                 "LISTMAX=0; setopt nobeep; unsetopt zle_bracketed_paste; zstyle ':completion:*' menu no; "
                 "print REA''DY\n", "READY")

    def say(self, text, until, timeout=300):
        os.write(self.fd, text.encode())
        got, end = "", time.monotonic() + timeout
        while time.monotonic() < end and not re.search(until, got):
            if select.select([self.fd], [], [], 0.2)[0]:
                got += os.read(self.fd, 65536).decode(errors="replace")
        assert re.search(until, got), got
        return got

    def options(self, command):
        """Of a list that is printed below the line; then the line is killed, and something else printed."""
        got = self.say(f"sysprof {command} --\t\t", "--[a-z-]+  +--", 30)
        got += self.say("\x15print DO''NE\n", "DONE")
        return got

    def end(self):
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


def need(*programs):
    for program in programs:
        assert shutil.which(program), f"{program} is missing: tools/install-deps.sh test"


def check(complete, name):
    assert set(complete("sysprof ")) >= set(commands()), (name, complete("sysprof "))
    for command in commands():
        found = {word for word in complete(f"sysprof {command} --") if word.startswith("--")}
        assert found == options_of(command), (name, command, found ^ options_of(command))
    assert complete("sysprof agent --dry") == ["--dry-run"], (name, complete("sysprof agent --dry"))
    assert set(complete("sysprof perf-map t")) >= {"tidy"}, (name, complete("sysprof perf-map t"))


def test_bash():
    need("bash")
    check(in_bash, "bash")


def test_fish():
    need("fish")
    os.makedirs(e.scratch("home"), exist_ok=True)
    check(in_fish, "fish")


def test_zsh():
    need("zsh")
    assert e.run("zsh", "-n", PLACE + "/_sysprof").status == 0
    shell = Zsh()
    try:
        for command in ("record", "agent", "report"):
            got = shell.options(command)
            found = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", got))
            assert found >= options_of(command), (command, options_of(command) - found, got)
        assert "pyroscope:URL, parca:URL" in shell.options("agent"), got
        got = shell.say("sysprof perf-map ti\t\t", "tidy") + shell.say("\x15print DO''NE\n", "DONE")
    finally:
        shell.end()


e.main(globals())
