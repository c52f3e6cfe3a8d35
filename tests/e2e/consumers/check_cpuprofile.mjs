// SPDX-License-Identifier: BSD-2-Clause
//
// node check_cpuprofile.mjs DIR FILE…: does DevTools' own engine, installed in DIR by install.sh,
// read these .cpuprofile files, and does it see in them what they say?

import assert from 'node:assert/strict';

import {checkEachFile, engineModule, readJson} from './each_file.mjs';

const {CPUProfileDataModel} = (await engineModule('cpu_profile/cpu_profile.js')).CPUProfileDataModel;

function visit(node, depth, seen) {
	seen.count++;
	seen.self += node.self;
	seen.depth = Math.max(seen.depth, depth);
	assert(Number.isFinite(node.self) && node.self >= 0, `self time ${node.self}`);
	assert(Number.isFinite(node.total) && node.total >= node.self, `total time ${node.total}`);
	for (const child of node.children) {
		assert.equal(child.parent, node);
		visit(child, depth + 1, seen);
	}
}

function check(file) {
	const profile = readJson(file);
	const written = structuredClone(profile);
	const model = new CPUProfileDataModel(profile);

	assert.equal(model.samples.length, written.samples.length, 'samples were dropped');
	assert.deepEqual(model.samples, written.samples, 'samples were replaced or sorted');
	assert.equal(model.timestamps.length, written.samples.length + 1, 'timestamps');
	for (let i = 0, time = written.startTime; i < written.samples.length; i++) {
		time += written.timeDeltas[i];
		assert(Math.abs(model.timestamps[i] - time / 1000) < 1e-6, `time of sample ${i}`);
	}
	assert.equal(model.totalHitCount, written.samples.length, 'hit counts');
	assert.equal(model.profileHead.functionName, '(root)');

	const seen = {count: 0, self: 0, depth: 0};
	visit(model.profileHead, 0, seen);
	assert.equal(seen.count, written.nodes.length, 'nodes were dropped');
	const duration = (written.endTime - written.startTime) / 1000;
	assert(Math.abs(seen.self - duration) <= 1e-6 * (duration + 1), `self times ${seen.self} of ${duration} ms`);

	// calls open and close, in time order, and the last one closes at the end
	let open = 0, frames = 0, last = -Infinity;
	model.forEachFrame(
		(depth, node, start) => {
			open++;
			frames++;
			assert(Number.isFinite(start) && start >= last, 'frames out of order');
			last = start;
		},
		(depth, node, start, total, self) => {
			open--;
			assert(Number.isFinite(total) && total >= 0 && Number.isFinite(self), 'frame times');
		});
	assert.equal(open, 0, 'frames that never close');
	const idle = written.samples.filter(id => written.nodes[id - 1].callFrame.functionName === '(idle)').length;
	assert.equal(written.samples.length - idle, written.$sysprof.samples, 'samples of the thread');
	console.log(`${file}: ${seen.count} nodes, depth ${seen.depth}, ${written.samples.length} samples ` +
		`(${idle} idle), ${frames} frames drawn, ${duration.toFixed(3)} ms`);
}

await checkEachFile(check);
