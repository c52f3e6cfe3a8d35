// SPDX-License-Identifier: BSD-2-Clause
//
// Call trees. The profile's own nodes are frames (a function at a place in the source); what is shown are
// functions, merged by name and module as in `sysprof report`, below the process or thread if one wants.
//
// The merged tree is made of the profile's nodes. That of a grouping has the nodes of the merged one again for each
// group with rows of them. `leaf` has a slot for each row: a profile's node in the merged tree, whose node `map` has; a node
// of the tree itself in others. Both are made once; a selection only changes the sums. In all arrays a parent comes
// before its children, so that one pass backwards adds up a tree.

import { FLAG, grown } from './data.js';

export const ROOT = 0;
const GROUP = -2; // function numbers below -1 are groups: -2 - number
export const STATES_MAX = 64; // numbers of groups: processes, threads, states, services by their first process

// Nodes, one after the other.
class NodeList {
  constructor(capacity) {
    this.count = 1;
    this.resize(Math.max(1024, capacity));
    this.fn[0] = -1;
  }

  resize(capacity) {
    const grow = (old) => {
      const array = new Int32Array(capacity);
      if (old) array.set(old);
      return array;
    };
    this.parent = grow(this.parent);
    this.fn = grow(this.fn);
    this.flags = grow(this.flags);
    this.depth = grow(this.depth);
  }

  add(parent, fn, flags) {
    if (this.count === this.parent.length) this.resize(this.count * 2);
    const node = this.count++;
    this.parent[node] = parent;
    this.fn[node] = fn;
    this.flags[node] = flags;
    this.depth[node] = this.depth[parent] + 1;
    return node;
  }

  finish() {
    const n = this.count;
    return { count: n, parent: this.parent.subarray(0, n), fn: this.fn.subarray(0, n), flags: this.flags.subarray(0, n), depth: this.depth.subarray(0, n) };
  }
}

// By node, its first child and its next sibling. Made when they are first needed, as outermostOf(): of a merged tree below
// groups they are not.
export function childrenOf(tree) {
  if (tree.children) return tree.children;
  const { parent, count } = tree, first = new Int32Array(count), next = new Int32Array(count);
  for (let i = count - 1; i > 0; i--) {
    const up = parent[i];
    next[i] = first[up];
    first[up] = i;
  }
  return (tree.children = { first, next });
}

// Nodes that are found by (parent, function).
class Grower extends NodeList {
  resize(capacity) {
    super.resize(capacity);
    this.slots = new Int32Array(2 ** Math.ceil(Math.log2(capacity * 2)));
    for (let i = 1; i < this.count; i++) this.slots[this.find(this.parent[i], this.fn[i])] = i;
  }

  find(parent, fn) {
    const mask = this.slots.length - 1;
    let at = (Math.imul(parent, 0x9e3779b1) ^ Math.imul(fn + 7, 0x85ebca6b)) >>> 0;
    for (at = (at ^ (at >>> 15)) & mask; ; at = (at + 1) & mask) {
      const node = this.slots[at];
      if (!node || (this.parent[node] === parent && this.fn[node] === fn)) return at;
    }
  }

  child(parent, fn, flags) {
    const { slots } = this, at = this.find(parent, fn), node = slots[at];
    if (!node) {
      const made = this.add(parent, fn, flags);
      if (slots === this.slots) slots[at] = made; // else it is in the larger one
      return made;
    }
    if (!(flags & FLAG.INLINED)) this.flags[node] &= ~FLAG.INLINED;
    this.flags[node] |= flags & FLAG.AMBIGUOUS;
    return node;
  }
}

// Nodes whose function is not above them already: adding them up counts recursion once.
export function outermostOf(tree) {
  return (tree.outermost ??= tree.merged ? takeOutermost(outermostOf(tree.merged), tree) : markOutermost(tree));
}

function takeOutermost(known, { origin, count }) {
  const outermost = new Uint8Array(count);
  for (let i = 1; i < count; i++) outermost[i] = known[origin[i]];
  return outermost;
}

function markOutermost(tree) {
  const outermost = new Uint8Array(tree.count), { parent, fn, functions } = tree, { first, next } = childrenOf(tree);
  const active = new Int32Array(functions);
  let node = ROOT;
  for (;;) {
    let to = first[node];
    while (!to && node !== ROOT) {
      if (fn[node] >= 0) active[fn[node]]--;
      to = next[node];
      node = parent[node];
    }
    if (!to) return outermost;
    node = to;
    const f = fn[node];
    if (f < 0) continue;
    outermost[node] = active[f] ? 0 : 1;
    active[f]++;
  }
}

