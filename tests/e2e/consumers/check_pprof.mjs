// SPDX-License-Identifier: BSD-2-Clause
//
// node check_pprof.mjs DIR FILE…: does npm's pprof-format, installed in DIR by install.sh, read these files,
// and does it write the same again? Prints of each the sums of its samples, for the caller to compare.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import {createRequire} from 'node:module';
import path from 'node:path';
import zlib from 'node:zlib';

import {directory, checkEachFile} from './each_file.mjs';

const {Profile} = createRequire(path.resolve(directory, 'package.json'))('pprof-format');

function check(file) {
	let bytes = fs.readFileSync(file);
	if (file.endsWith('.gz')) {
		assert(bytes[0] === 0x1f && bytes[1] === 0x8b, 'it is not compressed');
		bytes = zlib.gunzipSync(bytes);
	}
	const profile = Profile.decode(bytes), again = Profile.decode(profile.encode());
	const plain = value => JSON.stringify(value, (_, v) => typeof v === 'bigint' ? v.toString() : v);
	assert.equal(plain(again), plain(profile), 'it is another file after a round trip');

	const text = index => profile.stringTable.strings[Number(index)];
	const types = profile.sampleType.map(t => `${text(t.type)}/${text(t.unit)}`);
	assert.deepEqual(types, ['samples/count', 'cpu/nanoseconds', 'wall/nanoseconds'].slice(0, types.length < 3 ? 2 : 3));
	const sums = types.map(() => 0n);
	for (const sample of profile.sample)
		sample.value.forEach((value, i) => sums[i] += BigInt(value));
	console.log(JSON.stringify({file, samples: Number(sums[0]), cpu_ns: Number(sums[1]),
		functions: profile.function.map(f => text(f.name))}));
}

await checkEachFile(check);
