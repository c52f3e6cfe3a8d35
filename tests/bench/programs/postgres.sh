#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# postgres.sh DIR: makes a database in DIR, starts its server, asks it three things, stops it. With the
# server's programs in PATH, as a user that is not root.
set -eu

ask() {
	psql -q -h "$1" -U postgres -d postgres -c "$2" >"$1/answer"
}

cd /
initdb -D "$1" -A trust -U postgres >/dev/null
pg_ctl -D "$1" -w -l "$1/log" -o "-k $1 -c listen_addresses=''" start >/dev/null
ask "$1" "CREATE TABLE t AS SELECT i, md5(i::text) AS m FROM generate_series(1, 200000) i"
ask "$1" "CREATE INDEX ON t (m)"
ask "$1" "SELECT count(*), max(a.m) FROM t a JOIN t b ON a.m = b.m WHERE a.i % 3 = 0"
pg_ctl -D "$1" -m immediate stop >/dev/null