export function groupOf(fn) {
  return fn < -1 ? GROUP - fn : -1;
}

// Of each group: its node, and the ranges of rows [thread, from, to] below it. By state: runs of rows of one state.
function groupsOf(profile, grouping, nodes) {
  const groups = new Map(), { processes, threads, state } = profile;
  for (const t of threads) {
    if (grouping !== 'state') {
      const key = grouping === 'process' ? t.process : grouping === 'service' ? profile.serviceOf(t.process) : t.number;
      if (!groups.has(key)) groups.set(key, []);
      if (t.end > t.first) groups.get(key).push([t, t.first, t.end]);
      continue;
    }
    for (let i = t.first, end; i < t.end; i = end) {
      const key = state ? state[i] : 1;
      for (end = i + 1; end < t.end && (!state || state[end] === key);) end++;
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push([t, i, end]);
    }
  }
  const list = [], ofProcesses = new Map(), states = processes.length + threads.length;
  const processNode = (p) => {
    if (!ofProcesses.has(p)) ofProcesses.set(p, nodes.add(ROOT, GROUP - p, 0));
    return ofProcesses.get(p);
  };
  for (const [key, ranges] of groups) {
    if (!ranges.length) continue;
    if (grouping === 'state') list.push([nodes.add(ROOT, GROUP - states - key, 0), ranges]);
    else if (grouping === 'service') list.push([nodes.add(ROOT, GROUP - states - STATES_MAX - key, 0), ranges]);
    else if (grouping === 'process') list.push([processNode(key), ranges]);
    else list.push([nodes.add(processNode(ranges[0][0].process), GROUP - processes.length - key, 0), ranges]);
  }
  return list;
}

// recursion: a function that calls itself is one node; `gathered`: by frame the function that stands for it
// (web/unnamed.js), or null.
export function buildMerged(profile, recursion, gathered) {
  const { nodeParent, nodeFrame, frameFunction, frameFlags } = profile;
  const grower = new Grower(nodeParent.length), map = new Int32Array(nodeParent.length);
  for (let i = 1; i < map.length; i++) {
    const parent = map[nodeParent[i]], frame = nodeFrame[i], own = frameFunction[frame], fn = gathered?.[frame] || own;
    map[i] = (recursion || fn !== own) && grower.fn[parent] === fn ? parent : grower.child(parent, fn, frameFlags[frame]);
  }
  return Object.assign(grower.finish(), { grouping: 'merged', map, slots: map.length, functions: profile.functionName.length, leaf: profile.node, ranges: null });
}

// Makes the trees of groups out of the merged one.
class Regrouping {
  constructor(merged, rowNode) {
    Object.assign(this, { merged, rowNode, nodes: new NodeList(merged.count + (merged.count >> 3)), leaf: new Int32Array(rowNode.length) });
    this.memo = new Int32Array(merged.count); // by merged node: that of the last group with it
    this.origin = new Int32Array(this.nodes.parent.length); // by node
    this.path = [];
  }

  // The nodes of rows [from, to) of a group, whose own ones begin at `begin`. A call for each range: the loop of a call
  // for all of them would run unoptimized.
  addRows(group, begin, from, to) {
    const { rowNode, leaf, memo, merged: { map } } = this;
    for (let i = from; i < to; i++) {
      const at = map[rowNode[i]], node = memo[at];
      leaf[i] = node >= begin ? node : this.addPath(group, begin, at);
    }
  }

  addPath(group, begin, leaf) {
    const { memo, merged, nodes, path } = this;
    let at = leaf;
    for (; at !== ROOT && memo[at] < begin; at = merged.parent[at]) path.push(at);
    let node = at === ROOT ? group : memo[at];
    while (path.length) {
      at = path.pop();
      node = memo[at] = nodes.add(node, merged.fn[at], merged.flags[at]);
      if (node >= this.origin.length) this.origin = grown(this.origin, new Int32Array(this.origin.length));
      this.origin[node] = at;
    }
    return node;
  }

