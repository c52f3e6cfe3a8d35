#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# fetch.sh DIR: a libdw that reads .dwp files (0.191 or newer), with what it stands on, into DIR/lib.
#
# Where the system's libdw is that new, DIR/lib stays away and nothing is fetched. Elsewhere the
# libraries are those of a later Debian; the program runs on them by their own loader.
set -euo pipefail

suite=trixie
packages=(libc6 libdw1t64 libelf1t64 libbpf1 libseccomp2 liblzma5 zlib1g libbz2-1.0 libzstd1)

die() {
	echo "fetch.sh: $*" >&2
	exit 1
}
top=$(CDPATH='' cd -- "$(dirname -- "$0")/../../.." && pwd)

[ $# -eq 1 ] || die "usage: fetch.sh DIR"
pkg-config --exists 'libdw >= 0.191' && exit 0
command -v dpkg-deb >/dev/null || die "the system's libdw is older than 0.191, and no newer one can be had here"
mkdir -p "$1"
cd "$1"
APT_CONFIG=$("$top/tools/apt-root.sh" apt "$suite" "$(dpkg --print-architecture)")
export APT_CONFIG
rm -rf packages root lib
mkdir packages
(cd packages && apt-get -qq download "${packages[@]}") || die "downloading from $suite failed"
for package in packages/*.deb; do
	dpkg-deb -x "$package" root
done
mv "root/usr/lib/$(gcc -print-multiarch)" lib
rm -rf packages root apt
