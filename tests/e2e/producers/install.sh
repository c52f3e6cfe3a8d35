#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# install.sh DIR: put pinned profilers of PyPI and Maven into DIR, once: DIR/python for PYTHONPATH (py-spy,
# pyinstrument, zprofile), DIR/java/async-profiler.jar, its agent DIR/java/libasyncProfiler.so, and
# DIR/java/jfr-converter.jar. Those of npm are in consumers/package.json. DIR/stamp is the install.sh that made it.
set -eu

[ $# -eq 1 ] || { echo "usage: install.sh DIR" >&2; exit 2; }
case $(uname -m) in
x86_64) platform=linux-x64 ;;
aarch64) platform=linux-arm64 ;;
*)
	echo "install.sh: no profilers for $(uname -m)" >&2
	exit 1
	;;
esac
mkdir -p "$1"
dir=$(CDPATH='' cd -- "$1" && pwd)
! cmp -s "$0" "$dir/stamp" || exit 0

rm -rf "$dir/stamp" "$dir/python" "$dir/java"
mkdir "$dir/java"
/usr/bin/python3 -m pip install -q --no-deps --disable-pip-version-check --root-user-action=ignore --target "$dir/python" \
	py-spy==0.4.3 pyinstrument==5.1.3 zprofile==1.0.13 protobuf==7.36.2

cat >"$dir/java/pom.xml" <<-'POM'
	<project>
		<modelVersion>4.0.0</modelVersion>
		<groupId>local</groupId> <artifactId>profilers</artifactId> <version>1</version>
		<dependencies>
			<dependency>
				<groupId>tools.profiler</groupId> <artifactId>async-profiler</artifactId> <version>4.1</version>
			</dependency>
			<dependency>
				<groupId>tools.profiler</groupId> <artifactId>jfr-converter</artifactId> <version>4.1</version>
			</dependency>
		</dependencies>
	</project>
POM
(cd "$dir/java" && mvn -q dependency:copy-dependencies -DoutputDirectory=. -Dmdep.stripVersion=true)
python3 -m zipfile -e "$dir/java/async-profiler.jar" "$dir/java/agent"
cp "$dir/java/agent/$platform/libasyncProfiler.so" "$dir/java/"
rm -rf "$dir/java/agent"
cp "$0" "$dir/stamp"
