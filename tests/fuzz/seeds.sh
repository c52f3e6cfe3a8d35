#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# seeds.sh DIR: small ELF files of every kind, a zip archive, perf maps, a jitdump and profiles of each format that is read, that the fuzzers start from, made by the compilers here.
#
# What a compiler does not know (a DWARF version, a kind of compression) is left out. Small files
# are worth more than real ones: each byte of them is worth changing.
set -uo pipefail

dir=${1:?usage: seeds.sh DIR}
CLANG=${CLANG:-clang}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
rm -rf "$dir" && mkdir -p "$dir" || exit 1

cat >"$work/a.c" <<-'C'
	struct pair { int left; long right; };
	int table[4];
	static inline int twice(int n) { return n * 2 + table[n & 3]; }
	static inline int more(struct pair *p) { return twice(p->left) + twice(p->right); }
	__attribute__((noinline)) int sum(struct pair *p) { return more(p) + more(p + 1); }
	__attribute__((cold, noinline)) int seldom(int n) { return twice(n) - 1; }
	int _start(int n, struct pair *p) { return n > 7 ? seldom(n) : sum(p); }
C
cat >"$work/c.c" <<-'C'
	int other(int n);
	int twice(int n) { return other(n) + other(n + 1); }
	__asm__(".globl on_return\n.cfi_startproc simple\n.cfi_signal_frame\n"
		".cfi_escape 0x0f,4,0x77,0xa0,0x01,0x06\nnop\non_return: mov $15,%rax; syscall\n"
		".cfi_endproc");
	C
cat >"$work/b.cc" <<-'CC'
	namespace outer {
	template <class T> struct box { T value; T get() const { return value + 1; } };
	template <class F> int apply(F f) { return f(3); }
	}
	extern "C" int _start(int n) {
		outer::box<long> box{n};
		return outer::apply([&](int m) { return m * n + int(box.get()); });
	}
CC

small=(-O2 -nostdlib -static -ffreestanding -fno-asynchronous-unwind-tables
	-Wl,-z,noseparate-code -Wl,--build-id)
made() { # NAME COMMAND…: the command's output, if it could make one
	local out=$dir/$1
	shift
	"$@" -o "$out" 2>/dev/null || rm -f "$out"
}

for compiler in gcc "$CLANG"; do
	name=$(basename "$compiler")
	for version in 2 3 4 5; do
		made "$name-dwarf$version" "$compiler" "${small[@]}" -gdwarf-$version "$work/a.c"
	done
	made "$name-dwarf64" "$compiler" "${small[@]}" -gdwarf-5 -gdwarf64 "$work/a.c"
	made "$name-split" "$compiler" "${small[@]}" -gsplit-dwarf -dumpdir "$work/" "$work/a.c"
	made "$name-c++" "$compiler" "${small[@]}" -g "$work/b.cc"
	made "$name-zlib" "$compiler" "${small[@]}" -g -gz=zlib -Wl,--compress-debug-sections=zlib "$work/a.c"
	made "$name-zlib-gnu" "$compiler" "${small[@]}" -g -Wl,--compress-debug-sections=zlib-gnu "$work/a.c"
	made "$name-32" "$compiler" "${small[@]}" -m32 -g "$work/a.c"
	made "$name-sections" "$compiler" "${small[@]}" -g -ffunction-sections "$work/a.c"
	made "$name-eh-frame" "$compiler" "${small[@]}" -fasynchronous-unwind-tables "$work/a.c"
	made "$name-aligned" "$compiler" "${small[@]}" -fasynchronous-unwind-tables -mstackrealign "$work/b.cc"
	made "$name-object" "$compiler" -O2 -g -c "$work/a.c"
