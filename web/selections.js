// SPDX-License-Identifier: BSD-2-Clause
//
// Two parts of the time of one recording, compared in the page (Ctrl + drag): OLD and NEW, as `sysprof diff FILE@10s-20s
// FILE@40s-50s` compares them, in CPU time per second. Rows of waits (web/wall.js) compare as those of samples do.

import { Difference } from './difference.js';
import { differenceOf, ratioEstimate, setRates, studentP, studentT } from './statistics.js';
import { ROOT, outermostOf } from './tree.js';
import { plural } from './text.js';

const BLOCKS_MAX = 128; // of a side
const SAMPLES_MIN = 20; // of both sides: with less, nothing can be shown
const TESTED_MAX = 4096; // functions
const WHOLE_PART = 0.25; // of the false discoveries that are allowed
const TOTAL_PART = 0.1; // of the rest: for functions that have code of their own besides
const LARGE_PART = 0.05; // of all samples: larger functions are found anyway
const SELF_MAX = 0.95; // of the total: beyond, one test does for both
const FOUND_LEVEL = 0.05;
const SHOWN = 0.0005; // smaller changes of the whole, which may be exact, are 0.0 %
const POWER_Z = 1.2815515655446004; // of 9 in 10

// ---- rows by block of time -----------------------------------------------------------------------------

function blockShift(ns) {
  let shift = 0;
  while (Math.floor(ns / 2 ** shift) >= BLOCKS_MAX) shift++;
  return shift;
}

// The first row of a thread that is not before a time.
export function firstAt(profile, t, time) {
  let low = t.first, high = t.end;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (profile.time[middle] >= time) high = middle;
    else low = middle + 1;
  }
  return low;
}

// The rows [first, end) of each thread in a time.
function rangesIn(profile, [from, to], isWanted) {
  return profile.threads.map((t) => (isWanted(t) ? [firstAt(profile, t, from), to >= profile.end ? t.end : firstAt(profile, t, to)] : [t.first, t.first]));
}

// One side: ticks by slot and tree node, and what it is in all. The ticks of waits are microseconds.
class Side {
  constructor(profile, tree, time, isWanted) {
    this.from = time[0];
    this.ns = (time[1] - time[0]) * 1000;
    this.ranges = rangesIn(profile, time, isWanted);
    this.profile = profile;
    this.leaf = (i) => tree.map[tree.leaf[i]];
    this.ticks = 0;
    this.rows = this.ranges.reduce((sum, [from, to]) => sum + to - from, 0);
    this.cpu = 0;
  }

  ticksOf(i) {
    const { begin, ticks, weight } = this.profile;
    return begin ? weight[i] / 1000 : ticks ? ticks[i] : 1;
  }

  // `number`: by function, from 1 on; 0: it is not tested. `total` and `self` have the slots of one after the other.
  count(tree, shift, number, tested) {
    const { time, weight } = this.profile, slots = Math.max(1, Math.floor(this.ns / 2 ** shift));
    const rows = Array.from({ length: slots }, () => []);
    this.whole = new Float64Array(slots);
    for (const [from, to] of this.ranges) {
      for (let i = from; i < to; i++) {
        rows[Math.min(slots - 1, Math.floor(((time[i] - this.from) * 1000) / 2 ** shift))].push(i);
        this.cpu += weight[i];
      }
    }
    this.total = new Float64Array((tested + 1) * slots);
    this.self = new Float64Array((tested + 1) * slots);
    const nodes = new Float64Array(tree.count), outermost = outermostOf(tree), numbers = Int32Array.from(tree.fn, (f) => (f < 0 ? 0 : number[f]));
    rows.forEach((list, slot) => {
      nodes.fill(0);
      for (const i of list) {
        const node = this.leaf(i), ticks = this.ticksOf(i);
        nodes[node] += ticks;
        this.self[numbers[node] * slots + slot] += ticks;
      }
      for (let node = tree.count - 1; node > 0; node--) {
        if (!nodes[node]) continue;
        nodes[tree.parent[node]] += nodes[node];
        if (outermost[node]) this.total[numbers[node] * slots + slot] += nodes[node];
      }
      this.whole[slot] = nodes[ROOT];
      this.ticks += nodes[ROOT];
    });
    this.amount = this.cpu / this.ns;
  }
}

// The sums of functions on both sides: {total, self}.
function functionTicks(tree, sides, functions) {
  const total = new Float64Array(functions), self = new Float64Array(functions), nodes = new Float64Array(tree.count), outermost = outermostOf(tree);
  for (const side of sides) {
    for (const [from, to] of side.ranges) for (let i = from; i < to; i++) nodes[side.leaf(i)] += side.ticksOf(i);
  }
  for (let node = 1; node < tree.count; node++) if (tree.fn[node] >= 0) self[tree.fn[node]] += nodes[node];
  for (let node = tree.count - 1; node > 0; node--) {
    nodes[tree.parent[node]] += nodes[node];
    if (outermost[node]) total[tree.fn[node]] += nodes[node];
  }
  return { total, self };
}

// ---- tests ---------------------------------------------------------------------------------------------

