# SPDX-License-Identifier: BSD-2-Clause
"""What writing a big profile costs, in every format."""
import subprocess

from libbench import Broken, bench, budget, pick, scratch, table

SAMPLES, THREADS = 4000000, 400


def exporting():
    samples = pick(SAMPLES, SAMPLES // 4)
    done = subprocess.run([bench("export"), str(samples), str(THREADS), scratch("")], capture_output=True,
                          text=True, check=False)
    if done.returncode:
        raise Broken(f"export: {done.stderr}")
    facts = [line.split() for line in done.stdout.splitlines()]
    about = {words[0]: words[1] for words in facts if len(words) == 2}
    rows, notes = [], []
    for suffix, cpu, wall, size, memory in (words for words in facts if len(words) == 5):
        rows.append([suffix, cpu, wall, size, memory])
        if samples == SAMPLES:
            notes.append(budget(f"{suffix} of 4 M samples", float(cpu), 3, "s of CPU"))
            notes.append(budget(f"{suffix} of 4 M samples, beside the profile", float(memory), 300, "MB", 0))
    table(f"Writing {samples:,} samples of {THREADS} threads, {about['stacks']} distinct stacks",
          f"tests/bench/export {samples} {THREADS} DIR",
          ["", "CPU s", "wall s", "MB", "peak MB"], rows,
          [f"The profile itself: {about['profile-MB']} MB. .cpuprofile: the busiest thread.", *notes])