done
made plt gcc -O2 -nostdlib -shared -fPIC -Wl,-z,noseparate-code -Wl,-z,lazy "$work/c.c"
made shared gcc -O2 -nostdlib -shared -fPIC -Wl,-z,noseparate-code "$work/a.c"
made big-endian "$CLANG" --target=powerpc64-linux-gnu -O2 -g -c "$work/a.c"
# Go's function table, in a small program of two functions
table=$(dirname "$0")/../fixtures/go/table.S
made go gcc -nostdlib -static -no-pie -Wl,-z,noseparate-code "$table"
made go-118 gcc -nostdlib -static -no-pie -Wl,-z,noseparate-code -DGO118 "$table"
made go-shared gcc -nostdlib -shared -Wl,-z,noseparate-code -DSHARED "$table"
made go-118-shared gcc -nostdlib -shared -Wl,-z,noseparate-code -DSHARED -DGO118 "$table"

base=$dir/gcc-dwarf5
[ -s "$base" ] || { echo "seeds.sh: gcc could not make the first of them" >&2; exit 1; }
strip -o "$dir/stripped" "$base"
objcopy --only-keep-debug "$base" "$dir/debug-only"
objcopy --add-gnu-debuglink="$dir/debug-only" "$dir/stripped" "$dir/debuglink"
# without a checksum, changed bytes get further
strip -g -o "$work/mini" "$base"
xz --check=none -c "$work/mini" >"$work/mini.xz" &&
	objcopy --strip-all --add-section .gnu_debugdata="$work/mini.xz" "$base" "$dir/minidebug"
if command -v dwz >/dev/null; then
	cp "$dir/gcc-c++" "$work/one" && cp "$dir/gcc-c++" "$work/two" &&
		dwz -m "$work/shared" "$work/one" "$work/two" 2>/dev/null &&
		cp "$work/one" "$dir/dwz" && cp "$work/shared" "$dir/dwz-shared"
fi
cp "$dir/go" "$dir/go-bare" && # without section headers
	printf '\0\0\0\0\0\0\0\0' | dd of="$dir/go-bare" bs=1 seek=40 conv=notrunc status=none &&
	printf '\0\0\0\0' | dd of="$dir/go-bare" bs=1 seek=60 conv=notrunc status=none
size=$(stat -c %s "$base")
for part in 1 2 3; do
	head -c $((size * part / 4)) "$base" >"$dir/cut-$part"
done
# perf maps; the first byte is the size of the pieces that they are read in
printf '%s\n' '7227bbdff8940 1942 LazyCompile:*a.renderDOM /opt/app/react-dom.js:35' \
	'227bbdff9420 2a0 LazyCompile:*stream.on /opt/app/src/api.js:44' >"$dir/map-node"
printf '@0x00007fd0e8a1c2c0 0x0000000000000158 void Fib.run(int)\r\n1000 0 stub\nno entry\n2000 10 cut' \
	>"$dir/map-java"
