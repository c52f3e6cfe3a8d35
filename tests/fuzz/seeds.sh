#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# seeds.sh DIR: small ELF files of all kinds that the readers know, for the fuzzers to start from.
set -euo pipefail

dir=$1
rm -rf "$dir"
mkdir -p "$dir"
source=$dir.c
cat >"$source" <<'C'
struct point { int x, y; };
static inline __attribute__((always_inline)) int twice(int v) { return v * 2 + 1; }
static inline __attribute__((always_inline)) int four(int v) { return twice(twice(v)); }
__attribute__((noinline)) int area(struct point p) { return four(p.x) * twice(p.y); }
int table[4];
void _start(void)
{
	for (int i = 0; i < 4; i++)
		table[i] = area((struct point){i, table[i]});
	for (;;)
		;
}
C

# file NAME COMPILER FLAGS…
make_file() {
	local name=$1
	shift
	"$@" -O2 -ffreestanding -nostdlib -o "$dir/$name" "$source"
}

link=(-static -Wl,--build-id -Wl,-z,noseparate-code)
make_file gcc5 gcc -g -gdwarf-5 "${link[@]}"
make_file gcc4 gcc -g -gdwarf-4 "${link[@]}"
make_file gcc5-zlib gcc -g -gz=zlib "${link[@]}"
make_file gcc-sections gcc -g -ffunction-sections "${link[@]}"
make_file gcc-split gcc -g -gsplit-dwarf "${link[@]}"
make_file gcc-shared gcc -g -shared -fPIC -Wl,--build-id
make_file gcc-object gcc -g -c
make_file gcc-debug-frame gcc -g -fno-asynchronous-unwind-tables "${link[@]}"
make_file clang5 clang -g -gdwarf-5 "${link[@]}"
make_file clang4 clang -g -gdwarf-4 "${link[@]}"
cp "$dir/gcc5" "$dir/stripped"
strip "$dir/stripped"
objcopy --only-keep-debug "$dir/gcc5" "$dir/only-debug"
(cd "$dir" && objcopy --add-gnu-debuglink=only-debug stripped linked)
head -c 700 "$dir/gcc5" >"$dir/cut"
rm -f "$dir"/*.dwo
# ar and GNU ld leave nothing else behind
rm -f "$source"
