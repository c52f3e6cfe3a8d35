#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# check-deb.sh PACKAGE.deb: installs, removes and purges the package as a user would, and looks what is there each time.
# It happens in a private copy of this system (an overlay in a mount namespace of its own) and that is
# gone at the end. As root.
set -euo pipefail

deb=$(realpath -m -- "$1")
name=sysprof-bpf

fail() {
	echo "check-deb: $*" >&2
	exit 1
}

# ---- inside the copy -----------------------------------------------------------------------------

# What an installation may leave: dpkg's and adduser's own files, caches of programs that list others.
everything() {
	find / -xdev \( -path /proc -o -path /sys -o -path /tmp -o -path /var/lib/dpkg -o -path /var/cache -o \
		-path /var/log -o -path /run -o -path /dev -o -path /deb \) -prune -o -print | grep -vE \
		'^/etc/(passwd|shadow|group|gshadow|subuid|subgid)-?$|^/etc/\.pwd\.lock$|^/var/lib/systemd/deb-systemd' | sort
}

has() { # mode, path
	local mode
	mode=$(stat -c %a "$2") || fail "$2 is not installed"
	[ "$mode" = "$1" ] || fail "$2 has mode $mode and not $1"
}

check_files() {
	has 755 /usr/bin/sysprof
	has 644 /lib/systemd/system/sysprof-agent.service
	has 644 /etc/sysprof/agent.conf
	has 644 /usr/share/man/man1/sysprof.1.gz
	has 644 /usr/share/bash-completion/completions/sysprof
	has 644 /usr/share/zsh/vendor-completions/_sysprof
	has 644 /usr/share/fish/vendor_completions.d/sysprof.fish
	has 644 /usr/share/doc/sysprof-bpf/README.Debian
	dpkg-query -W -f '${Conffiles}\n' $name | grep ' /etc/sysprof/agent.conf ' >/dev/null || fail "agent.conf is no conffile"
	man --warnings -l /usr/share/man/man1/sysprof.1.gz >/dev/null 2>/tmp/man || true
	[ ! -s /tmp/man ] || fail "manual page: $(cat /tmp/man)"
}

check_program() {
	local said
	sysprof --version | grep '^sysprof [0-9]' >/dev/null || fail "sysprof --version"
	said=$(sysprof agent --check || true) # the example has no sink
	grep -q 'MISSING  sink' <<<"$said" || fail "agent --check: $said"
	[ "$(grep -c 'MISSING' <<<"${said%%see MISSING*}")" = "$(grep -c 'MISSING  ' <<<"$said")" ] || fail "$said"
}

check_service() {
	local user verified
	user=$(getent passwd sysprof) || fail "no user sysprof"
	[[ $user == *:/var/lib/sysprof:/usr/sbin/nologin ]] || fail "user: $user"
	[ "$(getent passwd sysprof | cut -d: -f3)" -lt 1000 ] || fail "not a system user: $user"
	find /etc/systemd -name 'sysprof-agent*' | grep . && fail "the unit is enabled"
	grep -q try-restart /var/lib/dpkg/info/$name.postinst || fail "an upgrade does not restart it"
	grep -q 'invoke stop sysprof-agent' /var/lib/dpkg/info/$name.prerm || fail "a removal does not stop it"
	verified=$(systemd-analyze verify --man=yes sysprof-agent.service 2>&1 | grep sysprof-agent || true)
	[ -z "$verified" ] || fail "unit: $verified"
}

inside() {
	everything >/tmp/before
	dpkg -i /deb >/tmp/log 2>&1 || { cat /tmp/log; fail "dpkg -i"; }
	check_files
	check_program
	check_service
	echo ';mine' >>/etc/sysprof/agent.conf
	mkdir -p /var/lib/sysprof/spool /var/cache/sysprof
	dpkg -i /deb >/tmp/log 2>&1 || { cat /tmp/log; fail "dpkg -i, the second time"; }
	grep -q ';mine' /etc/sysprof/agent.conf || fail "what was configured is gone"

	dpkg -r $name >/tmp/log 2>&1 || { cat /tmp/log; fail "dpkg -r"; }
	[ ! -e /usr/bin/sysprof ] || fail "the program outlived its removal"
	grep -q ';mine' /etc/sysprof/agent.conf || fail "the configuration did not outlive a removal"
	[ -d /var/lib/sysprof/spool ] || fail "the spool did not outlive a removal"

	dpkg -P $name >/tmp/log 2>&1 || { cat /tmp/log; fail "dpkg -P"; }
	everything >/tmp/after
	diff /tmp/before /tmp/after || fail "a purge leaves or takes the files above"
	echo "check-deb: $(dpkg-deb -f /deb Package Version | tr '\n' ' ') is installed, removed and purged"
}

# ---- outside -------------------------------------------------------------------------------------

copy_of_system() {
	local place=$1
	mount -t tmpfs tmpfs "$place"
	mkdir "$place"/{upper,work,root}
	mount -t overlay overlay -o "lowerdir=/,upperdir=$place/upper,workdir=$place/work" "$place/root"
	touch "$place/root/deb"
	cp "$deb" "$place/root/deb"
	cp "$0" "$place/root/tmp/check-deb.sh"
	mount -t tmpfs tmpfs "$place/root/run"
	mount -t tmpfs tmpfs "$place/root/var/cache" # where sysprof itself may be writing in the real one
	cp -a /var/cache/debconf "$place/root/var/cache/"
	mount -t proc proc "$place/root/proc"
	mount --rbind /sys "$place/root/sys"
	mount --rbind /dev "$place/root/dev"
	exec chroot "$place/root" env -C / LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
		bash /tmp/check-deb.sh --inside
}

case $1 in
--inside) inside ;;
--copied) deb=$2 && copy_of_system "$3" ;;
*)
	place=$(mktemp -d)
	status=0
	unshare --mount --propagation private bash "$0" --copied "$deb" "$place" || status=$?
	rmdir "$place"
	exit "$status"
	;;
esac