const sumSlots = (slots) => slots.reduce((sum, value) => sum + value, 0);

// A part of a side's whole, with its error by blocks of time. There is no noise of runs: both are parts of one.
function estimate(side, slots, sample) {
  const part = sumSlots(slots), whole = side.ticks, ratio = part / whole;
  const independent = part ? (sample * part * (1 - ratio)) / (whole * whole) : (0.5 * sample * sample) / (whole * whole);
  const e = ratioEstimate(slots, side.whole, ratio, Math.max(independent, 0));
  return { value: side.amount * ratio, variance: e.variance * side.amount ** 2, freedom: e.freedom };
}

function makeTest(fn, isOwn, sides, slots, sample) {
  const [old, next] = sides.map((side, k) => estimate(side, slots[k], sample));
  const difference = differenceOf(old, next), error = Math.sqrt(difference.variance);
  const half = error > 0 ? error * studentT(FOUND_LEVEL, difference.freedom) : 0;
  const ticks = slots.map(sumSlots);
  const test = {
    fn, own_code: isOwn, old_samples: Math.floor(ticks[0] / sample), new_samples: Math.floor(ticks[1] / sample), ticks: ticks[0] + ticks[1],
    old, new: next, difference, low: difference.value - half, high: difference.value + half, relative: null, relative_low: null, relative_high: null,
    p: error > 0 ? studentP(difference.value / error, difference.freedom) : difference.value ? 0 : 1, q: 1, doubtful: false,
  };
  if (!(old.value > 0 && next.value > 0)) return test;
  const part = (e) => ({ value: 0, variance: e.variance / e.value ** 2, freedom: e.freedom });
  const logs = differenceOf(part(old), part(next));
  test.error = Math.sqrt(logs.variance);
  const width = test.error * studentT(FOUND_LEVEL, logs.freedom), ratio = next.value / old.value;
  return Object.assign(test, { relative: ratio - 1, relative_low: ratio * Math.exp(-width) - 1, relative_high: ratio * Math.exp(width) - 1 });
}

const weightOfShare = (part) => (part < LARGE_PART ? part : LARGE_PART ** 2 / part);

// The false discoveries that are allowed are shared out by the samples at stake; own code has most of them.
function shareOut(tests, all) {
  const [whole, ...others] = tests;
  const sum = [0, 0], part = [TOTAL_PART, 1 - TOTAL_PART], kind = (t) => Number(t.own_code || t.isOnly);
  for (const t of others) {
    t.weight = weightOfShare(Math.max(Math.min(t.ticks, all - t.ticks), 1) / all);
    sum[kind(t)] += t.weight;
  }
  if (!sum[0]) part[1] = 1;
  if (!sum[1]) part[0] = 1;
  for (const t of others) t.weight *= ((1 - WHOLE_PART) * part[kind(t)]) / sum[kind(t)];
  whole.weight = others.length ? WHOLE_PART : 1;
  return sum[1] > 0 ? ((1 - WHOLE_PART) * part[1]) / sum[1] : 0;
}

function testAll(profile, tree, sides, sample) {
  const { total, self } = functionTicks(tree, sides, profile.functionName.length);
  const tested = [...total.keys()].filter((f) => total[f] >= SAMPLES_MIN * sample).sort((a, b) => total[b] - total[a] || a - b).slice(0, TESTED_MAX);
  const number = new Int32Array(total.length), shift = Math.max(...sides.map((side) => blockShift(side.ns)));
  tested.forEach((f, i) => (number[f] = i + 1));
  for (const side of sides) side.count(tree, shift, number, tested.length);
  const slotsOf = (which, f) => sides.map((side) => side[which].subarray(number[f] * side.whole.length, (number[f] + 1) * side.whole.length));
  const tests = [makeTest(-1, false, sides, sides.map((side) => side.whole), sample)];
  for (const f of tested) {
    const test = makeTest(f, false, sides, slotsOf('total', f), sample);
    tests.push(test);
    test.isOnly = self[f] > SELF_MAX * total[f];
    if (!test.isOnly && self[f] >= SAMPLES_MIN * sample) tests.push(makeTest(f, true, sides, slotsOf('self', f), sample));
  }
  const scale = shareOut(tests, sides[0].ticks + sides[1].ticks);
  setRates(tests);
  return { tests, scale };
}

// What would have been found in 9 of 10 cases of a function of that share, by the errors of those of about its size.
function detectableOf({ tests, scale }, part) {
  const [whole, ...others] = tests, size = (t) => t.old.value / whole.old.value;
  const errors = others.filter((t) => t.error !== undefined && size(t) > part / 3 && size(t) < part * 3).map((t) => t.error).sort((a, b) => a - b);
  return errors.length ? (studentT(FOUND_LEVEL * scale * weightOfShare(part), Infinity) + POWER_Z) * errors[Math.floor(errors.length / 2)] : null;
}

// ---- the comparison ------------------------------------------------------------------------------------

