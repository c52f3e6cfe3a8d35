#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# distros.sh [SUITE:TASK[:JOBS]…]: builds and tests this tree in bare Debian systems, as the README describes it. As root.
#
#   demo   a fresh copy of the tree, and `make demo` in it
#   unit   `make unit golden` in that copy, with what has changed since
#   test   `make test`
#
# JOBS is how many jobs at a time; otherwise as many as there are CPUs.
# Without arguments: `demo` and `unit` in each suite, and `test` in the one that is stable.
#
# A system is made by debootstrap when it is first needed, and kept: build/distros/SUITE/root. It is entered by pivot_root in a
# mount namespace of its own: no file of the host is in sight but /proc, /sys and /dev. The kernel is the host's. The tree lies
# in /root, which other users cannot enter. /tmp is on disk: files of a tmpfs that the host's init does not have mounted are
# treated as any user's, and tests expect files that are the administrator's. The mirror and its
# proxies are those of the host's apt (tools/apt-root.sh; DEBIAN_MIRROR=URL). Output: build/distros/SUITE/TASK.log.
#
# time-limit: 2400
#
# Exit 77: a system cannot be made here, as without a network.
set -euo pipefail

top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
work=$top/build/distros
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
all=(bookworm:demo bookworm:unit trixie:demo trixie:unit trixie:test testing:demo testing:unit)
# `unit` is built without optimization, in half of the CPU time; the other tasks build as users do. What is the same in each
# build is not measured again: TEST_REPEATED.
fast='-O0 -Wno-format-truncation -Wno-maybe-uninitialized -g -DTEST_REPEATED'
# Compilers and libraries whose versions matter most, as Debian's packages.
versions=(gcc clang libc6 libbpf-dev libelf-dev liblzma-dev)

cannot() {
	echo "distros: $*"
	exit 77
}

# ---- a system ------------------------------------------------------------------------------------

# Runs a command in it.
enter() { # suite, command…
	local root=$work/$1/root
	shift
	cp -L /etc/resolv.conf "$root/etc/resolv.conf"
	# shellcheck disable=SC2016 # for the shell inside
	unshare --mount --propagation private bash -euc '
		root=$1
		shift
		mount --bind "$root" "$root"
		cd "$root"
		mount -t proc proc proc
		mount --rbind /sys sys
		mount --rbind /dev dev
		mount -t tmpfs -o mode=755 tmpfs run
		pivot_root . mnt
		umount -l /mnt
		cd /root
		exec env -i CI="${CI:-}" UNSTEADY_PASSES="${UNSTEADY_PASSES:-}" TEST_JOBS="${TEST_JOBS:-}" HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
			PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
	' enter "$root" "$@"
}

make_system() { # suite
	local mirror proxy=""
	[ ! -e "$work/$1/made" ] || return 0
	command -v debootstrap >/dev/null || cannot "there is no debootstrap: tools/install-deps.sh distros"
	mirror=$("$top/tools/apt-root.sh" --mirror 2>&1) || cannot "$mirror"
	rm -rf "${work:?}/$1"
	mkdir -p "$work/$1"
	eval "$(apt-config shell proxy Acquire::http::Proxy)"
	echo "making $1 of $mirror"
	${proxy:+env http_proxy="$proxy"} debootstrap --variant=minbase --keyring="$keyring" "$1" "$work/$1/root" "$mirror" \
		>"$work/$1/debootstrap.log" 2>&1 || { tail -n 3 "$work/$1/debootstrap.log"; cannot "debootstrap of $1 failed"; }
	prepare_system "$1" >"$work/$1/prepare.log" 2>&1 || { tail -n 3 "$work/$1/prepare.log"; cannot "apt-get in $1 failed"; }
	touch "$work/$1/made"
}

prepare_system() { # suite
	local root=$work/$1/root
	# no service is started; an index that is out of date, as testing's is after a week, may be all that the mirror has
	printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
	chmod 755 "$root/usr/sbin/policy-rc.d"
	# no one logs in to it, and it need not outlive a crash of the host
	printf '%s\n' force-unsafe-io 'path-exclude=/usr/share/doc/*' 'path-exclude=/usr/share/locale/*' \
		'path-exclude=/usr/share/man/*' >"$root/etc/dpkg/dpkg.cfg.d/90host"
	{
		"$top/tools/apt-root.sh" --settings
		echo 'Acquire::Check-Valid-Until "false";'
	} >"$root/etc/apt/apt.conf.d/90host"
	enter "$1" apt-get -q update && enter "$1" apt-get -q -y install git make
}

# ---- tasks ---------------------------------------------------------------------------------------

# The working tree's files but those that git ignores. Older objects stay, as in any checkout.
copy_tree() { # suite
	local copy=$work/$1/root/root/sysprof
	mkdir -p "$copy"
	chmod 700 "$copy/.."
	find "$copy" -mindepth 1 -maxdepth 1 ! -name 'build*' -exec rm -rf {} +
	(cd "$top" && git -c safe.directory="$top" ls-files -z --cached --others --exclude-standard |
		tar --null --ignore-failed-read -T - -cf -) | tar -C "$copy" -xf -
}

task_demo() { # suite
	rm -rf "$work/$1/root/root/sysprof"
	copy_tree "$1"
	enter "$1" make -C sysprof demo
	# what the programs of the demo do has its names
	enter "$1" env -C sysprof build/sysprof report build/demo/demo.sysprof --top 200 | grep -w is_prime
}

task_unit() { # suite
	copy_tree "$1"
	enter "$1" make -C sysprof ${TEST_JOBS:+-j "$TEST_JOBS"} CFLAGS="$fast" unit golden
}

task_test() { # suite
	copy_tree "$1"
	enter "$1" make -C sysprof test
}

print_versions() { # suite
	# shellcheck disable=SC2016 # dpkg's
	echo "$1: $(enter "$1" dpkg-query -W -f '${Package} ${Version}, ' "${versions[@]}" 2>/dev/null || true)"
}

# Prints a line of its result, and the end of its log if it failed.
run_task() { # suite, task, jobs
	local log=$work/$1/$2.log begin=$SECONDS
	make_system "$1"
	if TEST_JOBS=$3 flock "$work/$1/lock" "$0" --here "$1" "$2" >"$log" 2>&1 </dev/null; then
		echo "ok    $1:$2 ($((SECONDS - begin)) s)"
	else
		echo "FAIL  $1:$2 ($((SECONDS - begin)) s): the end of $log"
		tail -n 40 "$log" | cut -c 1-300 | sed 's/^/  | /'
		return 1
	fi
	grep -E '^[0-9]+ passed' "$log" | sed 's/^/      /' || true
}

[ "$(id -u)" = 0 ] || exec sudo env CI="${CI:-}" DEBIAN_MIRROR="${DEBIAN_MIRROR:-}" "$0" "$@"
if [ "${1:-}" = --here ]; then
	"task_$3" "$2"
	exit
fi
[ $# -gt 0 ] || set -- "${all[@]}"
status=0
for arg in "$@"; do
	[[ $arg =~ ^(bookworm|trixie|testing):(demo|unit|test)(:[1-9][0-9]*)?$ ]] || {
		echo "usage: $0 [bookworm|trixie|testing:demo|unit|test]…" >&2
		exit 2
	}
done
for arg in "$@"; do
	IFS=: read -r suite task jobs <<<"$arg"
	run_task "$suite" "$task" "$jobs" || status=1
	print_versions "$suite"
done
exit "$status"