# a filter, an expression, and a text for it
printf '%s\n' "@10s-20s --process=java '--focus=a b' --cpu=0,2-4 --state=lock" '(?i)^(a|b[^c-e]{2,3})*\b\d+?$' 'ab 12' >"$dir/filter"
printf '%s\n' '--focus=(?P' '(?P' a >"$dir/filter-group"
printf '%s\n' '--focus=([\\' '([\' a >"$dir/filter-class"
printf '%s\n' '--focus=((?P<a' '((?P<a' a >"$dir/filter-name"
# an archive with two files, one of them as it is
(cd "$dir" && python3 -c '
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as z:
    z.write(sys.argv[2], "lib/libone.so", zipfile.ZIP_STORED)
    z.writestr("two.txt", "two" * 100, zipfile.ZIP_DEFLATED)
' zip stripped)
# a jitdump: its header, lines, a load of four bytes, a move, the end
{
	printf '@DTiJ\1\0\0\0\50\0\0\0\76\0\0\0\0\0\0\0\1\0\0\0\5\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
	printf '\2\0\0\0\65\0\0\0\1\0\0\0\0\0\0\0\0\20\0\0\0\0\0\0\1\0\0\0\0\0\0\0'
	printf '\0\20\0\0\0\0\0\0\3\0\0\0\1\0\0\0/a.c\0'
	printf '\0\0\0\0\76\0\0\0\2\0\0\0\0\0\0\0\1\0\0\0\1\0\0\0\0\20\0\0\0\0\0\0'
	printf '\0\20\0\0\0\0\0\0\4\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0f\0code'
	printf '\1\0\0\0\100\0\0\0\3\0\0\0\0\0\0\0\1\0\0\0\1\0\0\0\0\40\0\0\0\0\0\0'
	printf '\0\20\0\0\0\0\0\0\0\40\0\0\0\0\0\0\4\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0'
	printf '\3\0\0\0\20\0\0\0\4\0\0\0\0\0\0\0'
} >"$dir/jitdump"
# profiles, with one of everything that their readers know
frame='"callFrame":{"functionName":"f","scriptId":"7","url":"file:///a.js","lineNumber":1,"columnNumber":2}'
root='"callFrame":{"functionName":"(root)","scriptId":"0","url":"","lineNumber":-1,"columnNumber":-1}'
idle='"callFrame":{"functionName":"(idle)","url":""}'
nodes="[{\"id\":1,$root,\"children\":[2,3]},{\"id\":2,$frame,\"positionTicks\":[{\"line\":4,\"ticks\":1}]},{\"id\":3,$idle}]"
times='"startTime":10,"endTime":99,"samples":[2,3,2],"timeDeltas":[1,20,-5]'
printf '%s' "{\"nodes\":$nodes,$times}" >"$dir/node.cpuprofile"
printf '%s' "{\"nodes\":$nodes,$times,\"\$sysprof\":{\"pid\":1,\"tid\":2,\"comm\":\"c\",\"process\":\"p\"," \
	'"isMainThread":true,"startTimeRealtime":5,"periodNs":9,"threadCPUDeltas":[1,0,3],' \
	'"recording":{"startTime":9,"endTime":999}}}' >"$dir/own.cpuprofile"
printf '%s' '{"head":{"functionName":"(root)","url":"","lineNumber":0,"id":1,"hitCount":0,"children":[' \
	'{"functionName":"f","url":"a.js","lineNumber":3,"id":2,"hitCount":2,"children":[]}]},"startTime":1,' \
	'"endTime":1.002,"samples":[2,2],"timestamps":[1000000,1001000]}' >"$dir/head.cpuprofile"
printf '%s' "[{\"name\":\"CpuProfile\",\"ph\":\"I\",\"pid\":1,\"tid\":2,\"ts\":5,\"args\":{\"data\":{\"cpuProfile\":" \
	"{\"nodes\":$nodes,$times}}}}" >"$dir/whole.trace.json"
printf '\377\376a\0;\0b\0 \0003\0\n\0' >"$dir/utf16.folded"
event='"cat":"x","pid":1,"tid":2,"ts":5'
chunk="{\"id\":1,$root},{\"id\":2,\"parent\":1,$frame}"
printf '%s' "{\"traceEvents\":[{\"name\":\"thread_name\",\"ph\":\"M\",$event,\"args\":{\"name\":\"w\"}}," \
	"{\"name\":\"process_name\",\"ph\":\"M\",$event,\"args\":{\"name\":\"p\"}}," \
	"{\"name\":\"Profile\",\"ph\":\"P\",$event,\"id\":\"0x1\",\"args\":{\"data\":{\"startTime\":4}}}," \
	"{\"name\":\"ProfileChunk\",\"ph\":\"P\",$event,\"id\":\"0x1\",\"args\":{\"data\":{\"cpuProfile\":" \
	"{\"nodes\":[$chunk],\"samples\":[2,1]},\"timeDeltas\":[1,2],\"lines\":[7,0],\"endTime\":99}}}]}" >"$dir/trace"
tables='"stackTable":{"frame":[0,1,2],"prefix":[null,0,1]},"frameTable":{"address":[16,16,-1],"inlineDepth":[0,1,0],
"category":[0,0,1],"subcategory":[0,0,1],"func":[0,1,1],"nativeSymbol":[0,0,null],"line":[3,4,null],"column":[1,null,2]},
"funcTable":{"name":[0,1],"isJS":[false,true],"resource":[0,-1],"source":[0,null],"lineNumber":[2,null],
"columnNumber":[1,null]},"resourceTable":{"lib":[0]},"nativeSymbols":{"libIndex":[0],"address":[16],"name":[0],
"functionSize":[32]},"sources":{"filename":[2]},"stringArray":["main","f","/a.c"]'
meta='"meta":{"preprocessedProfileVersion":66,"interval":1.5,"startTime":7,"importedFrom":"sysprof",
"startTimeAsClockMonotonicNanosecondsSinceBoot":1000,"sampleUnits":{"threadCPUDelta":"ns"},"categories":
[{"name":"User"},{"name":"JIT","subcategories":["Other","Optimized (or another function)"]},{"name":"Idle"}]}'
thread='"name":"t","processName":"p","pid":"12.1","tid":13,"isMainThread":true,"registerTime":0,"unregisterTime":9,
"samples":{"stack":[0,null,2],"time":[1,2.000001,3],"weight":[1,2,3],"weightType":"samples","threadCPUDelta":[1,2,3]}'
libs='"libs":[{"name":"a.so","path":"/a.so","codeId":"abcd"}]'
printf '%s' "{$meta,$libs,\"shared\":{$tables},\"threads\":[{$thread}]}" >"$dir/firefox"
printf '%s' "{$meta,$libs,\"threads\":[{$tables,$thread}]}" >"$dir/firefox-old"
shared='"shared":{"frames":[{"name":"main","file":"/a.py","line":3},{"name":"f","col":2},{"name":"g"}]}'
profile='"name":"Process 1 Thread 2","startValue":1,"endValue":9'
open='"type":"O","frame"' close='"type":"C","frame"'
printf '%s' "{\"\$schema\":\"x\",\"exporter\":\"py-spy\",\"activeProfileIndex\":1,$shared,\"profiles\":[" \
	"{\"type\":\"sampled\",\"unit\":\"bytes\",$profile,\"samples\":[[0,1],[]],\"weights\":[3,1]}," \
	"{\"type\":\"sampled\",\"unit\":\"none\",$profile,\"samples\":[[0,1],[2],[0]],\"weights\":[3,1.5,2]}]}" >"$dir/speedscope"