class SelectedDifference extends Difference {
  constructor(profile, facts, made) {
    super(profile, facts);
    this.tests = new Map();
    for (const test of made.slice(1)) {
      test.verdict = this.verdictOf(test);
      if (!this.tests.has(test.fn)) this.tests.set(test.fn, {});
      this.tests.get(test.fn)[test.own_code ? 'own' : 'total'] = test;
    }
    facts.total.verdict = this.verdictOf(facts.total);
    facts.sentence = this.sentence(made);
  }

  // Of the rows, which are those of OLD and then those of NEW in each thread.
  addColumns(profile) {
    const n = profile.node.length, columns = [new Float64Array(n), new Float64Array(n), new Float64Array(n)];
    for (let i = 0; i < n; i++) {
      const k = profile.side[i];
      columns[k][i] = 2 * Math.round((this.all.tick[k] * profile.sideTicks[i] * this.unit) / 2);
      columns[2][i] = columns[k][i] / 2;
    }
    profile.columns = columns;
    profile.measures = ['ticks', 'cpu', 'old', 'new', 'mean'];
  }

  readTests() {}

  average() {}

  sentence([whole, ...tests]) {
    const found = new Set(tests.filter((t) => this.isFound(t)).map((t) => t.fn)).size, use = this.all.waits ? 'waits' : 'uses CPU';
    const change = whole.relative === null ? '' : `: ${this.intervalOf(whole)} per second`;
    return `${this.isFound(whole) && !(Math.abs(whole.relative) < SHOWN) ? `NEW ${use} ${whole.difference.value > 0 ? 'more' : 'less'}` : 'No difference was found in the whole'}${change}; ${found ? `${plural(found, 'function')} differ${found === 1 ? 's' : ''}` : 'no function differs for certain'}`;
  }
}

// The rows of both times alone, as the columns of a profile.
function rowsOf(profile, sides) {
  const columns = { time: Float64Array, weight: Float64Array, node: Int32Array, comm: Int32Array, begin: Float64Array, state: Uint8Array, plainNode: Int32Array };
  const size = sides[0].rows + sides[1].rows, result = { side: new Uint8Array(size), sideTicks: new Float64Array(size), ticks: new Float64Array(size), threads: [] };
  const kept = Object.keys(columns).filter((key) => profile[key]), counts = profile.foldedCount ? new Float64Array(size) : null;
  if (counts) result.foldedCount = (i) => counts[i];
  for (const key of kept) result[key] = new columns[key](size);
  let at = 0;
  profile.threads.forEach((t, number) => {
    const thread = { ...t, first: at, tail: 0, cpu: 0, ticks: 0 };
    sides.forEach((side, k) => {
      const [from, to] = side.ranges[number];
      for (let i = from; i < to; i++, at++) {
        for (const key of kept) result[key][at] = profile[key][i];
        result.side[at] = k;
        result.sideTicks[at] = side.ticksOf(i);
        if (counts) counts[at] = profile.foldedCount(i);
        result.ticks[at] = profile.ticks ? profile.ticks[i] : 1;
        thread.cpu += profile.weight[i];
        thread.ticks += result.ticks[at];
      }
    });
    thread.end = at;
    result.threads.push(thread);
  });
  return result;
}

// `tree`: merged, of the same rows; `times`: [from, to] of OLD and NEW in µs. {profile} or {reason}.
export function compareTimes(profile, tree, times, isWanted) {
  const sides = times.map((time) => new Side(profile, tree, time, isWanted));
  for (const [k, name] of ['OLD', 'NEW'].entries()) if (!sides[k].rows) return { reason: `There is no ${profile.begin ? 'wait' : 'sample'} in the time of ${name}.` };
  const sample = profile.begin ? Math.max(1, Math.round(1e6 / (profile.words.visits?.hz || 200))) : profile.event ? profile.words.events_per_sample : 1;
  const made = testAll(profile, tree, sides, sample);
  if (sides.some((side) => !(side.cpu > 0))) return { reason: 'This profile has no CPU time: parts of it cannot be compared.' };
  const of = (side, name) => ({ side: name, path: `${(side.from / 1e6).toFixed(3)} s to ${((side.from + side.ns / 1000) / 1e6).toFixed(3)} s`, files: 1, samples: Math.floor(side.ticks / sample), cpu_ns: side.cpu, lost_share: 0, cut_share: 0, unnamed: 0, value: side.amount });
  const [old, next] = [of(sides[0], 'old'), of(sides[1], 'new')];
  const facts = {
    view: 'second', level: FOUND_LEVEL, refused: false, runs_measured: false, run_noise: 0, run_noise_assumed: false, run_noise_files: 0,
    files: [old, next], old, new: next, rows: [], total: made.tests[0], tests: made.tests.slice(1), waits: !!profile.begin,
    tick: sides.map((side) => side.amount / side.ticks),
    detectable: { total: made.tests[0].error ? (studentT(FOUND_LEVEL, made.tests[0].difference.freedom) + POWER_Z) * made.tests[0].error : null, function_5_percent: detectableOf(made, 0.05), function_1_percent: detectableOf(made, 0.01) },
  };
  const selected = Object.assign(Object.create(profile), rowsOf(profile, sides));
  selected.difference = new SelectedDifference(selected, facts, made.tests);
  return { profile: selected };
}
