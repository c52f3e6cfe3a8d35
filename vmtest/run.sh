#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# run.sh BUILD [SERIES…]: boots each kernel of kernels.txt (or just the series named) in qemu with the
# build in BUILD and a root file system that holds nothing else, records the chain fixture inside, built
# without frame pointers and linked by the usual linker and by lld, and a program in Go, and asserts that at
# least 80 % of the samples in the innermost function have its whole known stack, and the others a reason that is
# counted, that the same holds for programs on overlayfs that have ended before their file is searched for, that targets by name are
# recorded from their start to their end, and no others, that programs of the system's Python and
# Node.js, started without a flag, have the names of their functions, that a CPU that goes and comes
# back is sampled again, that ticks in softirqs, by the kernel's tracepoints, are samples in them, and on an idle
# CPU of packets, that the time of a guest of KVM is the guest's, that threads that wait in known
# ways have their time (--wall), and that the agent has a window without the group that it leaves out. Needs no root.
#
# Kernels are Debian's own packages, taken through an apt root in BUILD/vmtest (tools/apt-root.sh), which leaves
# the system's apt alone. DEBIAN_MIRROR=URL overrides the mirror, and is needed where the system is not Debian.
#
# Whatever is missing (qemu, a package, the mirror) is a failure with its reason, never a skip.
# VMTEST_PROGRAM=FILE is tried instead of BUILD/sysprof, as build/static/sysprof, with which no library comes along.
# Emulation is the default, since it works everywhere and a /dev/kvm in a virtual machine may not. A guest with a clock of its
# own (kernels.txt) counts its instructions: it loses no ticks on a busy host, its idle time takes none of the host's, and it
# is one thread. Of these kernels VMTEST_JOBS run at the same time, by default one for each CPU of the host.
# VMTEST_ACCEL=kvm is faster. VMTEST_KEEP=1 prints the whole console.
set -euo pipefail

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
boot_limit=${VMTEST_LIMIT:-900} # seconds of CPU time: a busy host takes longer
memory=1G
instruction_shift=2 # an instruction takes 4 ns of the guest's time: its CPUs together have 250 million in a second
share_wanted=80 # percent of the samples that are in the innermost function
short_share_wanted=33 # … of programs that have ended before a busy host has read their file
samples_wanted=100
named_wanted=33 # percent of the samples of a program of Python or Node.js: those before its tables are known have no names
jobs=${VMTEST_JOBS:-$(nproc)}
instructions_allowed=50000      # verified, of one program
tick_instructions_allowed=20000 # … of the one that runs first
modules=(veth overlay irqbypass kvm kvm-amd) # that the guest loads, in this order, where there are such

die() {
	echo "vmtest: $*" >&2
	exit 1
}

# ---- packages ------------------------------------------------------------------------------------

# The newest cloud kernel of a series: "package version". Some have the kernel itself in a package of its
# own, linux-binary-…, and its modules in linux-modules-….
newest_kernel() { # series, architecture
	apt-cache dumpavail | awk -v want="^linux-(image|binary)-${1//./\\.}\\.[0-9].*-cloud-$2(-unsigned)?\$" '
		/^Package: / { package = $2 }
		/^Version: / && package ~ want { print package, $2 }' |
		while read -r package version; do
			echo "$version $package"
		done | sort -V -k1,1 -k2,2r | tail -n 1 | awk '{ print $2, $1 }'
}

