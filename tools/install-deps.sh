#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# install-deps.sh [--check] build|demo|unit|test|distros|deb|static|fuzz|vmtest|bench
#
# Looks what the named task still needs on this machine and installs just that: on Debian and Ubuntu
# with apt-get (through sudo where the caller is not root), elsewhere it prints the package names and
# the command. With --check it installs nothing anywhere and exits 1 if something is missing.
# Running it twice is the same as running it once.
#
# What counts is whether the thing itself is there (a command, a header, a library of a sufficient
# version), not whether a package of some name is: so tools from other sources are left alone.
set -euo pipefail

# One row a need: task | what must be there | Debian | Fedora | Arch | openSUSE.
#   cmd:NAME        a command, also in the sbin directories
#   runs:NAME       a command that prints its version: Ubuntu has a script of that name that may find nothing
#   pc:NAME:MIN     a library that pkg-config finds
#   h:PATH          a header that the compiler finds by itself
#   file:PATH       a file
#   clang-rt:NAME   a runtime library of clang
#   py:NAME         a module of the system's own python3
#   php:NAME        an extension of php
needs() {
	cat <<-'TABLE'
	build | cmd:gcc                  | gcc             | gcc             | gcc        | gcc
	build | cmd:make                 | make            | make            | make       | make
	build | cmd:pkg-config           | pkg-config      | pkgconf-pkg-config | pkgconf | pkg-config
	build | h:sys/types.h            | libc6-dev       | glibc-devel     | glibc      | glibc-devel
	build | cmd:clang                | clang           | clang           | clang      | clang
	build | runs:bpftool             | bpftool         | bpftool         | bpf        | bpftool
	build | pc:libbpf:1.1            | libbpf-dev      | libbpf-devel    | libbpf     | libbpf-devel
	build | pc:libelf:0.188          | libelf-dev      | elfutils-libelf-devel | libelf | libelf-devel
	build | pc:liblzma:5.2           | liblzma-dev     | xz-devel        | xz         | xz-devel
	build | pc:libdw:0.188           | libdw-dev       | elfutils-devel  | libelf     | libdw-devel
	build | pc:libseccomp:2.5        | libseccomp-dev  | libseccomp-devel | libseccomp | libseccomp-devel
	build | pc:zlib:1.2              | zlib1g-dev      | zlib-devel      | zlib       | zlib-devel
	build | pc:libcjson:1.7          | libcjson-dev    | cjson-devel     | cjson      | cjson-devel
	build | pc:libmicrohttpd:0.9.70  | libmicrohttpd-dev | libmicrohttpd-devel | libmicrohttpd | libmicrohttpd-devel
	build | pc:libcurl:7.80          | libcurl4-openssl-dev | libcurl-devel | curl   | libcurl-devel
	build | pc:inih:53               | libinih-dev     | inih-devel      | libinih    | libinih-devel
	build | h:libiberty/demangle.h   | libiberty-dev   | binutils-devel  | binutils   | binutils-devel
	deb   | cmd:dpkg-buildpackage    | dpkg-dev        | rpm-build       | dpkg       | dpkg-devel
	deb   | cmd:dh                   | debhelper       | debhelper       | debhelper  | debhelper
	deb   | cmd:lintian              | lintian         | lintian         | lintian    | lintian
	static | file:/usr/lib/x86_64-linux-gnu/libssl.a | libssl-dev | openssl-devel | openssl | libopenssl-devel
	static | file:/usr/lib/x86_64-linux-gnu/libbz2.a | libbz2-dev | bzip2-devel | bzip2 | libbz2-devel
	static | file:/usr/lib/x86_64-linux-gnu/libcapstone.a | libcapstone-dev | capstone-devel | capstone | libcapstone-devel
	static | cmd:apt-get             | apt             | apt             | apt        | apt
	static | cmd:dpkg-source         | dpkg-dev        | dpkg-dev        | dpkg       | dpkg-devel
	static | file:/usr/share/keyrings/debian-archive-keyring.gpg | debian-archive-keyring | debian-keyring | debian-archive-keyring | debian-archive-keyring
	unit  | pc:cmocka:1.1            | libcmocka-dev   | libcmocka-devel | cmocka     | libcmocka-devel
	unit  | pc:capstone:4.0          | libcapstone-dev | capstone-devel  | capstone   | libcapstone-devel
	unit  | pc:libprotobuf-c:1.3     | libprotobuf-c-dev | protobuf-c-devel | protobuf-c | protobuf-c-devel
	unit  | cmd:protoc-c             | protobuf-c-compiler | protobuf-c-compiler | protobuf-c | protobuf-c
	distros | cmd:debootstrap        | debootstrap     | debootstrap     | debootstrap | debootstrap
	distros | file:/usr/share/keyrings/debian-archive-keyring.gpg | debian-archive-keyring | debian-keyring | debian-archive-keyring | debian-archive-keyring
	test  | cmd:clang-format         | clang-format    | clang-tools-extra | clang    | clang-tools
	test  | cmd:ctags                | universal-ctags | ctags           | ctags      | ctags
	unit  | cmd:python3              | python3         | python3         | python     | python3
	test  | py:yaml                  | python3-yaml    | python3-pyyaml  | python-yaml | python3-PyYAML
	test  | py:jsonschema            | python3-jsonschema | python3-jsonschema | python-jsonschema | python3-jsonschema
	test  | py:greenlet            | python3-greenlet | python3-greenlet | python-greenlet | python3-greenlet
	test  | py:scipy               | python3-scipy   | python3-scipy   | python-scipy | python3-scipy
	test  | cmd:node                 | nodejs          | nodejs          | nodejs     | nodejs
	test  | cmd:npm                  | npm             | nodejs-npm      | npm        | npm
	test  | cmd:mvn                  | maven           | maven           | maven      | maven
	test  | py:pip                   | python3-pip     | python3-pip     | python-pip | python3-pip
	test  | cmd:ruby                 | ruby            | ruby            | ruby       | ruby
	test  | cmd:stackprof            | ruby-stackprof  | rubygem-stackprof | ruby-stackprof | rubygem-stackprof
	test  | php:excimer              | php-excimer php-cli | php-pecl-excimer | php-excimer | php8-excimer
	test  | cmd:firefox-esr          | firefox-esr     | firefox         | firefox    | MozillaFirefox
	test  | file:/usr/lib/x86_64-linux-gnu/libprofiler.so.0 | google-perftools | gperftools | gperftools | gperftools
	test  | cmd:g++                  | g++             | gcc-c++         | gcc        | gcc-c++
	test  | cmd:llvm-symbolizer      | llvm            | llvm            | llvm       | llvm
	test  | cmd:curl                 | curl            | curl            | curl       | curl
	test  | cmd:git                  | git             | git             | git        | git
	test  | cmd:openssl              | openssl         | openssl         | openssl    | openssl
	test  | cmd:bindfs               | bindfs          | bindfs          | bindfs     | bindfs
	test  | cmd:fuse-overlayfs       | fuse-overlayfs  | fuse-overlayfs  | fuse-overlayfs | fuse-overlayfs
	test  | cmd:strace               | strace          | strace          | strace     | strace
	test  | cmd:perf                 | linux-perf      | perf            | perf       | perf
	test  | file:/usr/lib/debug/.build-id | libc6-dbg  | glibc-debuginfo | glibc-debug | glibc-debuginfo
	test  | cmd:objcopy              | binutils        | binutils        | binutils   | binutils
	unit  | cmd:xz                   | xz-utils        | xz              | xz         | xz
	unit  | cmd:dwz                  | dwz             | dwz             | dwz        | dwz
	test  | cmd:javac                | default-jdk-headless | java-latest-openjdk-devel | jdk-openjdk | java-21-openjdk-devel
	unit  | cmd:go                   | golang-go       | golang          | go         | go
	test  | cmd:musl-gcc             | musl-tools      | musl-gcc        | musl       | musl-devel
	test  | cmd:luajit               | luajit          | luajit          | luajit     | luajit
	test  | cmd:pypy3                | pypy3           | pypy3           | pypy3      | pypy3
	test  | cmd:erlc                 | erlang-base     | erlang-erts     | erlang     | erlang
	test  | cmd:ffmpeg               | ffmpeg          | ffmpeg-free     | ffmpeg     | ffmpeg
	unit  | cmd:debuginfod           | debuginfod      | elfutils-debuginfod | debuginfod | elfutils-debuginfod
	test  | cmd:chromium             | chromium        | chromium        | chromium   | chromium
	test  | cmd:redis-server         | redis-server    | redis           | redis      | redis
	test  | cmd:nginx                | nginx-light     | nginx           | nginx      | nginx
	test  | cmd:gunicorn             | gunicorn        | python3-gunicorn | gunicorn  | python3-gunicorn
	test  | cmd:pg_ctl               | postgresql      | postgresql-server | postgresql | postgresql-server
	test  | cmd:ld.lld               | lld             | lld             | lld        | lld
	test  | cmd:ld.gold              | binutils-gold   | binutils-gold   | binutils   | binutils-gold
	test  | cmd:systemd-analyze      | systemd         | systemd         | systemd    | systemd
	test  | cmd:capsh                | libcap2-bin     | libcap          | libcap     | libcap-progs
	test  | cmd:zsh                  | zsh             | zsh             | zsh        | zsh
	test  | cmd:fish                 | fish            | fish            | fish       | fish
	test  | file:/usr/share/bash-completion/bash_completion | bash-completion | bash-completion | bash-completion | bash-completion
	unit  | cmd:promtool           | prometheus      | golang-github-prometheus | prometheus | golang-github-prometheus-prometheus
	fuzz  | clang-rt:fuzzer          | libclang-rt-dev | compiler-rt     | compiler-rt | clang-tools
	vmtest | cmd:qemu-system-x86_64  | qemu-system-x86 | qemu-system-x86-core | qemu-system-x86 | qemu-x86
	vmtest | file:/bin/busybox       | busybox-static  | busybox         | busybox    | busybox-static
	vmtest | cmd:ld.lld              | lld             | lld             | lld        | lld
	vmtest | cmd:go                  | golang-go       | golang          | go         | go
	vmtest | cmd:python3             | python3         | python3         | python     | python3
	vmtest | cmd:node                | nodejs          | nodejs          | nodejs     | nodejs
	vmtest | cmd:cpio                | cpio            | cpio            | cpio       | cpio
	vmtest | cmd:xz                  | xz-utils        | xz              | xz         | xz
	vmtest | cmd:apt-get             | apt             | apt             | apt        | apt
	vmtest | cmd:dpkg-deb            | dpkg            | dpkg            | dpkg       | dpkg
	vmtest | file:/usr/share/keyrings/debian-archive-keyring.gpg | debian-archive-keyring | debian-keyring | debian-archive-keyring | debian-archive-keyring
	bench | cmd:perf                 | linux-perf      | perf            | perf       | perf
	bench | cmd:python3              | python3         | python3         | python     | python3
	bench | cmd:g++                  | g++             | gcc-c++         | gcc        | gcc-c++
	bench | cmd:ld.lld               | lld             | lld             | lld        | lld
	bench | cmd:ld.gold              | binutils-gold   | binutils-gold   | binutils   | binutils-gold
	bench | cmd:musl-gcc             | musl-tools      | musl-gcc        | musl       | musl-devel
	bench | cmd:go                   | golang-go       | golang          | go         | go
	bench | cmd:rustc                | rustc           | rust            | rust       | rust
	bench | cmd:chromium             | chromium        | chromium        | chromium   | chromium
	bench | cmd:pg_ctl               | postgresql      | postgresql-server | postgresql | postgresql-server
	bench | cmd:ffmpeg               | ffmpeg          | ffmpeg-free     | ffmpeg     | ffmpeg
	bench | cmd:git                  | git             | git             | git        | git
	bench | cmd:sqlite3              | sqlite3         | sqlite          | sqlite     | sqlite3
	bench | cmd:openssl              | openssl         | openssl         | openssl    | openssl
	bench | cmd:perl                 | perl            | perl            | perl       | perl
	bench | cmd:ruby                 | ruby            | ruby            | ruby       | ruby
	bench | cmd:php                  | php-cli         | php-cli         | php        | php8-cli
	bench | cmd:pypy3                | pypy3           | pypy3           | pypy3      | pypy3
	bench | cmd:luajit               | luajit          | luajit          | luajit     | luajit
	bench | cmd:erlc                 | erlang-base     | erlang-erts     | erlang     | erlang
	bench | cmd:node                 | nodejs          | nodejs          | nodejs     | nodejs
	bench | cmd:npm                  | npm             | nodejs-npm      | npm        | npm
	bench | cmd:javac                | default-jdk-headless | java-latest-openjdk-devel | jdk-openjdk | java-21-openjdk-devel
	bench | cmd:setpriv              | util-linux      | util-linux      | util-linux | util-linux
	TABLE
}

