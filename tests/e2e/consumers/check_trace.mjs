// SPDX-License-Identifier: BSD-2-Clause
//
// node check_trace.mjs DIR FILE…: does DevTools' own engine, installed in DIR by install.sh, read these
// traces (.trace.json), does it see every thread in them, and as much time of each function as the file has?

import assert from 'node:assert/strict';

import {checkEachFile, engineModule, readJson} from './each_file.mjs';

const Trace = await engineModule('trace/trace.js');

// {"pid:tid": {samples, frames: {node id: frame}, span, list of [node, begin, end]}}
function threadsOf(events) {
	const threads = new Map(), byId = new Map();
	for (const event of events) {
		const key = `${event.pid}:${event.tid}`;
		if (event.ph === 'X' && event.cat === 'sysprof.wait')
			threads.get(key).waits = true; // a state of the thread, inside its span
		else if (event.ph === 'X') {
			threads.set(key, {span: event, nodes: new Map(), samples: [], lines: 0});
		} else if (event.name === 'Profile') {
			byId.set(event.id, {thread: threads.get(key), time: event.ts});
		} else if (event.name === 'ProfileChunk') {
			const profile = byId.get(event.id), data = event.args.data;
			for (const node of data.cpuProfile.nodes)
				profile.thread.nodes.set(node.id, node);
			data.cpuProfile.samples.forEach((node, i) => {
				profile.time += data.timeDeltas[i];
				profile.thread.samples.push([node, profile.time]);
				profile.thread.lines += data.lines[i] > 0;
			});
		}
	}
	return threads;
}

const isMeta = frame => frame.scriptId === '0' && ['(root)', '(idle)'].includes(frame.functionName);

// µs of each function on top of the stack, a sample lasting until the next one or the end of the span
function selfTimes(thread) {
	const times = new Map(), end = thread.span.ts + thread.span.dur;
	thread.samples.forEach(([id, begin], i) => {
		const frame = thread.nodes.get(id).callFrame;
		const until = i + 1 < thread.samples.length ? thread.samples[i + 1][1] : end;
		if (!isMeta(frame))
			times.set(frame.functionName, (times.get(frame.functionName) ?? 0) + until - begin);
	});
	return times;
}

function seenTimes(thread) {
	const times = new Map();
	for (const entry of thread.entries) {
		if (entry.ph === 'X' && ['devtools.timeline', 'sysprof.wait'].includes(entry.cat))
			continue; // the span, and states
		const node = thread.entryToNode.get(entry), name = entry.callFrame?.functionName;
		assert(name !== undefined && Number.isFinite(entry.dur) && entry.dur >= 0, 'an entry without a time');
		times.set(name, (times.get(name) ?? 0) + (node?.selfTime ?? 0));
	}
	return times;
}

async function check(file) {
	const document = readJson(file), events = document.traceEvents;
	const written = threadsOf(structuredClone(events));
	const model = Trace.TraceModel.Model.createWithAllHandlers();
	await model.parse(events, {isCPUProfile: false, metadata: document.metadata});
	const {data} = model.parsedTrace();
	assert(data.Meta.traceIsGeneric, 'it is taken for a trace of a page');
	const {min, max, range} = data.Meta.traceBounds;
	assert(Number.isFinite(min) && Number.isFinite(max) && range > 0, `bounds ${min} to ${max}`);
	const spans = [...written.values()].map(thread => thread.span);
	assert.equal(min, spans.reduce((a, s) => Math.min(a, s.ts), Infinity), 'it begins elsewhere');
	assert.equal(max, spans.reduce((a, s) => Math.max(a, s.ts + s.dur), 0), 'it ends elsewhere');

	const seen = Trace.Handlers.Threads.threadsInTrace(data);
	assert.equal(seen.length, written.size, `${seen.length} threads are shown, ${written.size} were written`);
	let entries = 0, lines = 0;
	for (const thread of seen) {
		const key = `${thread.pid}:${thread.tid}`, ours = written.get(key);
		assert(ours && thread.entries.length > 0, `thread ${key}`);
		entries += thread.entries.length;
		if (!ours.samples.length)
			continue;
		const parsed = data.Samples.profilesInProcess.get(thread.pid)?.get(thread.tid)?.parsedProfile;
		assert.deepEqual(parsed.samples, ours.samples.map(s => s[0]), `thread ${key}: samples were dropped`);
		assert.equal(parsed.lines.filter(l => l > 0).length, ours.lines);
		lines += ours.lines;
		const wanted = selfTimes(ours), shown = seenTimes(thread);
		for (const [name, time] of wanted) {
			// the engine adds up doubles of milliseconds
			const got = shown.get(name) ?? 0;
			// a wait ends the function that was sampled before it
			assert((ours.waits && got < time) || Math.abs(got - time) <= 2 + ours.samples.length * 0.01,
				`thread ${key}: ${name}: ${got} µs are shown, ${time} were written`);
		}
		for (const name of shown.keys())
			assert(wanted.has(name) || shown.get(name) <= 2 + ours.samples.length * 0.01,
				`thread ${key}: ${name} is shown with ${shown.get(name)} µs`);
	}
	console.log(`${file}: ${seen.length} threads, ${entries} entries, ${lines} lines, ${(range / 1e6).toFixed(3)} s`);
}

await checkEachFile(check);
