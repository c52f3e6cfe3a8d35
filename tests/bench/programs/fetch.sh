#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# fetch.sh DIR: the runtimes that npm has and Debian has not, in DIR/npm, for the section "programs" of
# bench.py. What cannot be had is left out, with a word.
set -euo pipefail

[ $# -eq 1 ] || { echo "usage: fetch.sh DIR" >&2; exit 1; }
case $(uname -m) in
x86_64) packages=(@oven/bun-linux-x64@1 @deno/linux-x64-glibc@2) ;;
aarch64) packages=(@oven/bun-linux-aarch64@1 @deno/linux-arm64-glibc@2) ;;
*) packages=() ;;
esac
command -v npm >/dev/null || { echo "fetch.sh: no npm, so neither bun nor deno" >&2; exit; }
mkdir -p "$1"
for package in "${packages[@]}"; do
	npm install --silent --no-fund --no-audit --prefix "$1/npm" "$package" >/dev/null ||
		echo "fetch.sh: npm does not give $package: it is left out" >&2
done