# Which rows a task takes.
rows_of() {
	case $1 in
	build | demo) echo build ;;
	unit) echo "build unit" ;;
	test) echo "build unit test distros fuzz" ;;
	distros) echo "distros" ;;
	deb) echo "build deb" ;;
	static) echo "build static" ;;
	fuzz) echo "build fuzz" ;;
	vmtest) echo "build vmtest" ;;
	bench) echo "build bench" ;;
	*) return 1 ;;
	esac
}

PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

present() {
	local kind=${1%%:*} rest=${1#*:}

	case $kind in
	cmd)
		command -v "$rest" >/dev/null || compgen -G "/usr/lib/linux-tools/*/$rest" >/dev/null ||
			compgen -G "/usr/lib/postgresql/*/bin/$rest" >/dev/null
		;;
	runs) "$rest" version >/dev/null 2>&1 || compgen -G "/usr/lib/linux-tools/*/$rest" >/dev/null ;;
	pc) pkg-config --exists "${rest%:*} >= ${rest#*:}" 2>/dev/null ;;
	h) echo "#include <$rest>" | cc -E -o /dev/null - 2>/dev/null ;;
	file) [ -e "$rest" ] ;;
	py) /usr/bin/python3 -c "import $rest" 2>/dev/null ;;
	php) php -m 2>/dev/null | grep -qx "$rest" ;;
	clang-rt) compgen -G "$(clang -print-resource-dir 2>/dev/null)/lib/*/*clang_rt.$rest*.a" >/dev/null ;;
	esac
}

