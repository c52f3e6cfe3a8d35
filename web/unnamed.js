// SPDX-License-Identifier: BSD-2-Clause
//
// Code without a symbol has its address as its name. A process may have thousands of such addresses in JIT code, of which
// each would be a box of its own. They are one box of the process until it is opened; the table of functions has them all.

import { FLAG, grown } from './data.js';

const ADDRESS = /^0x[0-9a-f]+$/;
const JIT = 4; // of the categories

// The addresses by whose they are: {functions, frames, name, first} of each.
function unnamedGroups(profile) {
  const { frameFunction, frameFlags, frameOwner, functionModule, processes } = profile, groups = new Map();
  for (let frame = 0; frame < frameFunction.length; frame++) {
    const f = frameFunction[frame];
    if (!(frameFlags[frame] & FLAG.UNNAMED) || !ADDRESS.test(profile.nameOf(f))) continue;
    const owner = processes[frameOwner[frame] - 1]?.names.name, key = owner === undefined ? `module ${functionModule[f]}` : `process ${owner}`;
    if (!groups.has(key)) groups.set(key, { functions: new Set(), frames: [], name: owner ?? functionModule[f], first: frame });
    groups.get(key).functions.add(f);
    groups.get(key).frames.push(frame);
  }
  return [...groups.values()].filter(({ functions }) => functions.size > 1);
}

// Adds a function for each group. `gathered` has it by frame, `gatheredIn` by function; 0: the code has a name of its own.
export function gatherUnnamed(profile) {
  const groups = unnamedGroups(profile), first = profile.functionName.length, { raw } = profile.strings, encoder = new TextEncoder();
  if (!groups.length) return;
  profile.gathered = new Int32Array(profile.frameFunction.length);
  profile.gatheredIn = new Int32Array(first);
  groups.forEach(({ functions, frames }, i) => {
    for (const frame of frames) profile.gathered[frame] = first + i;
    for (const f of functions) profile.gatheredIn[f] = first + i;
  });
  const names = groups.map((group) => {
    const isJit = (profile.frameFlags[group.first] & FLAG.CATEGORY) === JIT;
    return raw.push(Uint8Array.from([...encoder.encode(isJit ? 'JIT code of ' : 'code without a symbol of '), ...raw[group.name]])) - 1;
  });
  profile.functionName = grown(profile.functionName, names);
  profile.functionModule = grown(profile.functionModule, groups.map((group) => profile.functionModule[profile.frameFunction[group.first]]));
  profile.functionFlags = grown(profile.functionFlags, groups.map((group) => profile.frameFlags[group.first]));
  profile.isGathered = (f) => f >= first && f < first + groups.length;
}
