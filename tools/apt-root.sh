#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# apt-root.sh --mirror | --settings: the Debian mirror of the system's apt, and its settings of the network.
# apt-root.sh DIR SUITE ARCHITECTURE [sources]: an apt root of our own in DIR for one suite of Debian's; with
# "sources" its source packages and no others. Prints the path of its configuration: with that in APT_CONFIG, apt-get
# and apt-cache use that suite.
#
# It has its own source list, state and cache, and what it reads is checked with Debian's archive
# keyring. Nothing of the system's apt is written, and none of its hooks is run; its proxy settings and the
# name of its mirror are read (DEBIAN_MIRROR=URL overrides the mirror, and is needed where the
# system is not Debian).
set -euo pipefail

keyring=/usr/share/keyrings/debian-archive-keyring.gpg

die() {
	echo "apt-root.sh: $*" >&2
	exit 1
}

mirror_of_system() {
	apt-get indextargets --format '$(ORIGIN) $(RELEASE) $(REPO_URI)' 'Created-By: Packages' |
		awk '$1 == "Debian" && $2 !~ /-/ && !found++ { print $3 }'
}

# How the system's apt reaches its mirror.
settings_of_system() {
	apt-config dump | grep -E '^Acquire::(http|https|socks|Retries|ForceIP|Languages)' || true
}

configuration() { # directory, architecture
	settings_of_system
	cat <<-CONFIG
	Dir::Etc::main "/dev/null";
	Dir::Etc::parts "/dev/null";
	Dir::Etc::sourcelist "$1/etc/sources.list";
	Dir::Etc::sourceparts "/dev/null";
	Dir::Etc::preferences "/dev/null";
	Dir::Etc::preferencesparts "/dev/null";
	Dir::State "$1/state";
	Dir::State::status "$1/status";
	Dir::Cache "$1/cache";
	Dir::Log "$1";
	APT::Architecture "$2";
	APT::Architectures { "$2"; };
	APT::Sandbox::User "";
	Acquire::Languages "none";
	CONFIG
}

[ "$*" != --settings ] || { settings_of_system; exit; }
mirror=${DEBIAN_MIRROR:-$(mirror_of_system)}
[ -n "$mirror" ] || die "the system's apt sources name no Debian mirror: set DEBIAN_MIRROR=URL" \
	"(or run apt-get update, if this is Debian)"
[ "$*" != --mirror ] || { echo "$mirror"; exit; }
[ $# -eq 3 ] || [ "$#,${4:-}" = 4,sources ] || die "usage: apt-root.sh DIR SUITE ARCHITECTURE [sources]"
[ -e "$keyring" ] || die "$keyring is missing; 'tools/install-deps.sh vmtest' installs it"
mkdir -p "$1"/{state/lists/partial,cache/archives/partial,etc}
root=$(realpath "$1")
: >"$root/status"
if [ $# -eq 3 ]; then
	echo "deb [arch=$3 signed-by=$keyring] $mirror $2 main"
else
	echo "deb-src [signed-by=$keyring] $mirror $2 main"
fi >"$root/etc/sources.list"
configuration "$root" "$3" >"$root/etc/apt.conf"
APT_CONFIG=$root/etc/apt.conf apt-get -qq update >&2 || die "reading the index of $2 from $mirror failed"
echo "$root/etc/apt.conf"
