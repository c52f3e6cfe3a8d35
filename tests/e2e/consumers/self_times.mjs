// SPDX-License-Identifier: BSD-2-Clause
//
// node self_times.mjs DIR FILE…: what DevTools' own engine, installed in DIR by install.sh, reads of .cpuprofile files and
// traces: {profiles: how many, times: {function: ms that its timeline has it on top of the stack}}, a line of JSON for each
// file. Without the last sample of each profile, which DevTools draws as long as the mean of all.

import {checkEachFile, engineModule, readJson} from './each_file.mjs';

const {CPUProfileDataModel} = (await engineModule('cpu_profile/cpu_profile.js')).CPUProfileDataModel;
const Trace = await engineModule('trace/trace.js');

async function profilesOf(document) {
	if (document.nodes)
		return [new CPUProfileDataModel(document)];
	const model = Trace.TraceModel.Model.createWithAllHandlers();
	await model.parse(document.traceEvents ?? document, {isCPUProfile: false, metadata: document.metadata ?? {}});
	const threads = [...model.parsedTrace().data.Samples.profilesInProcess.values()];
	return threads.flatMap(process => [...process.values()].map(thread => thread.parsedProfile));
}

async function print(file) {
	const times = {}, profiles = await profilesOf(readJson(file));
	for (const profile of profiles)
		profile.forEachFrame(() => {}, (depth, node, sample, start, total, self) => {
			times[node.functionName] = (times[node.functionName] ?? 0) + self;
		}, 0, profile.timestamps[profile.samples.length - 1]);
	console.log(JSON.stringify({profiles: profiles.length, times}));
}

await checkEachFile(print);