  finish() {
    const { nodes, leaf, merged } = this;
    return Object.assign(nodes.finish(), { map: null, slots: nodes.count, leaf, merged, origin: this.origin.subarray(0, nodes.count) });
  }
}

// grouping: "service", "process", "thread" or "state"; `merged`: the tree of the same nodes. A node's place in it: `origin`.
export function buildGrouped(profile, grouping, merged) {
  const regrouping = new Regrouping(merged, rowNodes(profile, grouping)), { nodes } = regrouping, ranges = new Map();
  for (const [group, own] of groupsOf(profile, grouping, nodes)) {
    const begin = nodes.count; // what memo has below it is another group's
    ranges.set(group, own);
    for (const [, from, to] of own) regrouping.addRows(group, begin, from, to);
  }
  return Object.assign(regrouping.finish(), { grouping, ranges });
}

// By state, no leaf repeats it.
function rowNodes(profile, grouping) {
  return (grouping === 'state' && profile.plainNode) || profile.node;
}

// {measure: {self, total}}, of `count` nodes or functions.
function newSums(measures, count) {
  return Object.fromEntries(measures.map((m) => [m, { self: new Float64Array(count), total: new Float64Array(count) }]));
}

function addUp({ parent, count }, { self, total }) {
  total.set(self);
  for (let i = count - 1; i > 0; i--) total[parent[i]] += total[i];
}

// What the slots have of one of `stride` measures, by node.
function addSlots(slots, stride, which, map, self) {
  const size = slots.length / stride;
  if (map) for (let i = 0, at = which; i < size; i++, at += stride) self[map[i]] += slots[at];
  else for (let i = 0, at = which; i < size; i++, at += stride) self[i] = slots[at];
}

function addRows(profile, leaf, slots, from, to, sign) {
  const { ticks, weight } = profile, more = profile.columns, stride = 2 + more.length;
  for (let i = from; i < to; i++) {
    const at = stride * leaf[i];
    slots[at] += sign * (ticks ? ticks[i] : 1);
    slots[at + 1] += sign * weight[i];
    for (let k = 0; k < more.length; k++) slots[at + 2 + k] += sign * more[k][i];
  }
}

// `ranges(thread)`: [from, to), the rows that count. With the tally `before` of the same tree only what has changed
// since is looked at: all are whole numbers, so nothing is rounded.
export function tally(profile, tree, ranges, before) {
  const { leaf, map } = tree, { measures } = profile, stride = measures.length;
  const known = before?.tree === tree ? before : null;
  const slots = known?.slots ?? new Float64Array(stride * tree.slots); // all measures of each
  const counted = profile.threads.map((t) => {
    const [from, to] = ranges(t), [oldFrom, oldTo] = known?.counted[t.number] ?? [from, from];
    if (from < oldTo && oldFrom < to) {
      addRows(profile, leaf, slots, oldFrom, from, -1);
      addRows(profile, leaf, slots, to, oldTo, -1);
      addRows(profile, leaf, slots, from, oldFrom, 1);
      addRows(profile, leaf, slots, oldTo, to, 1);
    } else {
      addRows(profile, leaf, slots, oldFrom, oldTo, -1);
      addRows(profile, leaf, slots, from, to, 1);
    }
    return [from, to];
  });
  const result = { tree, measures, ...newSums(measures, tree.count), slots, counted };
  measures.forEach((m, k) => {
    addSlots(slots, stride, k, map, result[m].self);
    addUp(tree, result[m]);
  });
  return result;
}

// By profile's node: the samples with it in what is selected, below a group of the tree or, without groups, in all.
function nodeTotals(profile, { tree, counted }, group) {
  const { nodeParent, ticks } = profile, nodes = rowNodes(profile, tree.grouping), totals = new Float64Array(nodeParent.length);
  for (const [t, first, end] of tree.ranges?.get(group) ?? profile.threads.map((t) => [t, t.first, t.end])) {
    const [from, to] = counted[t.number];
    for (let i = Math.max(from, first); i < Math.min(to, end); i++) totals[nodes[i]] += ticks ? ticks[i] : 1;
  }
  for (let i = totals.length - 1; i > 0; i--) totals[nodeParent[i]] += totals[i];
  return totals;
}

