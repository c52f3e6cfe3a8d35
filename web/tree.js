// SPDX-License-Identifier: BSD-2-Clause
//
// Call trees. The profile's own nodes are frames (a function at a place in the source); what is shown are
// functions, merged by name and module as in `sysprof report`, below the process or thread if one wants.
//
// A tree has a `fine` part (groups × frames) to which samples point, and the nodes that are shown, to which
// `map` leads. It is built once; a selection only changes the sums. In all arrays a parent comes before its
// children, so that one pass backwards adds up a tree.

import { FLAG } from './data.js';

export const ROOT = 0;
const GROUP = -2; // function numbers below -1 are groups: -2 - number

// Nodes that are found by (parent, function).
class Grower {
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
    let at = this.find(parent, fn), node = this.slots[at];
    if (node) {
      if (!(flags & FLAG.INLINED)) this.flags[node] &= ~FLAG.INLINED;
      this.flags[node] |= flags & FLAG.AMBIGUOUS;
      return node;
    }
    if (this.count === this.parent.length) {
      this.resize(this.count * 2);
      at = this.find(parent, fn);
    }
    node = this.slots[at] = this.count++;
    this.parent[node] = parent;
    this.fn[node] = fn;
    this.flags[node] = flags;
    this.depth[node] = this.depth[parent] + 1;
    return node;
  }

  finish() {
    const n = this.count;
    const tree = {
      count: n, parent: this.parent.subarray(0, n), fn: this.fn.subarray(0, n), flags: this.flags.subarray(0, n),
      depth: this.depth.subarray(0, n), first: new Int32Array(n), next: new Int32Array(n),
    };
    for (let i = n - 1; i > 0; i--) {
      tree.next[i] = tree.first[tree.parent[i]];
      tree.first[tree.parent[i]] = i;
    }
    return tree;
  }
}

// Nodes whose function is not above them already: adding them up counts recursion once.
function markOutermost(tree, functions) {
  const outermost = (tree.outermost = new Uint8Array(tree.count));
  const active = new Int32Array(functions);
  let node = ROOT;
  for (;;) {
    let next = tree.first[node];
    while (!next && node !== ROOT) {
      if (tree.fn[node] >= 0) active[tree.fn[node]]--;
      next = tree.next[node];
      node = tree.parent[node];
    }
    if (!next) return;
    node = next;
    if (tree.fn[node] < 0) continue;
    outermost[node] = active[tree.fn[node]] ? 0 : 1;
    active[tree.fn[node]]++;
  }
}

export function groupOf(fn) {
  return fn < -1 ? GROUP - fn : -1;
}

