// SPDX-License-Identifier: BSD-2-Clause
//
// What a checker's command line is: DIR FILE…. Says what is wrong with which file, and exits with 1 if anything is.

import fs from 'node:fs';
import path from 'node:path';
import {pathToFileURL} from 'node:url';
import zlib from 'node:zlib';

const [directory, ...files] = process.argv.slice(2);
if (!directory || !files.length) {
	console.error(`usage: ${process.argv[1]} DIR FILE…`);
	process.exit(2);
}

export {directory};

// of DevTools' own engine, which expects a browser around it
export async function engineModule(name) {
	globalThis.DOMRect ??= class DOMRect {
		constructor(x = 0, y = 0, width = 0, height = 0) {
			Object.assign(this, {x, y, width, height});
		}
		static fromRect({x, y, width, height}) {
			return new DOMRect(x, y, width, height);
		}
	};
	return import(pathToFileURL(path.resolve(directory, 'node_modules/@paulirish/trace_engine/models', name)));
}

export function readJson(file) {
	const bytes = fs.readFileSync(file);
	return JSON.parse(file.endsWith('.gz') ? zlib.gunzipSync(bytes) : bytes);
}

export async function checkEachFile(check) {
	for (const file of files) {
		try {
			await check(file);
		} catch (error) {
			process.exitCode = 1; // exit() would cut off what a pipe has not taken yet
			console.error(`${file}: ${error.message}`);
		}
	}
}
