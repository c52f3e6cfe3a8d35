#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# build-deb.sh OUT: the Debian package of the committed tree, checked by lintian, in the directory OUT. The tree itself
# is left alone: what is built is a copy of what git has.
set -euo pipefail

out=$(mkdir -p "$1" && cd "$1" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir "$tree/sysprof"
git archive HEAD | tar -x -C "$tree/sysprof"
(cd "$tree/sysprof" &&
	DEB_BUILD_OPTIONS="${DEB_BUILD_OPTIONS:-parallel=$(nproc)}" dpkg-buildpackage --build=binary --no-sign \
		>"$tree/log" 2>&1) ||
	{ tail -n 50 "$tree/log"; exit 1; }
rm -f "$out"/*.deb
cp "$tree"/*.deb "$out"
lintian --fail-on error,warning --allow-root "$out"/*.deb
ls "$out"/*.deb