distribution() {
	local ID="" ID_LIKE=""
	# shellcheck source=/dev/null
	[ -r /etc/os-release ] && . /etc/os-release
	case " $ID $ID_LIKE " in
	*" ubuntu "*) echo ubuntu ;;
	*" debian "*) echo debian ;;
	*" fedora "* | *" rhel "*) echo fedora ;;
	*" arch "*) echo arch ;;
	*" suse "* | *" opensuse "*) echo suse ;;
	*) echo unknown ;;
	esac
}

column_of() {
	case $1 in
	fedora) echo 4 ;;
	arch) echo 5 ;;
	suse) echo 6 ;;
	*) echo 3 ;;
	esac
}

# Debian's and Ubuntu's releases differ from the table: the linker gold has a package of its own since binutils 2.44, and
# Ubuntu has the kernel's own tools (bpftool until 25.04, perf) in packages of its own names, and Chromium as well.
apt_name() { # debian or ubuntu, package
	local VERSION_ID=""
	# shellcheck source=/dev/null
	[ -r /etc/os-release ] && . /etc/os-release
	case "$1 ${VERSION_ID%%.*} $2" in
	"debian 1"[12]" binutils-gold" | "ubuntu 2"[234]" binutils-gold") echo binutils ;;
	"ubuntu 2"[234]" bpftool" | "ubuntu "*" linux-perf") echo "linux-tools-common linux-tools-generic" ;;
	"ubuntu "*" chromium") echo chromium-browser ;;
	*) echo "$2" ;;
	esac
}

