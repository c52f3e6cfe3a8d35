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
lz4_version=1.9.4 # of the crate that carries it
regex_version=0.1.6

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

# Other people's code, full of inlined calls, that compiles in seconds: LZ4, out of the crate that carries it, and a
# crate of regular expressions.
fetch_crates() {
	[ -s crates/.cargo/config.toml ] && return
	mkdir -p crates/src crates/.cargo
	cat >crates/Cargo.toml <<-TOML
	[package]
	name = "search"
	version = "0.0.0"
	edition = "2021"
	[dependencies]
	lz4-sys = { version = "=$lz4_version", optional = true }
	regex-lite = "=$regex_version"
	TOML
	cat >crates/src/main.rs <<-'RUST'
	fn main() {
	    let pattern = std::env::args().nth(1).expect("a pattern");
	    let pattern = regex_lite::Regex::new(&pattern).expect("a regular expression");
	    for line in std::io::stdin().lines() {
	        for found in pattern.captures_iter(&line.expect("a line")) {
	            println!("{:?}", found.iter().collect::<Vec<_>>());
	        }
	    }
	}
	RUST
	(cd crates && cargo vendor vendor >config 2>log && mv config .cargo/config.toml)
}

with_lz4() {
	local compiler sources=(crates/vendor/lz4-sys/liblz4/lib/*.c)
	for compiler in gcc clang; do
		list "lz4-$compiler" "$dir/lz4-$compiler.so" deep
		fresh "lz4-$compiler.so" "${sources[@]}" && continue
		echo "  CC       lz4-$compiler"
		# a function that is another one's alias has its name from the symbol table alone
		"$compiler" -O2 -g $([ $compiler = clang ] || echo -fno-ipa-icf) -shared -fPIC -o "lz4-$compiler.so" "${sources[@]}"
	done
}

with_rust() {
	list rust "$dir/crates/target/release/search" deep
	[ -s crates/target/release/search ] && return
	echo "  CARGO    rust"
	(cd crates && CARGO_PROFILE_RELEASE_DEBUG=2 cargo build -q --release --offline 2>log) || { tail -n 5 crates/log >&2; return 1; }
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
	lack "lz4 and rust" "cargo is not installed"
elif ! fetch_crates; then
	lack "lz4 and rust" "their sources could not be fetched"
else
	with_lz4
	with_rust || { sed -i '/^rust\t/d' programs.new; lack rust "it could not be built"; }
fi
mv programs.new programs