# Prints the path of the kernel, fetched and unpacked once per version.
fetch_kernel() { # series, suite, architecture
	local found package version dir module name names
	found=$(newest_kernel "$1" "$3")
	[ -n "$found" ] || die "suite $2 has no package linux-{binary,image}-$1.*-cloud-$3"
	read -r package version <<<"$found"
	dir=$work/$package-$version
	if [ "$(cat "$dir/with-modules" 2>/dev/null)" != "${modules[*]}" ]; then
		rm -rf "$dir"
		mkdir -p "$dir"
		names=("$package=$version")
		name=${package/linux-binary-/linux-modules-}
		[ "$name" = "$package" ] || [ -z "$(apt-cache show "$name" 2>/dev/null)" ] || names+=("$name=$version")
		(cd "$dir" && apt-get -qq download "${names[@]}" && for name in ./*.deb; do dpkg-deb -x "$name" . || exit; done) ||
			die "downloading ${names[*]} failed"
		# in boot, or with the modules; what the guest needs of those is built in
		find "$dir" -name 'vmlinuz*' -type f -exec mv {} "$dir/kernel" \;
		for module in "${modules[@]}"; do
			find "$dir" -name "$module.ko*" -type f -exec mv {} "$dir/" \;
			[ ! -e "$dir/$module.ko.xz" ] || xz -d "$dir/$module.ko.xz"
		done
		rm -rf "$dir"/*.deb "$dir/boot" "$dir/lib" "$dir/usr"
		echo "${modules[*]}" >"$dir/with-modules"
	fi
	echo "$package $version" >&2
	[ -e "$dir/kernel" ] || die "$package $version holds no vmlinuz"
	echo "$dir/kernel"
}

# ---- the guest -----------------------------------------------------------------------------------

# A program with the loader and every library it names, at the paths where it looks for them.
add_program() { # source, destination, root
	install -D -m 755 "$1" "$3$2"
	{ ldd "$1" || true; } | sed -n 's/.*\(=> \|^[ \t]*\)\(\/[^ ]*\) (0x.*/\2/p' | while read -r library; do
		[ -e "$3$library" ] || install -D -m 755 "$(realpath "$library")" "$3$library"
	done
}

# The system's Python at its own path, with the files that it reads when it starts.
add_python() { # root
	local python library
	python=$(python3 -c 'import os, sys; print(os.path.realpath(sys.executable))') || die "there is no python3"
	add_program "$python" "$python" "$1"
	ln -s "$python" "$1/bin/python3"
	"$python" -I -c 'import sys, time; print(*{m.__file__ for m in [*sys.modules.values()] if getattr(m, "__file__", None)}, sep="\n")' |
		while read -r library; do
			case $library in
			*.so) add_program "$library" "$library" "$1" ;;
			*) install -D -m 644 "$library" "$1$library" ;;
			esac
		done
	"$python" -I -c 'import sys, sysconfig; print(sysconfig.get_path("platstdlib") + "/lib-dynload")' |
		while read -r library; do
			mkdir -p "$1$library"
		done
}

add_node() { # root
	local node
	node=$(realpath "$(command -v node)") || die "there is no node; 'tools/install-deps.sh vmtest' installs it"
	add_program "$node" /bin/node "$1"
}