printf '%s' "{\"profiles\":[{\"type\":\"evented\",\"unit\":\"seconds\",$profile,\"events\":[{$open:0,\"at\":1}," \
	"{$open:1,\"at\":2.5},{$close:1,\"at\":3},{$close:0,\"at\":4},{$open:2,\"at\":6}]}],$shared}" >"$dir/speedscope-evented"
gecko='"frameTable":{"schema":{"location":0,"line":1,"category":2},"data":[[0,3,0],[1],[2,4,1]]},
"stackTable":{"schema":{"prefix":0,"frame":1},"data":[[null,0],[0,1],[1,2]]},
"stringTable":["main (in a.so) (/a.c:3)","0x20","f (/b.js:1:2)"],
"samples":{"schema":{"stack":0,"time":1,"threadCPUDelta":2},"data":[[2,1,0],[null,2,5],[1,3.5,7],[0,4]]}'
raw='"meta":{"version":28,"startTime":7,"interval":1,"sampleUnits":{"threadCPUDelta":"ns"},"categories":[{"name":"User"},{"name":"Idle"}]}'
lib='"libs":[{"name":"a.so","path":"/a.so","codeId":"abcd","start":16,"end":99}]'
own='"name":"GeckoMain","pid":1,"tid":2,"registerTime":0'
printf '%s' "{$raw,$lib,\"threads\":[{$own,$gecko}],\"processes\":[{$raw,$lib,\"threads\":[{$own,$gecko}],\"processes\":[]}]}" >"$dir/gecko"
printf 'comm;main;f_[k] 3\ncomm;main;g:12 4.5\n[w tid=7];h_[j];i_[?] 1\n' >"$dir/folded"
printf '# samples: each 37 count of x\nc;a 37\nc;b 112\n' >"$dir/events.folded"
printf '# weights: bytes of x\nc;a 37\n' >"$dir/weights.folded"
# perf script: a header; callchains with what is inlined, of two events; a record; frames in lines
printf '# ========\n# captured on : x\n# hostname : h\n# cmdline : perf\na\n# ========\n#\na b 3/4 [001] K 5.000001:  9 cpu-clock:u: \n' >"$dir/perf-script"
printf '\t  12 f+0x3 (inlined)\n  a.c:7\n\t  12 g+0x4 (/b (deleted))\n\tffffffff81000000 [unknown] ([kernel.kallsyms])\n\n' >>"$dir/perf-script"
printf 'a 4 5.000002: PERF_RECORD_FORK(3:4):(1:1)\na 4 5.000003: s:t: x=1\n\t  13 h ([unknown])\n\n' >>"$dir/perf-script"
printf '    swapper     0 [000] 1.000000:  1 cycles:P:  7f89fd00869e h+0x7e (/l.so)\n' >"$dir/perf-script-lines"
printf 'a 4         17 cycles: \n\t  13 h\n\n' >"$dir/perf-script-untimed"
# pprof: two types, a sample with a label, a mapping, a location with a line, a function, strings
python3 -c '
import sys
def field(n, b): return bytes([n << 3 | 2, len(b)]) + b
def numbers(*pairs): return b"".join(bytes([n << 3, v]) for n, v in pairs)
out = field(1, numbers((1, 1), (2, 2))) + field(1, numbers((1, 3), (2, 4)))
out += field(2, field(1, b"\1\1") + field(2, b"\3\7") + field(3, numbers((1, 5), (3, 9))))
out += field(3, numbers((1, 1), (2, 16), (3, 99), (4, 8), (5, 7), (6, 6)))
out += field(4, numbers((1, 1), (2, 1), (3, 20)) + field(4, numbers((1, 1), (2, 5))))
out += field(5, numbers((1, 1), (2, 7), (4, 7), (5, 3)))
for s in ("", "samples", "count", "cpu", "nanoseconds", "pid", "abcd", "main"): out += field(6, s.encode())
sys.stdout.buffer.write(out + numbers((9, 5), (10, 6)) + field(11, numbers((1, 3), (2, 4))) + numbers((12, 3)))
' >"$dir/pprof"
# files of perf record, with one of each record that is read: with an index, and as perf record -o - writes it
python3 -c '
import struct, sys
def padded(b): return b + bytes(-len(b) % 8)
def record(kind, misc, body): return struct.pack("<IHH", kind, misc, 8 + len(body)) + body
kinds = 1 << 16 | 1 | 2 | 4 | 0x80 | 0x100 | 0x20 | 0x1000 | 0x2000  # identifier, ip, tid, time, cpu, period, chain, registers, stack
def attr(config): return struct.pack("<IIQQQQQ", 1, 136, config, 4000, kinds, 0, 1 << 10 | 1 << 18) + bytes(32) + struct.pack("<QIIQII", 0x1ff, 64, 0, 0, 0, 0) + bytes(24)
def end(time, ident=1): return struct.pack("<IIQQQ", 7, 7, time, 0, ident)
def sample(time, ident, *chain):
    body = struct.pack("<QQIIQQQ", ident, 0x401010, 7, 7, time, 0, 250000) + struct.pack("<Q", len(chain)) + b"".join(struct.pack("<Q", a & (1 << 64) - 1) for a in chain)
    return record(9, 2, body + struct.pack("<Q9Q", 2, *range(9)) + struct.pack("<Q", 16) + bytes(16) + struct.pack("<Q", 8))
