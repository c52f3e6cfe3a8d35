// SPDX-License-Identifier: BSD-2-Clause
//
// What a menu offers: at a box, a row of the table, a thread or its group.

import { textOf } from './boxes.js';
import { change, codeOf, filterBy, sandwichOf } from './change.js';
import { expressionOf, globOf } from './filter.js';
import { tip } from './hover.js';
import { openMenu } from './menu.js';
import { idOfContainer } from './owners.js';
import { copyLink, copyText, stackText } from './share.js';
import { decoded, profile, rangeOf, state, sums, tree, views } from './shown.js';
import { ROOT, STATES_MAX, groupOf } from './tree.js';
import { chart, flame } from './views.js';

// What clauses can say of a function and of the file with its code.
function functionItems(f) {
  if (f < 0 || profile.stateOf?.(f)) return [];
  const { strings, functionName, frameFunction, framePath } = profile, items = [['Callers and callees', () => sandwichOf(f)], ...(views.some(([view]) => view === 'code') ? [['Code', () => codeOf(f)]] : [])];
  if (decoded.isGathered?.(f)) return [...items, ['Show its addresses', () => change({ opened: [...state.opened, f] })]];
  const gathered = decoded.gatheredIn?.[f];
  if (gathered && state.opened.includes(gathered)) items.push([`One box for ${profile.nameOf(gathered)}`, () => change({ opened: state.opened.filter((other) => other !== gathered) })]);
  if (decoded.words.difference) return items;
  const name = expressionOf(strings.raw[functionName[f]]), path = framePath[frameFunction.indexOf(f)];
  items.push(null, ['Focus on it', () => filterBy(['focus', name])], ['Drop samples with it', () => filterBy(['ignore', name])], ['Hide it', () => filterBy(['hide', name])]);
  items.push(['Show stacks from it on', () => filterBy(['show-from', name])], ['Collapse calls of itself', () => filterBy(['collapse', name])]);
  if (!path) return items;
  const file = expressionOf(strings.raw[path - 1]), module = profile.moduleOf(f);
  return [...items, [`Hide ${module}`, () => filterBy(['hide', file])], [`Collapse ${module}`, () => filterBy(['collapse', file])]];
}

const GROUPS = ['service', 'container', 'unit', 'user'];
const plurals = { thread: 'threads', process: 'processes' };

// What stands for one process or thread, and what the menu calls it: its number, or its name if fewer have that. A program
// that was executed, another host or a later process can have the same number.
function nameOne(kind, [what, number], [text, name], all, hasNumber, hasName) {
  const numbered = number ? all.filter(hasNumber).length : Infinity, named = all.filter(hasName).length;
  if (numbered <= Math.max(named, 1)) return [numbered > 1 ? `the ${numbered} ${plurals[kind]} with ${what} ${number}` : `${kind} ${text}`, String(number)];
  return [named > 1 ? `the ${named} ${plurals[kind]} ${profile.strings.shown(name)}` : `${kind} ${text}`, globOf(profile.strings.raw[name])];
}

// Only the samples of a process or thread, and of what they belong to, or all others.
function ownerItems(p, t, kinds = ['thread', 'process', ...GROUPS]) {
  const { processes, strings } = profile, process = processes[p], threads = profile.threads.filter(({ first, end }) => end > first);
  if (decoded.words.difference) return [];
  const items = [], others = [], add = (kind, [what, clause]) => {
    items.push([`Only ${what}`, () => filterBy([kind, clause])]);
    others.push([`Drop ${what}`, () => filterBy([kind, `!${clause}`])]);
  };
  if (t && kinds.includes('thread')) add('thread', nameOne('thread', ['tid', t.tid], [profile.threadName(t), t.name], threads, ({ tid }) => tid === t.tid, ({ name }) => name === t.name));
  if (!process) return [...items, ...others];
  if (kinds.includes('process')) {
    const shown = [...new Set(threads.map((thread) => processes[thread.process]))];
    add('process', nameOne('process', ['pid', process.pid], [profile.processName(p), process.names.name], shown, ({ pid }) => pid === process.pid, ({ names }) => names.name === process.names.name));
  }
  for (const kind of GROUPS.filter((each) => kinds.includes(each))) {
    const text = process.names[kind], id = kind === 'container' && idOfContainer(profile, process.names);
    if (text || id) add(kind, [`${kind} ${[text && strings.shown(text), id].filter(Boolean).join(', ')}`, id || globOf(strings.raw[text])]);
  }
  return [...items, ...others];
}