// Of each group: its node, and the ranges of rows [thread, from, to] below it. By state: runs of rows of one state.
function groupsOf(profile, grouping, grower) {
  const groups = new Map(), { processes, threads, state } = profile;
  for (const t of threads) {
    if (grouping !== 'state') {
      const key = grouping === 'process' ? t.process : t.number;
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
  const list = [];
  for (const [key, ranges] of groups) {
    if (!ranges.length) continue;
    if (grouping === 'state') {
      list.push([grower.child(ROOT, GROUP - processes.length - threads.length - key, 0), ranges]);
      continue;
    }
    const group = grower.child(ROOT, GROUP - ranges[0][0].process, 0);
    list.push([grouping === 'thread' ? grower.child(group, GROUP - processes.length - key, 0) : group, ranges]);
  }
  return list;
}

// grouping: "merged", "process", "thread" or "state"; recursion: a function that calls itself is one node.
export function buildTree(profile, grouping, recursion) {
  const { nodeParent, nodeFrame, frameFunction, frameFlags } = profile;
  const grower = new Grower(nodeParent.length);
  const merged = grouping === 'merged';
  const memo = new Int32Array(nodeParent.length), path = [];
  const fineParent = [], fineFrame = [], map = [ROOT];
  const leaf = merged ? profile.node : new Int32Array(profile.node.length);
  const below = (parent, frame) => {
    const fn = frameFunction[frame];
    return recursion && grower.fn[parent] === fn ? parent : grower.child(parent, fn, frameFlags[frame]);
  };
  if (merged) {
    for (let i = 1; i < nodeParent.length; i++) map.push(below(map[nodeParent[i]], nodeFrame[i]));
  } else {
    fineParent.push(0);
    fineFrame.push(0);
    // by state, no leaf repeats it
    const nodes = (grouping === 'state' && profile.plainNode) || profile.node;
    for (const [group, ranges] of groupsOf(profile, grouping, grower)) {
      const top = map.push(group) - 1, used = [];
      fineParent.push(0);
      fineFrame.push(-1);
      for (const [, from, to] of ranges) {
        for (let i = from; i < to; i++) {
          let at = nodes[i];
          for (path.length = 0; at && !memo[at]; at = nodeParent[at]) path.push(at);
          let fine = at ? memo[at] : top;
          while (path.length) {
            at = path.pop();
            const node = below(map[fine], nodeFrame[at]);
            fineParent.push(fine);
            fineFrame.push(nodeFrame[at]);
            fine = memo[at] = map.push(node) - 1;
            used.push(at);
          }
          leaf[i] = fine;
        }
      }
      for (const at of used) memo[at] = 0;
    }
  }
  const tree = grower.finish();
  tree.fine = {
    parent: merged ? nodeParent : Int32Array.from(fineParent), frame: merged ? nodeFrame : Int32Array.from(fineFrame),
    leaf, count: map.length,
  };
  tree.map = Int32Array.from(map);
  tree.grouping = grouping;
  markOutermost(tree, profile.functionName.length);
  return tree;
}

// {measure: {self, total}}, of `count` nodes or functions.
function newSums(measures, count) {
  return Object.fromEntries(measures.map((m) => [m, { self: new Float64Array(count), total: new Float64Array(count) }]));
}

function addUp(tree, sum) {
  sum.total.set(sum.self);
  for (let i = tree.count - 1; i > 0; i--) sum.total[tree.parent[i]] += sum.total[i];
}

function addRows(profile, leaf, fine, from, to, sign) {
  const { ticks, weight } = profile, more = profile.columns, stride = 2 + more.length;
  for (let i = from; i < to; i++) {
    const at = stride * leaf[i];
    fine[at] += sign * (ticks ? ticks[i] : 1);
    fine[at + 1] += sign * weight[i];
    for (let k = 0; k < more.length; k++) fine[at + 2 + k] += sign * more[k][i];
  }
}

// `ranges(thread)`: [from, to), the rows that count. With the tally `before` of the same tree only what has changed
// since is looked at: all are whole numbers, so nothing is rounded.
export function tally(profile, tree, ranges, before) {
  const { leaf } = tree.fine, { measures } = profile, stride = measures.length;
  const known = before?.tree === tree ? before : null;
  const fine = known?.fine ?? new Float64Array(stride * tree.fine.count); // by node: all measures
  const counted = profile.threads.map((t) => {
    const [from, to] = ranges(t), [oldFrom, oldTo] = known?.counted[t.number] ?? [from, from];
    if (from < oldTo && oldFrom < to) {
      addRows(profile, leaf, fine, oldFrom, from, -1);
      addRows(profile, leaf, fine, to, oldTo, -1);
      addRows(profile, leaf, fine, from, oldFrom, 1);
      addRows(profile, leaf, fine, oldTo, to, 1);
    } else {
      addRows(profile, leaf, fine, oldFrom, oldTo, -1);
      addRows(profile, leaf, fine, from, to, 1);
    }
    return [from, to];
  });
  const result = { tree, measures, ...newSums(measures, tree.count), fine, counted };
  measures.forEach((m, k) => {
    const { self } = result[m];
    for (let i = 1; i < tree.fine.count; i++) self[tree.map[i]] += fine[stride * i + k];
    addUp(tree, result[m]);
  });
  return result;
}

// Where in the source a node was: [file, line] of most of its samples, or null.
export function hottestPlace(profile, tally, wanted) {
  const { tree } = tally, { parent, frame, count } = tree.fine;
  if (!tally.fineTotal) {
    tally.fineTotal = new Float64Array(count);
    for (let i = 0; i < count; i++) tally.fineTotal[i] = tally.fine[tally.measures.length * i];
    for (let i = count - 1; i > 0; i--) tally.fineTotal[parent[i]] += tally.fineTotal[i];
  }
  let best = -1, most = 0;
  for (let i = 1; i < count; i++) {
    if (tree.map[i] !== wanted || tally.fineTotal[i] <= most || frame[i] < 0) continue;
    most = tally.fineTotal[i];
    best = frame[i];
  }
  return best >= 0 && profile.frameLine[best] ? best : -1;
}

// Rows by function: {self, total} of each measure.
export function functionSums(profile, tally) {
  const { tree, measures } = tally;
  const rows = newSums(measures, profile.functionName.length);
  for (const m of measures) {
    const { self, total } = rows[m];
    for (let i = 1; i < tree.count; i++) {
      const f = tree.fn[i];
      if (f < 0) continue;
      self[f] += tally[m].self[i];
      if (tree.outermost[i]) total[f] += tally[m].total[i];
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
  const { tree } = tally, grower = new Grower(1024), gathered = new Gathered(tally);
  for (let i = 1; i < tree.count; i++) {
    if (tree.fn[i] !== fn || !tree.outermost[i] || !tally.ticks.total[i]) continue;
    let at = ROOT;
    for (let up = i; up !== ROOT; up = tree.parent[up]) at = grower.child(at, tree.fn[up], tree.flags[up]);
    gathered.add(tally, 'total', i, at);
  }
  return gathered.finish(grower);
}