records = record(1, 1, struct.pack("<iIQQQ", -1, 0, 0xffffffff81000000, 0x1000000, 0xffffffff81000000) + padded(b"[kernel.kallsyms]_text\0") + end(0))
records += record(3, 0, struct.pack("<II", 7, 7) + padded(b"gzip\0") + end(0)) + record(7, 1 << 13, struct.pack("<IIIIQ", 7, 1, 7, 1, 0) + end(0))
records += record(3, 1 << 13, struct.pack("<II", 7, 7) + padded(b"gzip\0") + end(90))
records += record(10, 2, struct.pack("<IIQQQIIQQII", 7, 7, 0x400000, 0x2000, 0x1000, 8, 1, 77, 5, 5, 2) + padded(b"/bin/gzip\0") + end(100))
records += record(10, 2 | 1 << 14, struct.pack("<IIQQQB3x20sII", 7, 7, 0x500000, 0x2000, 0, 20, bytes(range(20)), 5, 2) + padded(b"/lib/a.so\0") + end(101))
records += record(1, 2, struct.pack("<IIQQQ", 7, 7, 0x600000, 0x1000, 0) + padded(b"//anon\0") + end(102))
records += sample(110, 1, -128, 0xffffffff81000010, 0xffffffff81000020, -512, 0x401010, 0x501000) + sample(109, 2, -512, 0x401010) + record(68, 0, b"")
records += record(17, 0, struct.pack("<QIHH", 0xffffffffc0000000, 64, 1, 0) + padded(b"bpf_prog_1\0") + end(111))
records += record(7, 0, struct.pack("<IIIIQ", 8, 7, 8, 7, 112) + end(112)) + record(2, 0, struct.pack("<QQ", 1, 5) + end(113))
records += record(5, 0, struct.pack("<QQQ", 114, 1, 1) + end(114)) + record(13, 0, struct.pack("<Q", 9) + end(115)) + record(4, 0, struct.pack("<IIIIQ", 8, 7, 8, 7, 116) + end(116))
records += record(66, 0, struct.pack("<I", 5)) + bytes(8) + record(71, 0, struct.pack("<Q", 16) + bytes(32)) + bytes(16) + record(68, 0, b"")
def text(s): s = padded(s.encode() + b"\0"); return struct.pack("<I", len(s)) + s
names = struct.pack("<II", 2, 136) + b"".join(attr(i) + struct.pack("<I", 1) + text(n) + struct.pack("<Q", i + 1) for i, n in ((0, "cpu-clock"), (2, "page-faults")))
ids = record(67, 2 | 1 << 15, struct.pack("<i20sB3x", -1, bytes(range(20)), 20) + padded(b"/bin/gzip\0"))
features = {2: ids, 3: text("host"), 4: text("6.1"), 6: text("x86_64"), 7: struct.pack("<II", 2, 2), 11: struct.pack("<I", 2) + text("perf") + text("record"), 12: names, 29: struct.pack("<IIQQ", 1, 1, 1 << 60, 100)}
head = 104 + 2 * 152 + 16
out = b"PERFILE2" + struct.pack("<QQQQQQQQ4Q", 104, 152, 120, 304, head, len(records), 0, 0, sum(1 << f for f in features), 0, 0, 0)
out += struct.pack("<QQ", 1, 2) + b"".join(attr(c) + struct.pack("<QQ", 104 + 8 * i, 8) for i, c in ((0, 0), (1, 2))) + records
at = len(out) + 16 * len(features)
for f in sorted(features): out += struct.pack("<QQ", at, len(features[f])); at += len(features[f])
for f in sorted(features): out += features[f]
pipe = b"PERFILE2" + struct.pack("<Q", 16) + b"".join(record(64, 0, attr(c) + struct.pack("<Q", i + 1)) for i, c in ((0, 0), (1, 2)))
pipe += record(78, 0, struct.pack("<QQ", 2, 1) + padded(b"cpu-clock\0")) + b"".join(record(80, 0, struct.pack("<Q", f) + features[f]) for f in (3, 4, 6, 12)) + records + ids
blocks = [struct.pack("<I", len(part) << 3)[:3] + part for part in (records[:300], records[300:])]
packed = pipe[:pipe.index(records)] + record(81, 0, b"\x28\xb5\x2f\xfd\x00\x58" + blocks[0]) + record(83, 0, struct.pack("<Q", len(blocks[1])) + padded(blocks[1]))
for name, data in ("file", out), ("pipe", pipe), ("packed", packed):
    with open(f"{sys.argv[1]}/perf-{name}.data", "wb") as f: f.write(data)
