// SPDX-License-Identifier: BSD-2-Clause
// profiles.cjs DIR MODULES: profiles of @datadog/pprof of work of several kinds, DIR/node-NAME.pb.gz.
const fs = require("fs"), path = require("path"), zlib = require("zlib");
const [, , directory, modules] = process.argv;
const pprof = require(path.join(modules, "@datadog/pprof"));

const fibonacci = n => (n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2));
class Table {
	constructor() { this.rows = new Map(); }
	add(i) { this.rows.set("row " + (i % 500), i); }
	get sum() { return [...this.rows.values()].reduce((a, b) => a + b, 0); }
}
const work = {
	fibonacci: () => fibonacci(20),
	table: () => { const t = new Table(); for (let i = 0; i < 3000; i++) t.add(i); return t.sum; },
	sorted: () => Array.from({ length: 3000 }, (_, i) => (i * 7919) % 3001).sort((a, b) => a - b),
	encoded: () => JSON.parse(JSON.stringify({ a: Array(2000).fill("x"), b: [1, 2] })),
	matched: () => "a@b.com, ".repeat(2000).match(/(\w+)@(\w+)\.com/g),
	packed: () => zlib.deflateSync(Buffer.from("some text ".repeat(3000))),
};

(async () => {
	let lines = false;
	for (const [name, f] of Object.entries(work)) {
		lines = !lines;
		pprof.time.start({ durationMillis: 1000, intervalMicros: lines ? 1000 : 5000, lineNumbers: lines });
		for (const begin = process.cpuUsage(); process.cpuUsage(begin).user < 200000;) f();
		fs.writeFileSync(path.join(directory, `node-${name}.pb.gz`), await pprof.encode(pprof.time.stop()));
	}
})();
