#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# demo.sh BUILD: runs a small workload, records the whole system beside it for 5 seconds, and shows
# what came out. Only the recording itself runs as root.
set -euo pipefail

build=$1
out=$build/demo
as_root=()
if [ "$(id -u)" -ne 0 ]; then
	command -v sudo >/dev/null || {
		echo "recording needs root, and there is no sudo here: run 'make demo' as root" >&2
		exit 1
	}
	as_root=(sudo)
	echo "recording needs root: running sysprof record with sudo"
	sudo -v
fi

rm -rf "$out"
mkdir -p "$out"
"$build/tools/demo_workload" 8 &
workload=$!
trap 'kill $workload 2>/dev/null || true' EXIT

record=("$build/sysprof" record -a -d 5 -o "$out/demo.html" -o "$out/demo.json.gz" -o "$out/demo.cpuprofile" -o "$out/demo.trace.json.gz" -o "$out/demo.pb.gz"
	-o "$out/demo.folded" -o "$out/demo.sysprof")
echo
echo "\$ ${as_root[*]}${as_root[*]:+ }${record[*]}"
"${as_root[@]}" "${record[@]}"

report=("$build/sysprof" report "$out/demo.sysprof" --top 20)
echo
echo "\$ ${report[*]}"
"${report[@]}"

cat <<END

Open them:
  $out/demo.html           in a browser: flame graph, timeline, search; it needs no network
  $out/demo.json.gz        drop it on https://profiler.firefox.com (it stays in the browser)
  $out/demo.cpuprofile     Chrome: DevTools, Performance, load profile; or open it in VS Code
  $out/demo.trace.json.gz  Chrome: the same panel, all threads; or ui.perfetto.dev
  $out/demo.pb.gz          go tool pprof -http=: $out/demo.pb.gz
  $out/demo.folded         text, a stack a line: grep it, or feed a flame graph
  $out/demo.sysprof        the recording: $build/sysprof open $out/demo.sysprof shows it in the browser,
                           $build/sysprof convert $out/demo.sysprof -o other.json.gz converts it
END