' "$dir" || exit 1
# services: an environment, a context, a command line, a path, attributes, a container's file; behind the number of each
printf '\0A=1\0DD_SERVICE=shop\0OTEL_RESOURCE_ATTRIBUTES=service.name=x\0' >"$dir/services-environment"
printf '\1\12\30\12\14service.name\22\10\12\6shop-1' >"$dir/services-context"
printf '\2python3\0-u\0-X\0dev\0-m\0http.server\0' >"$dir/services-command"
printf '\3/kubepods.slice/kubepods-pod12345678_1234_1234_1234_123456789abc.slice/crio-%064d.scope/a@b.service' 7 >"$dir/services-path"
printf '\4service.name=sh%%6Fp,service.version=1' >"$dir/services-attributes"
printf '\5{"Name":"/web","Config":{"Image":"a:1","Labels":{"com.docker.compose.service":"w"}},"annotations":{"io.kubernetes.pod.name":"p"}}' \
	>"$dir/services-container"
# heaps of V8: a function with a name, an inferred one, a script, rows and code that others are inlined in; see fuzz_v8.c
python3 -c '
import struct, sys
def map_of(t): return 0xa5 << 56 | t
def at(place): return 0x5a << 56 | place
def smi(n): return n << 32
def text(t, s): return [map_of(t), len(s) << 32] + [int.from_bytes(s.encode()[i:i + 8], "little") for i in range(0, len(s), 8)]
def table(b): return [map_of(190), smi(len(b))] + [int.from_bytes(b[i:i + 8], "little") for i in range(0, len(b), 8)]
for version in range(3):
    sfi, scope, script, array, code, stream, data, wrapper = [
        (262, 261, 167, 191, 245, 252, 159, 262), (282, 280, 167, 186, 187, 192, 188, 195), (288, 286, 166, 185, 186, 192, 187, 195)][version]
    new, positions = version > 0, b"\4\x14\6\x10" if version < 2 else b"\x0f\x14\x21\x10"
    inlined = table(positions + (b"\x10" if version < 2 else b"\x22") + (1 << 33 | 0x10).to_bytes(5, "little")[:0] + b"\x80\x80\x80\x80\x20")
    flags = 2 | 1 << 12 | 1 << 14
    words = {
        0x000: [map_of(sfi), at(0x240)] + ([0] if new else []) + [at(0x080), 0, at(0x100), 0, 0, 7 << 32 | 7, 7],
        0x080: [map_of(scope), flags if new else smi(flags), 0, smi(0)] + ([smi(4), smi(9)] if new else []) + [at(0x1a0), 0, at(0x1c0), smi(4)],
        0x100: [map_of(script), at(0x1e0), at(0x1c0), smi(0), smi(0), 0, 0, smi(0), smi(3)],
        0x1a0: text(40, "work"), 0x1c0: [map_of(41), 8 << 32, at(0x1a0), at(0x1a0)],
        0x1e0: text(40, "one\ntwo\nthree\rfour\n"), 0x240: [map_of(data), at(0x260)],
        0x260: [map_of(array), smi(9), 0, at(0x2a0), at(0x2a0)], 0x2a0: table(positions),
        0x300: [map_of(code), at(0x500) if new else 0, at(0x500 if not new else 0x480), at(0x480), 0, 0x7f00001f0000 + 0x400, 0xd << 32 | 0xc if new else 0xd, 0x100],
        0x3e0 if new else 0x3f0: [map_of(stream), at(0x300)], 0x480: inlined,
        0x500: [map_of(205 if new else 175), smi(9), 0, smi(1), at(0x580), at(0x580), 0, 0, at(0x000), at(0x5c0 if new else 0x5a0), at(0x5a0)],
        0x580: [map_of(205), smi(1), at(0x000)], 0x5a0: table(b"\x0a" + bytes(15)), 0x5c0: [map_of(wrapper), at(0x000)],
    }
    out = bytearray(0x600)
    for place, values in words.items():
        out[place:place + 8 * len(values)] = struct.pack(f"<{len(values)}Q", *values)
    with open(f"{sys.argv[1]}/v8-{version}", "wb") as f:
        f.write(bytes([version]) + out)
