#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# install.sh DIR: put the pinned consumers of package.json into DIR, once, and print the path of the
# node that runs them. No package's install script is run: the node binary comes from the package of
# the platform itself. DIR/stamp holds the package.json it was made from.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
[ $# -eq 1 ] || { echo "usage: install.sh DIR" >&2; exit 2; }
mkdir -p "$1"
dir=$(CDPATH='' cd -- "$1" && pwd)

case $(uname -m) in
x86_64) platform=x64 ;;
aarch64) platform=arm64 ;;
*)
	echo "install.sh: no node package for $(uname -m)" >&2
	exit 1
	;;
esac
node=$dir/node_modules/node-linux-$platform/bin/node

if ! cmp -s "$here/package.json" "$dir/stamp" || ! [ -x "$node" ]; then
	command -v npm >/dev/null || { echo "install.sh: npm is not installed" >&2; exit 1; }
	rm -rf "$dir/stamp" "$dir/node_modules" "$dir/package-lock.json"
	cp "$here/package.json" "$dir/package.json"
	if ! (cd "$dir" && npm install --no-audit --no-fund --ignore-scripts --no-package-lock) \
		>"$dir/npm.log" 2>&1; then
		cat "$dir/npm.log" >&2
		exit 1
	fi
	"$node" --version >"$dir/node-version"
	cp "$here/package.json" "$dir/stamp"
fi
echo "$node"