function groupItems(number) {
  const threads = number - profile.processes.length, states = threads - profile.threads.length;
  if (states >= STATES_MAX) return ownerItems(states - STATES_MAX, null, ['service']);
  if (states >= 0) return [];
  return threads >= 0 ? ownerItems(profile.threads[threads].process, profile.threads[threads]) : ownerItems(number, null);
}

// Of what is selected: the process with all of the samples below the nodes that are `inside`, and its thread, if it is one.
// Where all threads have such samples, none of them is "only".
function ownersOf({ leaf, map }, inside) {
  const owners = profile.threads.filter((t) => {
    const [from, to] = rangeOf(t);
    for (let i = from; i < to; i++) if (inside[map ? map[leaf[i]] : leaf[i]]) return true;
    return false;
  });
  const [first] = owners, isAll = owners.length === profile.threads.filter((t) => t.end > t.first).length;
  if (!first || isAll || owners.some((t) => t.process !== first.process)) return [];
  return ownerItems(first.process, owners.length === 1 ? first : null);
}

// The nodes of a tree at and below those that are `chosen(node)`.
function below({ parent, count }, chosen) {
  const inside = new Uint8Array(count);
  for (let i = 1; i < count; i++) if (inside[parent[i]] || chosen(i)) inside[i] = 1;
  return inside;
}

// Whose a box is: its thread in the order of time, who alone has samples of it, or what it is in by the grouping.
function boxOwners(picture, node) {
  const { tree: shown } = picture;
  if (picture === chart) return ownerItems(chart.thread.process, chart.thread);
  if (!shown.leaf) return functionOwners(shown.fn[node]);
  const items = ownersOf(shown, below(shown, (i) => i === node));
  let group = node;
  while (group !== ROOT && shown.fn[group] >= 0) group = shown.parent[group];
  return items.length || group === ROOT ? items : groupItems(groupOf(shown.fn[group]));
}

function functionOwners(f) {
  return ownersOf(tree, below(tree, (i) => tree.fn[i] === f));
}

const withLine = (items) => (items.length ? [null, ...items] : []);

export function boxMenu(picture, node, x, y) {
  const f = picture.tree.fn[node], name = textOf(f), isGroup = f < -1, items = isGroup ? groupItems(groupOf(f)) : [...functionItems(f), ...withLine(boxOwners(picture, node))];
  tip(null);
  openMenu(x, y, name, [...items, ...(items.length ? [null] : []), ['Copy name', () => copyText(name, 'the name')],
    ['Copy stack with lines', () => copyText(stackText(picture, node), 'the stack')], ['Copy link', copyLink]]);
}

// The node with most of a function's samples.
function heaviestNode(f) {
  const { total } = sums[state.measure];
  let best = ROOT;
  for (let i = 1; i < tree.count; i++) if (tree.fn[i] === f && (best === ROOT || total[i] > total[best])) best = i;
  return best;
}

// Of a row of a table, whose function may be in no box: that of a lock.
export function functionMenu(f, x, y) {
  const name = profile.nameOf(f), node = heaviestNode(f);
  openMenu(x, y, name, [...functionItems(f), ...withLine(functionOwners(f)), null, ['Copy name', () => copyText(name, 'the name')],
    ...(node === ROOT ? [] : [['Copy heaviest stack with lines', () => copyText(stackText(flame, node), 'the stack')]]), ['Copy link', copyLink]]);
}

// `group`: {kind, name} of what it belongs to, instead of the thread.
export function threadMenu(t, x, y, group) {
  const name = group?.name ?? profile.threadName(t), items = ownerItems(t.process, t, group && [group.kind]);
  openMenu(x, y, group ? name : `${name} (tid ${t.tid})`, [...items, ...(items.length ? [null] : []), ['Copy name', () => copyText(name, 'the name')], ['Copy link', copyLink]]);
}