# Prints "what package…" for everything that is missing.
missing() {
	local tasks=" $1 " distro=$2 column task what package
	column=$(column_of "$distro")
	needs | sed 's/ *| */|/g; s/[ \t]*$//' | while IFS= read -r row; do
		task=$(cut -d'|' -f1 <<<"$row")
		what=$(cut -d'|' -f2 <<<"$row")
		package=$(cut -d'|' -f"$column" <<<"$row")
		[[ $tasks == *" $task "* ]] || continue
		present "$what" && continue
		[[ $distro != debian && $distro != ubuntu ]] || package=$(apt_name "$distro" "$package")
		echo "$what $package"
	done
}

install_command() {
	case $1 in
	debian | ubuntu) echo "apt-get install --no-install-recommends" ;;
	fedora) echo "dnf install" ;;
	arch) echo "pacman -S --needed" ;;
	suse) echo "zypper install" ;;
	*) echo "" ;;
	esac
}

apt_install() {
	local as_root=() package
	[ "$(id -u)" -eq 0 ] || as_root=(sudo)

	for package in "$@"; do
		apt-cache show "$package" >/dev/null 2>&1 && continue
		echo "apt does not know $package yet: ${as_root[*]} apt-get update"
		"${as_root[@]}" apt-get -q update
		break
	done
	local install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive
		apt-get -q -y install --no-install-recommends "$@")
	"${install[@]}" && return
	echo "that failed: once more with fresh package lists"
	"${as_root[@]}" apt-get -q update
	"${install[@]}"
}

