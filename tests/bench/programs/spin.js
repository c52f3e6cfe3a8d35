// SPDX-License-Identifier: BSD-2-Clause
// spin.js SECONDS: calls, and JSON there and back.
const end = Date.now() + 1000 * process.argv[2];
const f = n => n < 2 ? n : f(n - 1) + f(n - 2);
while (Date.now() < end) {
	f(20);
	JSON.parse(JSON.stringify([...Array(1000).keys()]));
}