make_initramfs() {
	local root=$work/root
	rm -rf "$root"
	mkdir -p "$root"/{bin,dev,etc,proc,sys,tmp}
	install -m 755 /bin/busybox "$root/bin/busybox"
	"$root/bin/busybox" --list | while read -r applet; do
		[ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"
	done
	add_program "${VMTEST_PROGRAM:-$build/sysprof}" /bin/sysprof "$root"
	strip --strip-debug "$root/bin/sysprof"
	add_program "$build/tests/fixtures/chain-no-fp" /bin/chain "$root"
	add_program "$build/tests/fixtures/chain-lld" /bin/chain-lld "$root"
	add_program "$build/tests/fixtures/waits" /bin/waits "$root"
	add_program "$build/tests/fixtures/packets" /bin/packets "$root"
	add_program "$build/tests/fixtures/completions" /bin/completions "$root"
	add_program "$build/tests/fixtures/guest" /bin/guest "$root"
	add_program "$build/tests/fixtures/exits_leader" /bin/exits_leader "$root"
	add_program "$build/tests/bench/softirq_ticks" /bin/softirq_ticks "$root"
	add_program "$build/tests/unit/test_wall" /bin/test_wall "$root"
	install -D -m 644 "$here/../tests/unit/testdata/wall.txt" "$root/tests/unit/testdata/wall.txt"
	install -m 755 "$build/tests/fixtures/chain-go" "$root/bin/chain-go"
	add_python "$root"
	add_node "$root"
	install -m 644 "$here/chain.py" "$here/chain.js" "$here/ends.py" "$root/"
	install -m 755 "$here/init" "$root/init"
	(cd "$root" && find . -print0 | cpio --null --quiet -o -H newc -R 0:0) >"$work/initramfs"
}

# Under qemu 7.2's TCG a 6.12 kernel sometimes dies early, in kmalloc or with garbage in its flags; with
# this CPU it booted 30 times of 30. Why is not known; cmpxchg16b is suspected, 5-level paging may share in it.
boot() { # kernel, clock, console file
	local accel=${VMTEST_ACCEL:-tcg} clock=() attempts=""
	if [ "$accel,$2" = tcg,own ]; then
		clock=(-icount "shift=$instruction_shift,sleep=off") attempts=attempts=1
	fi
	cp "$work/initramfs" "$3.initrd"
	(cd "$(dirname "$1")" && printf '%s.ko\n' "${modules[@]}" | while read -r module; do
		[ ! -e "$module" ] || echo "$module"
	done | cpio --quiet -o -H newc) >>"$3.initrd"
	rm -f "$3.raw"
	wake "$3.raw" | (ulimit -t "$boot_limit" && exec timeout -k 5 $((20 * boot_limit)) qemu-system-x86_64 \
		-machine "pc,accel=$accel" "${clock[@]}" -cpu max,la57=off,cx16=off -smp 2 -m "$memory" \
		-display none -serial "file:$3.raw" -monitor stdio -nic none -no-reboot \
		-kernel "$1" -initrd "$3.initrd" \
		-append "console=ttyS0 no_timer_check panic=-1 quiet loglevel=3 oops=panic $attempts") >"$3.qemu" 2>&1
	rm "$3.initrd"
	tr -d '\r' <"$3.raw" >"$3"
}

# Commands for the monitor that wake the guest after it has suspended itself, however long that takes: before, they do nothing.
wake() { # console file
	until grep -qs '^@@suspending' "$1"; do
		sleep 1
		echo # fails when qemu has ended
	done
	until grep -q '^@@begin suspended' "$1"; do
		sleep 2
		echo system_wakeup
	done
}

# The lines that the guest printed between its marks of that name.
section() { # name, console file
	sed -n "/^@@begin $1\$/,/^@@end $1\$/{/^@@/d;p}" "$2"
}

# ---- what is asserted ----------------------------------------------------------------------------

# The whole stack of each program, as the beginning of a line. Between _start and main are two functions of
# the C library, of which stripped ones name but one.
c_stack="_start;[^;]+;[^;]+;main;outer;middle;inner;leaf"
go_stack="runtime[.]goexit;runtime[.]main;main[.]main;main[.]outer;main[.]middle;main[.]inner;main[.]leaf"
declare -A stacks=([chain]=$c_stack [chain-lld]=$c_stack [chain-go]=$go_stack [short]=$c_stack)

# What is not whole in a sample has a reason that is counted.
check_chain() { # program, console file, percent
	{ section "record $1" "$2" && section "folded $1" "$2"; } | awk -v share="$3" -v least="$samples_wanted" \
		-v program="$1" -v stack="^$1;${stacks[$1]}[; ]" '
		$2 == "incomplete:" { counted += $1 }
		/[;.]leaf[; ]/ {
			count = $NF
			total += count
			if ($0 ~ stack)
				known += count
		}
		END {
			if (total < least) {
				printf "%s: only %d samples, fewer than %d\n", program, total, least
				exit 1
			}
			printf "%s: its whole stack is in %d of %d samples (%.1f %%)\n",
				program, known, total, 100 * known / total
			exit known * 100 < total * share || total - known > counted
		}'
}

# Its functions are in the samples of a program that wrote no map of them: all of them in each where one is.
check_names() { # runtime, console file
	section "folded $1" "$2" | awk -v share="$named_wanted" -v least="$samples_wanted" -v program="$1" '
		{ total += $NF }
		/[;]leaf[; ]/ { leaf += $NF }
		/;main;outer;middle;inner;leaf[; ]/ { known += $NF }
		END {
			printf "%s: its whole stack is in %d of %d samples (%.1f %%), %d in its innermost function\n",
				program, known, total, total ? 100 * known / total : 0, leaf
			exit known < least || known * 100 < total * share || known * 100 < leaf * 95
		}'
}

# "program NAME: N verified instructions", a line each from record -v
check_instructions() { # section, console file
	section "$1" "$2" | awk -v most_of_all="$instructions_allowed" -v most_of_tick="$tick_instructions_allowed" '
		match($0, /program [^ ]+: [0-9]+ verified instructions/) {
			split(substr($0, RSTART, RLENGTH), word, " ")
			programs++
			most = word[2] == "tick:" ? most_of_tick : most_of_all
			if (word[3] > most) {
				printf "program %s %d verified instructions are over the budget of %d\n",
					word[2], word[3], most
				over = 1
			}
		}
		END {
			if (!programs)
				print "record -v did not say the instruction counts of the programs"
			exit !programs || over
		}'
}

# CPU 1 was offline for some time: that is said, its books go on, and it is sampled afterwards.
check_hotplug() { # console file
	section hotplug "$1" | grep -E 'CPUs changed: CPU 1 offline at [0-9.]+ s; CPU 1 online at [0-9.]+ s' ||
		{ echo "hotplug: the record did not say that CPU 1 went and came"; return 1; }
	section "hotplug books" "$1" | grep -E 'unexplained -?[0-6]\b' ||
		{ echo "hotplug: the books of CPU 1 do not add up"; return 1; }
	section "hotplug stacks" "$1" | awk -v least=40 '
		/^chain;/ { before += $NF }
		/^chain-lld;/ { after += $NF }
		/^chain-go;/ { again += $NF }
		END {
			printf "hotplug: %d samples before, %d after, %d after a short absence\n", before, after, again
			exit before < least || after < least || again < least
		}'
}

# Softirqs: the ticks in them, by the kernel's tracepoints around each, are samples in them, and no others. Those in the programs
# of the tracepoints are partly in a softirq; 2 % are for the instructions around it. The packets are received on an idle CPU.
check_packets() { # console file
	local lost
	lost=$(section "packets figures" "$1" | tr -d ' \n' | grep -oE '"(ring-full|re-entry|internal)":[0-9]+' |
		awk -F: '{ lost += $2 } END { print lost + 0 }')
	section packets "$1" | grep "by the loopback" || true
	{
		section "packets ticks" "$1" | awk -v RS= '{ due = 0; for (i = 2; i <= NF; i += 2) due += $i } END { print "due", due }'
		section "packets stacks" "$1"
	} | awk -v lost="$lost" '
		$1 == "due" { due = $2 }
		/\[softirq\];/ { if (/;(handle_softirqs|__do_softirq)[^;]*;[^; ]*trace/) hooks += $NF; else softirq += $NF }
		/^NET_RX;/ { received += $NF }
		END {
			printf "packets: %d samples of %d ticks in softirqs, %d of NET_RX on idle CPUs, %d in programs of tracepoints, %d lost\n",
				softirq, due, received, hooks, lost
			exit received < 30 || due < 100 || softirq > 1.02 * due + 1 || softirq < 0.98 * due - 1 - hooks - lost
		}'
}

# A guest of KVM: of the samples while it runs nearly all are in it and not in KVM's code, the kernel's own ticks have seen it as
# well, and the thread's CPU time is that of its own clock. Where there is no KVM, the reason is said.
check_kvm() { # console file
	local own
	if ! grep -q '^@@begin guest stacks' "$1"; then
		echo "kvm: none here: $(section guest "$1" | tail -n 1)"
		return
	fi
	touch "$work/kvm"
	own=$(section guest "$1" | sed -n 's/^cpu_time \([0-9]*\)$/\1/p')
	figure() { section "$2" "$1" | tr -d ' \n' | sed -n "s/.*\"$3\":\([0-9]*\).*/\1/p"; }
	section "guest stacks" "$1" | awk -v own="${own:-0}" -v cpu="$(figure "$1" "guest threads" cpu_ns)" \
		-v stat="$(figure "$1" "guest figures" guest)" -v share="$share_wanted" '
		/;\[guest\] [0-9]+$/ { inside += $NF }
		/;\[guest\] [0-9]+$|;kvm_arch_vcpu_ioctl_run / { total += $NF }
		END {
			sampled = inside / 99
			printf "kvm: %d of %d samples of its run are in the guest: %.2f s, %.2f s in /proc/stat; CPU time %.3f s, %.3f s by its clock\n",
				inside, total, sampled, stat / 1e9, cpu / 1e9, own / 1e9
			exit inside < 50 || inside * 100 < total * share || !stat || cpu < own * 0.9 || cpu > own * 1.1
		}'
}

# The agent names the requested service, and not the excluded one.
check_agent() { # console file
	section agent "$1" | grep 'service_name="chain"' ||
		{ echo "agent: the program is no service of its window"; return 1; }
	! section agent "$1" | grep 'service_name="out\|service_name="chain-lld"' ||
		{ echo "agent: what was left out is a service of its window"; return 1; }
}

# Where there are visits the kernel is 6.1 or later; others say why --wall does not work.
check_wall() { # series, console file
	if [[ $(printf '%s\n' 6.1 "$1" | sort -V | head -n 1) == 6.1 ]]; then
		"$here/check_waits.py" "$2"
	else
		section "no wall" "$2" | grep "since Linux 6.1" ||
			{ echo "wall: the record did not say why not"; return 1; }
	fi
}

check_guest() { # series, console file
	local failed="" status program record share
	status=$(sed -n 's/^@@exit \([0-9]*\)$/\1/p' "$2")
	if [ -z "$status" ]; then
		echo "the guest did not come to its end (it may take $boot_limit s of CPU time); its last lines:"
		tail -n 30 "$2" | sed 's/^/  | /'
		return 1
	fi
	[ -z "${VMTEST_KEEP:-}" ] || sed 's/^/  | /' "$2"
	echo "uname: $(section uname "$2")"
	[[ $(section uname "$2") == *" $1."* ]] || { echo "that is not $1"; failed=yes; }
	section check "$2" | grep -v '^  ok \|^$' | sed 's/^/  check: /'
	for record in "record chain" named; do
		check_instructions "$record" "$2" || failed=yes
	done
	"$here/check_targets.py" "$2" || failed=yes
	grep '^short: without overlayfs' "$2" || true
	for program in chain chain-lld chain-go short; do
		section "record $program" "$2" | sed 's/^/  record: /'
		section "folded $program" "$2" | awk '{ print $NF, $0 }' | sort -rn | cut -d' ' -f2- |
			head -n 3 | cut -c 1-160 | sed 's/^/  folded: /'
		[ "$program" = short ] && share=$short_share_wanted || share=$share_wanted
		check_chain "$program" "$2" "$share" || failed=yes
	done
	for program in python node; do
		section "record $program" "$2" | sed 's/^/  record: /'
		check_names "$program" "$2" || failed=yes
	done
	check_wall "$1" "$2" || failed=yes
	check_hotplug "$2" || failed=yes
	check_agent "$2" || failed=yes
	check_packets "$2" || failed=yes
	check_kvm "$2" || failed=yes
	if [ "$status" -ne 0 ]; then
		echo "in the guest a step failed:"
		sed -n 's/^@@failed /  /p' "$2"
		failed=yes
	fi
	[ -z "$failed" ]
}

find_kernel() { # series, suite, architecture
	[ "$3" = "$(dpkg --print-architecture)" ] || die "$1: $3 is not this machine's architecture"
	APT_CONFIG=$("$here/../tools/apt-root.sh" "$work/apt-$2-$3" "$2" "$3") || exit 1
	export APT_CONFIG
	fetch_kernel "$1" "$2" "$3"
}

# Its last line says whether it passed: what it prints goes to a file, since others run at the same time.
test_kernel() { # series, kernel, clock
	local console=$work/console-$1 verdict=passed
	SECONDS=0
	boot "$2" "$3" "$console" || true
	check_guest "$1" "$console" || verdict=FAILED
	times >"$console.times"
	echo "$1 $verdict in $SECONDS s, CPU time (user, system) $(tail -n 1 "$console.times")"
}

main() {
	local series suite arch clock tool kernel most failed=""
	local -a order=()
	[ $# -ge 1 ] || die "usage: run.sh BUILD [SERIES…]"
	build=$(realpath "$1")
	shift
	work=$build/vmtest
	mkdir -p "$work"
	rm -f "$work/kvm" "$work"/result-*
	for tool in qemu-system-x86_64 cpio ldd apt-get dpkg-deb; do
		command -v "$tool" >/dev/null ||
			die "$tool is missing; 'tools/install-deps.sh vmtest' installs what this needs"
	done
	[ -x /bin/busybox ] && ! ldd /bin/busybox >/dev/null 2>&1 ||
		die "a static /bin/busybox is missing; 'tools/install-deps.sh vmtest' installs it"
	for series in "$@"; do
		grep -q "^$series[[:space:]]" "$here/kernels.txt" || die "kernels.txt has no series $series"
	done
	make_initramfs

	while read -r series suite arch clock; do
		[[ -z $series || $series == "#"* ]] && continue
		[ $# -eq 0 ] || [[ " $* " == *" $series "* ]] || continue
		order+=("$series")
		kernel=$(find_kernel "$series" "$suite" "$arch") || continue
		[ "$clock" = own ] && most=$jobs || most=1
		while [ "$(jobs -pr | wc -l)" -ge "$most" ]; do wait -n || true; done
		test_kernel "$series" "$kernel" "$clock" >"$work/result-$series" 2>&1 &
		[ "$clock" = own ] || wait || true
	done <"$here/kernels.txt"
	wait
	for series in "${order[@]}"; do
		echo "== $series"
		cat "$work/result-$series" || true
		grep -qs "^$series passed" "$work/result-$series" || failed="$failed $series"
	done
	[ -z "$failed" ] || die "failed on:$failed"
	[ $# -gt 0 ] || [ -e "$work/kvm" ] || die "no kernel had KVM, so no guest was sampled"
	echo "vmtest: ${#order[@]} kernels passed"
}

main "$@"
