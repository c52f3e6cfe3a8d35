#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# build.sh DIR: the programs whose inline chains dwarf_oracle.py compares, built into DIR by every compiler,
# version of DWARF and way of linking that is at hand. What is there already and newer than its
# sources stays.
#
# DIR/programs lists them, one a line, fields separated by tabs:
#   name  file  "deep" where two levels on average are due  debug file  dwz file  same code, for the judge
# DIR/missing says what could not be built, and why.
set -euo pipefail

[ $# -eq 1 ] || { echo "usage: build.sh DIR" >&2; exit 2; }
top=$(CDPATH='' cd -- "$(dirname -- "$0")/../../.." && pwd)
mkdir -p "$1"
cd "$1"
dir=$(pwd)
sources=$top/tests/fixtures/dwarf
inlines=("$sources/inlines.cc" "$sources/shapes.cc")
sqlite_version=0.28.0 # of the crate that carries it
rust_program=choose
rust_version=1.3.4

: >programs.new
: >missing

list() { # name, file, deep, debug file, dwz file, same code
	printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "${3:-}" "${4:-}" "${5:-}" "${6:-}" >>programs.new
}

lack() { # what, why
	echo "$1: $2" | tee -a missing >&2
}

fresh() { # file, sources…
	local file=$1 source
	shift
	[ -s "$file" ] || return 1
	for source in "$@"; do
		[ "$file" -nt "$source" ] || return 1
	done
}

# The program in both units, in a directory of its own: .dwo files are found beside their objects.
inlined() { # name, compiler, options…
	local name=$1 compiler=$2
	shift 2
	list "$name" "$dir/$name/inlines" deep
	fresh "$name/inlines" "$sources"/* "$0" && return
	mkdir -p "$name"
	echo "  CXX      $name"
	(cd "$name" && "$compiler" -std=gnu++17 -O2 -g "$@" -c "${inlines[@]}" &&
		"$compiler" -O2 -g "$@" -Wl,--gc-sections -o inlines inlines.o shapes.o) 2>"$name/log" ||
		{ cat "$name/log" >&2; exit 1; }
}

with_gcc() {
	inlined gcc-4 g++ -gdwarf-4
	inlined gcc-5 g++ -gdwarf-5
	inlined gcc-lto g++ -flto
	inlined gcc-split-4 g++ -gdwarf-4 -gsplit-dwarf -ffunction-sections
	inlined gcc-split-5 g++ -gdwarf-5 -gsplit-dwarf
}

with_clang() {
	inlined clang-4 clang++ -gdwarf-4
	inlined clang-5 clang++ -gdwarf-5 -ffunction-sections
	inlined clang-split-5 clang++ -gdwarf-5 -gsplit-dwarf
	if clang++ -flto -x c++ -o linked - <<<'int main() {}' 2>/dev/null; then
		inlined clang-lto clang++ -flto
	else
		lack clang-lto "this clang cannot link with -flto"
	fi
}

# The same code, its DWARF packed in other ways.
packed() {
	if ! fresh zlib gcc-5/inlines; then
		objcopy --compress-debug-sections=zlib gcc-5/inlines zlib
		objcopy --compress-debug-sections=zlib-gnu gcc-4/inlines zlib-gnu
	fi
	list zlib "$dir/zlib" deep "" "" "$dir/gcc-5/inlines"
	list zlib-gnu "$dir/zlib-gnu" deep "" "" "$dir/gcc-4/inlines"
	if ! command -v dwz >/dev/null; then
		lack dwz "dwz is not installed"
		return
	fi
	if ! fresh dwz-5 gcc-5/inlines; then
		cp gcc-5/inlines dwz-5
		cp gcc-4/inlines dwz-4
		dwz -m dwz-common dwz-5 dwz-4
		touch dwz-5
	fi
	list dwz "$dir/dwz-5" deep "" "$dir/dwz-common" "$dir/gcc-5/inlines"
	list dwz-4 "$dir/dwz-4" deep "" "$dir/dwz-common" "$dir/gcc-4/inlines"
}

# Other people's code: sqlite in one file, out of the crate that carries it.
fetch_sqlite() {
	[ -s sqlite/sqlite3.c ] && return
	mkdir -p sqlite/src
	: >sqlite/src/lib.rs
	cat >sqlite/Cargo.toml <<-TOML
	[package]
	name = "sources"
	version = "0.0.0"
	edition = "2021"
	[dependencies]
	libsqlite3-sys = { version = "=$sqlite_version", optional = true }
	TOML
	(cd sqlite && cargo vendor vendor >/dev/null 2>log) || return 1
	cp sqlite/vendor/libsqlite3-sys/sqlite3/sqlite3.c sqlite/
}

with_sqlite() {
	local compiler
	for compiler in gcc clang; do
		list "sqlite-$compiler" "$dir/sqlite/$compiler.so"
		fresh "sqlite/$compiler.so" sqlite/sqlite3.c && continue
		echo "  CC       sqlite-$compiler"
		"$compiler" -O2 -g -shared -fPIC -o "sqlite/$compiler.so" sqlite/sqlite3.c -lm -ldl -lpthread &
	done
	wait
}

with_rust() {
	list rust "$dir/rust/bin/$rust_program" deep
	[ -s "rust/bin/$rust_program" ] && return
	echo "  CARGO    $rust_program"
	CARGO_PROFILE_RELEASE_DEBUG=2 CARGO_PROFILE_RELEASE_STRIP=none CARGO_TARGET_DIR=$dir/rust/target \
		cargo install -q --locked --version "$rust_version" --root "$dir/rust" "$rust_program" 2>rust.log ||
		{ tail -n 5 rust.log >&2; return 1; }
	rm -rf rust/target
}

with_libc() {
	local libc id debug
	libc=$(ldconfig -p | awk '$1 == "libc.so.6" && /x86-64|AArch64/ && !found++ {print $NF}')
	id=$(readelf -n "$libc" 2>/dev/null | awk '/Build ID/ {print $3}')
	debug=/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug
	if [ -r "$debug" ]; then
		list libc "$libc" "" "$debug"
	else
		lack libc "its debug package is not installed"
	fi
}

with_gcc
with_clang
packed
with_libc
if ! command -v cargo >/dev/null; then
	lack "sqlite and rust" "cargo is not installed"
else
	if fetch_sqlite; then with_sqlite; else lack sqlite "its source could not be fetched"; fi
	with_rust || { sed -i '/^rust\t/d' programs.new; lack rust "it could not be built"; }
fi
mv programs.new programs
