#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# pyroscope.sh DIRECTORY [PORT]: Grafana Pyroscope, all of it in one process on the loopback address (port 4040), with its data
# in DIRECTORY. `make build/servers/pyroscope` builds it.
set -euo pipefail

[ $# -ge 1 ] || { echo "usage: $0 DIRECTORY [PORT]" >&2; exit 2; }
top=$(CDPATH='' cd -- "$(dirname -- "$0")/../../.." && pwd)
server=$top/build/servers/pyroscope
[ -x "$server" ] || { echo "$0: there is no $server: make build/servers/pyroscope" >&2; exit 1; }
mkdir -p "$1"
cd "$1"
# each of its parts needs its own address, or it looks for one that others can reach
rings=()
for part in ingester.lifecycler.addr distributor.ring.instance-addr compactor.ring.instance-addr \
	store-gateway.sharding-ring.instance-addr overrides-exporter.ring.instance-addr query-frontend.instance-addr \
	query-scheduler.ring.instance-addr; do
	rings+=("-$part=127.0.0.1")
done
exec "$server" -server.http-listen-address=127.0.0.1 -server.http-listen-port="${2:-4040}" \
	-server.grpc-listen-address=127.0.0.1 -memberlist.bind-addr=127.0.0.1 -memberlist.advertise-addr=127.0.0.1 \
	"${rings[@]}" -pyroscopedb.data-path="$PWD/data" -usage-stats.enabled=false -self-profiling.disable-push=true \
	-ingester.min-ready-duration=0s -log.level=warn
