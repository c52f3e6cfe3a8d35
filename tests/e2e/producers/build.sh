#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# build.sh samply|rbspy|pprof-rs DIRECTORY
#
# Builds a profiler from crates into DIRECTORY. `make test-tools` does so once; no other test does, since it takes minutes and
# a network. Rust 1.85 or newer.
#   samply     0.13.1: 160 s of CPU -> DIRECTORY/samply
#   rbspy      0.55.0: 150 s -> DIRECTORY/rbspy
#   pprof-rs   0.15.0, in profiled.rs: 50 s -> DIRECTORY/pprof-rs
set -euo pipefail

[ $# -eq 2 ] || { echo "usage: $0 samply|rbspy|pprof-rs DIRECTORY" >&2; exit 2; }
what=$1
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
mkdir -p "$2/$what.work"
target=$(CDPATH='' cd -- "$2" && pwd)
work=$target/$what.work
plain=(--config profile.dev.debug=false --target-dir "$work/target")

crate() { # VERSION
	nice cargo install "$what" --version "$1" --locked --debug --no-track --root "$work" "${plain[@]}"
	mv "$work/bin/$what" "$target/"
}

pprof_rs() {
	mkdir -p "$work/src"
	cp "$here/profiled.rs" "$work/src/main.rs"
	cat >"$work/Cargo.toml" <<-TOML
	[package]
	name = "pprof-rs"
	version = "0.0.1"
	edition = "2021"
	[dependencies]
	pprof = { version = "=0.15.0", default-features = false, features = ["protobuf-codec"] }
	libc = "0.2"
	TOML
	nice cargo build --manifest-path "$work/Cargo.toml" "${plain[@]}"
	mv "$work/target/debug/pprof-rs" "$target/"
}

case $what in
samply) crate 0.13.1 ;;
rbspy) crate 0.55.0 ;;
pprof-rs) pprof_rs ;;
*) echo "$0: $what is neither samply, rbspy nor pprof-rs" >&2; exit 2 ;;
esac
rm -rf "$work"