main() {
	local check="" task="" tasks distro lacking packages command
	[ "${1:-}" = --check ] && check=yes && shift
	task=${1:-}
	tasks=$(rows_of "$task") || {
		echo "usage: $0 [--check] build|demo|unit|test|distros|deb|static|fuzz|vmtest|bench" >&2
		exit 2
	}

	distro=$(distribution)
	lacking=$(missing "$tasks" "$distro")
	[ -n "$lacking" ] || exit 0
	packages=$(cut -d' ' -f2- <<<"$lacking" | tr ' ' '\n' | sort -u | tr '\n' ' ')
	packages=${packages% }
	command=$(install_command "$distro")

	{
		echo "missing for '$task':"
		sed 's/^\([^ ]*\) \(.*\)/  \1 (package \2)/; s/^  [a-z]*:/  /' <<<"$lacking"
	} >&2
	if [ -z "$command" ]; then
		echo "install these, or what your distribution calls them (Debian's names): $packages" >&2
		exit 1
	fi
	[ "$(id -u)" -eq 0 ] || command="sudo $command"
	if [ -n "$check" ] || [[ $distro != debian && $distro != ubuntu ]]; then
		echo "install it with:" >&2
		echo "  $command $packages" >&2
		exit 1
	fi
	if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
		echo "there is no sudo here; as root, run:" >&2
		echo "  ${command#sudo } $packages" >&2
		exit 1
	fi

	echo "installing: $packages"
	# shellcheck disable=SC2086 # a list of names
	apt_install $packages
	lacking=$(missing "$tasks" "$distro")
	[ -z "$lacking" ] && exit 0
	{
		echo "the packages are installed, yet these are missing or too old:"
		sed 's/^[a-z]*:/  /' <<<"$lacking"
	} >&2
	exit 1
}

main "$@"
