// SPDX-License-Identifier: BSD-2-Clause
//
// What a box is: its text, its colour, its figures.

import { frameColour, isDark, kindName, stateColour } from './colour.js';
import { FLAG, TIERS } from './data.js';
import { isPart, matches, profile, state, timeBehind, whole } from './shown.js';
import { duration, share } from './text.js';
import { ROOT, STATES_MAX, groupOf, hottestPlaces } from './tree.js';

const colours = new Map(); // by function and flags, of the present theme and mode

export function forgetColours() {
  colours.clear();
}

function groupText(number) {
  const threads = number - profile.processes.length, states = threads - profile.threads.length;
  if (states >= STATES_MAX) return profile.serviceName(states - STATES_MAX);
  if (states >= 0) return profile.stateName(states);
  if (threads >= 0) {
    const t = profile.threads[threads];
    return `${profile.threadName(t)} (tid ${t.tid})`;
  }
  return `${profile.processName(number)} (pid ${profile.processes[number]?.pid ?? 0})`;
}

export function textOf(fn) {
  if (fn >= 0) return profile.nameOf(fn);
  return fn < -1 ? groupText(groupOf(fn)) : 'all';
}

export function styleOf(node, picture) {
  const { fn, flags } = picture.tree, f = fn[node];
  if (f < 0 && picture.tree.grouping === 'state' && f < -1) return { text: textOf(f), colour: stateColour(groupOf(f) - profile.processes.length - profile.threads.length), dim: false, hot: false };
  if (f < 0) return { text: f < -1 ? textOf(f) : rootText(picture), colour: isDark() ? '#3a404b' : '#dfe3ea', dim: false, hot: false };
  const name = profile.nameOf(f);
  const key = f * 64 + (flags[node] & 63);
  let colour = colours.get(key);
  if (!colour) {
    const waits = profile.stateOf?.(f);
    colour = state.colours === 'difference' ? profile.difference.colourOf(f, isPart()) : waits ? stateColour(waits) : frameColour(state.colours, flags[node], name, profile.moduleOf(f), null, null);
    colours.set(key, colour);
  }
  return {
    text: flags[node] & FLAG.AMBIGUOUS ? `${name} ?` : name, colour,
    dim: matches !== null && !matches[f], hot: matches !== null && matches[f] === 1, inlined: (flags[node] & FLAG.INLINED) !== 0,
  };
}

export function rootText(picture) {
  const part = picture.sums;
  if (!part) return 'all';
  if (profile.difference) return `all: ${profile.difference.change(part, ROOT)}`;
  return state.measure === 'ticks' ? `all: ${profile.terms.count(part.ticks.total[ROOT])}` : `all: ${duration(part.cpu.total[ROOT])} of ${profile.terms.time}${behindText(', and ')}`;
}

// Beside a figure: "308 ms after the last samples"
export function behindText(before) {
  const ns = timeBehind();
  return ns ? `${before}${duration(ns)} after the last samples` : '';
}

// Of sums like whole().
export function figureOf(sum) {
  return profile.difference ? profile.difference.changeOf(sum.old, sum.new) : figure(sum.ticks, sum.cpu);
}

export function figure(ticks, cpu) {
  return profile.untimed && !cpu ? profile.terms.count(ticks) : `${profile.terms.count(ticks)}, ${duration(cpu)}`;
}

function placeOf(node, picture) {
  return picture.sums.counted ? placeText(hottestPlaces(profile, picture.sums, [node])[0]) : '';
}

export function placeText(frame) {
  return frame < 0 ? '' : `${profile.strings.shown(profile.frameFile[frame])}:${profile.frameLine[frame]}`;
}

export function facts(node, picture) {
  const { sums: part, tree: shown } = picture, all = whole();
  if (profile.difference) return [...profile.difference.facts(part, node, shown.fn[node], isPart()), ...identity(shown.fn[node], shown.flags[node])];
  const ticks = part.ticks.total[node], cpu = part.cpu.total[node];
  const list = [['total', `${figure(ticks, cpu)}`], ['self', figure(part.ticks.self[node], part.cpu.self[node])]];
  list.push(['share', `${share(part[state.measure].total[node], all[state.measure])} of what is selected`]);
  list.push(['95 % confidence', profile.terms.confidence(ticks, all.ticks) || 'unknown: the file has no number of samples']);
  if (node === ROOT && timeBehind()) list.push([`${profile.terms.time} after each thread's last sample`, `${duration(timeBehind())}, in no box`]);
  const above = shown.parent[node];
  if (node !== ROOT && above !== ROOT) list.push(['of its caller', share(part[state.measure].total[node], part[state.measure].total[above])]);
  return list.concat(identity(shown.fn[node], shown.flags[node]), [['source', placeOf(node, picture)]]).filter(([, text]) => text);
}

export function identity(f, flags) {
  if (f < 0) return [];
  if (profile.stateOf?.(f)) return [['state', profile.stateText(profile.stateOf(f))]];
  const tier = TIERS[flags >> FLAG.TIER] ?? '';
  const words = [kindName(flags & FLAG.CATEGORY), tier, flags & FLAG.INLINED ? 'inlined' : '', flags & FLAG.UNNAMED ? 'no symbol' : '',
    flags & FLAG.AMBIGUOUS ? 'may be another function: the address was reused' : ''];
  return [...profile.fullNamesOf(f).slice(0, 8).map((text) => ['method', text]), ['module', profile.moduleOf(f)], ['kind', words.filter(Boolean).join(', ')]];
}