// Where in the source the nodes of a path were: of each a frame of the line of most of its samples, or -1.
export function hottestPlaces(profile, tally, path) {
  const { tree } = tally, { map } = tree.merged ?? tree, { nodeFrame, frameFile, frameLine } = profile;
  const slot = new Int32Array((tree.merged ?? tree).count), best = path.map(() => -1), most = path.map(() => 0), lines = path.map(() => new Map());
  let group = path[0] ?? ROOT;
  while (group !== ROOT && !tree.ranges?.has(group)) group = tree.parent[group];
  tally.nodeTotals ??= new Map();
  if (!tally.nodeTotals.has(group)) tally.nodeTotals.set(group, nodeTotals(profile, tally, group));
  const totals = tally.nodeTotals.get(group);
  path.forEach((node, i) => (slot[tree.origin ? tree.origin[node] : node] = i + 1));
  slot[ROOT] = 0;
  for (let i = 1; i < map.length; i++) {
    const at = slot[map[i]] - 1;
    if (at < 0 || !totals[i]) continue;
    const frame = nodeFrame[i], line = frameFile[frame] * 2 ** 32 + frameLine[frame], sum = (lines[at].get(line) ?? 0) + totals[i]; // of its instructions
    lines[at].set(line, sum);
    if (sum <= most[at]) continue;
    most[at] = sum;
    best[at] = frame;
  }
  return best.map((at) => (at >= 0 && profile.frameLine[at] ? at : -1));
}

// Rows by function: {self, total} of each measure.
export function functionSums(profile, tally) {
  const { tree, measures } = tally, outermost = outermostOf(tree);
  const rows = newSums(measures, profile.functionName.length);
  for (const m of measures) {
    const { self, total } = rows[m];
    for (let i = 1; i < tree.count; i++) {
      const f = tree.fn[i];
      if (f < 0) continue;
      self[f] += tally[m].self[i];
      if (outermost[i]) total[f] += tally[m].total[i];
    }
  }
  return rows;
}

// The samples with at least one frame of which `matches[function]` is set.
export function matchedSums(tally, matches) {
  const { tree } = tally, above = new Uint8Array(tree.count);
  const sum = Object.fromEntries(tally.measures.map((m) => [m, 0]));
  for (let i = 1; i < tree.count; i++) {
    const f = tree.fn[i];
    if (above[tree.parent[i]]) above[i] = 1;
    else if (f >= 0 && matches[f]) {
      above[i] = 1;
      for (const m of tally.measures) sum[m] += tally[m].total[i];
    }
  }
  return sum;
}

// The sums of nodes that are merged into those of another tree.
class Gathered {
  constructor({ measures }) {
    this.measures = measures;
    this.values = measures.map(() => []);
  }

  add(tally, which, from, to) {
    this.measures.forEach((m, k) => (this.values[k][to] = (this.values[k][to] ?? 0) + tally[m][which][from]));
  }

  finish(grower) {
    const tree = grower.finish();
    const result = { tree, measures: this.measures, ...newSums(this.measures, tree.count) };
    this.measures.forEach((m, k) => {
      for (let i = 0; i < tree.count; i++) result[m].self[i] = this.values[k][i] ?? 0;
      addUp(tree, result[m]);
    });
    return result;
  }
}

// What a function calls: the trees below its outermost calls, as one.
export function callees(tally, fn) {
  const { tree } = tally, grower = new Grower(1024), inside = new Int32Array(tree.count), gathered = new Gathered(tally);
  for (let i = 1; i < tree.count; i++) {
    if (!tally.ticks.total[i]) continue;
    const above = inside[tree.parent[i]];
    if (!above && tree.fn[i] !== fn) continue;
    const at = (inside[i] = grower.child(above || ROOT, tree.fn[i], tree.flags[i]));
    gathered.add(tally, 'self', i, at);
  }
  return gathered.finish(grower);
}

// Callers of a function, from its outermost calls up: one tree that has the function as its root's child.
export function callers(tally, fn) {
  const { tree } = tally, grower = new Grower(1024), gathered = new Gathered(tally), outermost = outermostOf(tree);
  for (let i = 1; i < tree.count; i++) {
    if (tree.fn[i] !== fn || !outermost[i] || !tally.ticks.total[i]) continue;
    let at = ROOT;
    for (let up = i; up !== ROOT; up = tree.parent[up]) at = grower.child(at, tree.fn[up], tree.flags[up]);
    gathered.add(tally, 'total', i, at);
  }
  return gathered.finish(grower);
}