' "$dir" || exit 1
# a CPython of each version that is forged, with one change
for version in 0 1 2 3 4 5; do
	printf '%b' "\\$version"'\0140\0\001\0\0140\0\0\0\0\0\0' >"$dir/cpython-$version"
done
# a module of WebAssembly, and one in a heap of each version of V8, with one change
printf '%b' '\0\0asm\01\0\0\0\01\04\01\0140\0\0\02\07\01\01e\01f\0\0\03\02\01\0\0\015\04name\01\06\01\01\03two' >"$dir/wasm-module"
for version in 1 3 5; do
	printf '%b' "\\0$version"'\0\020\02\01\0\0\0\0\0\0\0' >"$dir/wasm-heap-$version"
done
# symbol answers: two frames, and then a string of theirs by its place, alone and before a report of a child; see fuzz_blob.c
python3 -c '
import struct, sys
def frame(strings, sizes):
    return struct.pack("<QQ4I3HH", 16, 32, 3, 4, 5, 6, *sizes, 0) + strings + bytes(-len(strings) % 8)
def answer(index, *frames):
    body = b"".join(frames)
    return struct.pack("<IHHQQQII", 40 + len(body), 32, 0, 0, index, 0x1000 + index, len(frames), 8) + body
blob = answer(0, frame(b"inner\0a.c\0", (6, 4, 0)), frame(b"function\0/src/b.c\0b.h\0", (9, 9, 4)))
blob += answer(1) + answer(2, frame(struct.pack("<II", 88, 94), (0xffff, 0xffff, 0)))
report = struct.pack("<IHHQqIIQQQQQ", 72, 0xffff, 0, 0, -5, 1, 1, 3, 3, 3, 0, 0)
for name, data in ("one", blob[:len(blob) // 2]), ("all", blob), ("told", blob + report):
    with open(f"{sys.argv[1]}/blob-{name}", "wb") as f:
        f.write(b"\5" + bytes(7) + data)
' "$dir" || exit 1
# messages of helpers, with two descriptors: an answer, and one that ends too soon; see fuzz_message.c
python3 -c '
import struct, sys
frame = struct.pack("<QIIQ", 7, 1, 2, 16) + bytes(range(16))
for name, data in ("answer", frame), ("cut", frame[:-1]):
    with open(f"{sys.argv[1]}/message-{name}", "wb") as f:
        f.write(b"\2" + bytes(7) + data)
' "$dir" || exit 1
# recordings: their events, behind a header of fuzz_session.c that repeats nothing
python3 -c '
import os, sys
sys.path.insert(0, sys.argv[1])
import recordings
for name in sorted(os.listdir(recordings.PLACE)):
    if not name.endswith(".sysprof"):
        continue
    with open(os.path.join(recordings.PLACE, name), "rb") as f:
        data = f.read()
    kept = bytes(32)
    try:
        for events in recordings.chunks_of(data):
            for event in events:
                if event[4] != recordings.KALLSYMS and len(kept) + len(event) < 48000:
                    kept += event
    except Exception:
        pass  # the one that is cut short
    with open(os.path.join(sys.argv[2], "session-" + name), "wb") as f:
        f.write(kept)
' "$(dirname "$0")/../golden" "$dir" || exit 1
exit 0
