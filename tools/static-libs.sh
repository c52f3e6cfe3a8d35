#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# static-libs.sh OUT: the libraries of the static program that Debian has no archive of, built from Debian's source
# packages into OUT/lib and OUT/include: cJSON, libmicrohttpd without TLS (Debian's archive wants GnuTLS, which wants
# p11-kit, which has none), libcurl with OpenSSL and HTTP alone.
#
# libcurl does not read the host's configuration of OpenSSL, which may name modules of the host's OpenSSL.
# Sources come through an apt root of their own (tools/apt-root.sh), checked with Debian's archive keyring.
set -euo pipefail

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
out=$(mkdir -p "$1" && cd "$1" && pwd)
log=$out/log
work=$out/work
flags="-O2 -g -fPIE -fno-omit-frame-pointer -fstack-protector-strong -D_FORTIFY_SOURCE=2"

# Of the same release as the archives that the system has; elsewhere of one whose versions are known to do.
suite_of_system() {
	local ID="" VERSION_CODENAME=""
	# shellcheck source=/dev/null
	[ -r /etc/os-release ] && . /etc/os-release
	[ "$ID" = debian ] && [ -n "$VERSION_CODENAME" ] && echo "$VERSION_CODENAME" || echo bookworm
}

# Prints the directory of a source package, fetched and with Debian's patches.
fetch() { # name
	(cd "$work" && apt-get -qq source "$1" >>"$log" 2>&1) ||
		{ echo "no source package $1:" "$(tail -n 1 "$log")" >&2; return 1; }
	find "$work" -mindepth 1 -maxdepth 1 -type d -name "$1-*"
}

build_cjson() {
	local source
	source=$(fetch cjson)
	# shellcheck disable=SC2086 # a list of flags
	(cd "$source" && ${CC:-cc} $flags -c cJSON.c -o cJSON.o && ar rcs "$out/lib/libcjson.a" cJSON.o)
	install -D -m 644 "$source/cJSON.h" "$out/include/cjson/cJSON.h"
}

configure_and_install() { # directory, arguments of configure
	(cd "$1" && ./configure --quiet --prefix="$out" --disable-shared --enable-static CFLAGS="$flags" "${@:2}" &&
		make -s -j"$(nproc)" && make -s install) >>"$log" 2>&1 || { tail -n 30 "$log"; return 1; }
}

build_microhttpd() {
	configure_and_install "$(fetch libmicrohttpd)" --disable-https --disable-doc --disable-examples \
		--disable-curl --disable-bauth --disable-dauth
}

# No CA file of its own: the program looks where distributions have it.
build_curl() {
	local protocol off=() source
	for protocol in ldap ldaps ftp file dict telnet tftp pop3 imap smb smtp gopher mqtt rtsp ntlm; do
		off+=("--disable-$protocol")
	done
	source=$(fetch curl)
	configure_and_install "$source" "${off[@]}" --with-openssl --with-zlib --without-zstd --without-brotli \
		--without-nghttp2 --without-libidn2 --without-libpsl --without-libssh2 --without-librtmp \
		--without-gssapi --without-ca-bundle --without-ca-path \
		CPPFLAGS=-DCURL_DISABLE_OPENSSL_AUTO_LOAD_CONFIG \
		--disable-manual --enable-threaded-resolver
}

# In an archive libbpf's own hash table is for everybody to see, and has names that ours has too.
hide_names_of_libbpf() {
	local archive
	archive=$(${CC:-cc} -print-file-name=libbpf.a)
	ld -r --whole-archive "$archive" -o "$work/libbpf.o"
	objcopy --wildcard --localize-symbol='hashmap__*' "$work/libbpf.o"
	ar rcs "$out/lib/libbpf.a" "$work/libbpf.o"
}

rm -rf "$work" "$out/lib" "$out/include" "$out/made"
mkdir -p "$work" "$out/lib" "$out/include"
: >"$log"
APT_CONFIG=$("$here/apt-root.sh" "$out/apt" "$(suite_of_system)" "$(dpkg --print-architecture)" sources)
export APT_CONFIG
build_cjson
build_microhttpd
build_curl
hide_names_of_libbpf
rm -rf "$work" "$out/apt" "$out/share" "$out/bin"
touch "$out/made"
