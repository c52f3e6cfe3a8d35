// SPDX-License-Identifier: BSD-2-Clause
//
// Waiting time (record --wall). Waits are rows, as samples are, with their state as one more frame, so every view
// shows them: the page has a profile for each of CPU, waiting, and both, which share all tables but the rows.

import { plainKind, kindName } from './colour.js';
import { FLAG, grown } from './data.js';
import { offerRowMenu } from './menu.js';
import { make, count, plural, share, duration, moment } from './text.js';

const RUNNING = 1, THROTTLED = 3, LOCK = 5; // of the states; up to THROTTLED it would run
const IDLE = 5; // of the categories
const MODULE = '(waiting)';
const PARTS = 200; // of the recording, that a wait is cut into at most: a selection of time takes parts of long waits
const PIECES = 100000; // of all waits together
const LONGEST = 20; // waits of a lock that can be looked at

const TERMS = { unit: 'thread', quantity: count, confidence: () => '' }; // their weights are not equal

export const MODES = [['cpu', 'CPU'], ['waiting', 'Waiting'], ['wall', 'CPU and waiting']];

// ---- tables -----------------------------------------------------------------------------------------

// A function and a frame for each state.
export function addStates(profile) {
  const { strings, words } = profile, names = words.states.map(([name]) => name);
  const encoder = new TextEncoder(), first = profile.functionName.length, text = strings.raw.length;
  for (const name of names) strings.raw.push(encoder.encode(`[waiting: ${name}]`));
  strings.raw.push(encoder.encode(MODULE));
  const all = names.map((_, state) => state), frame = profile.frameFunction.length;
  profile.functionName = grown(profile.functionName, all.map((state) => text + state));
  profile.functionModule = grown(profile.functionModule, all.map(() => text + names.length));
  profile.functionFlags = grown(profile.functionFlags, all.map(() => IDLE));
  profile.frameFunction = grown(profile.frameFunction, all.map((state) => first + state));
  profile.frameFlags = grown(profile.frameFlags, all.map(() => IDLE));
  for (const column of ['frameFile', 'frameLine', 'framePath', 'frameCode', 'frameInstruction']) profile[column] = grown(profile[column], all.map(() => 0));
  profile.stateFrames = frame; // the first of them
  profile.stateOf = (f) => (f >= first && f < first + names.length ? f - first : 0);
  profile.stateName = (state) => names[state] ?? '';
  profile.stateText = (state) => words.states[state]?.[1] ?? '';
}

// The profile with a leaf of each stack that waits in a state.
export function withLeaves(profile) {
  const { waits, nodeParent, nodeFrame, stateFrames, words } = profile, leaves = new Map(), parents = [], frames = [];
  const leaf = waits.node.map((node, i) => {
    const key = node * words.states.length + waits.state[i];
    if (!leaves.has(key)) {
      leaves.set(key, nodeParent.length + parents.length);
      parents.push(node);
      frames.push(stateFrames + waits.state[i]);
    }
    return leaves.get(key);
  });
  for (const t of profile.threads) {
    const [from, to] = waits.range[t.number];
    t.parked = waits.parked.subarray(from, to).includes(1);
  }
  return Object.assign(Object.create(profile), { waits: { ...waits, leaf }, nodeParent: grown(nodeParent, parents), nodeFrame: grown(nodeFrame, frames) });
}

// ---- rows -------------------------------------------------------------------------------------------

// Waits of a thread as rows. The ticks of a wait are those of its first piece, its weight is divided.
function pushWaits(waits, [first, end], longest, parked, rows) {
  for (let i = first; i < end; i++) {
    if (waits.parked[i] && !parked) continue;
    const { since, until, weight } = { since: waits.since[i], until: waits.until[i], weight: waits.weight[i] };
    const pieces = Math.max(1, Math.ceil((until - since) / longest));
    let given = 0;
    for (let k = 1; k <= pieces; k++) {
      const part = Math.round((weight * k) / pieces) - given;
      given += part;
      rows.push({
        begin: since + ((until - since) * (k - 1)) / pieces, time: since + ((until - since) * k) / pieces, weight: part, ticks: k === 1 ? 1 : 0,
        node: waits.leaf[i], plain: waits.node[i], comm: waits.comm[i], state: waits.state[i],
      });
    }
  }
}

function pushSamples(profile, t, rows) {
  for (let i = t.first; i < t.end; i++) {
    const time = profile.time[i], before = i > t.first ? profile.time[i - 1] : -Infinity;
    rows.push({
      begin: Math.max(before, time - profile.weight[i] / 1000), time, weight: profile.weight[i], ticks: profile.ticks ? profile.ticks[i] : 1,
      node: profile.node[i], plain: profile.node[i], comm: profile.comm[i], state: RUNNING,
    });
  }
}

// A sample that began in a wait, by the clocks, did not.
function order(rows) {
  rows.sort((a, b) => a.time - b.time || a.begin - b.begin);
  let last = -Infinity;
  for (const row of rows) {
    row.begin = Math.min(row.time, Math.max(row.begin, last));
    last = row.time;
  }
}

// The profile with other rows. `mode`: waiting, wall; `parked`: with those of parked threads.
export function withRows(profile, mode, parked) {
  const { waits } = profile, rows = [], threads = [];
  let waited = 0;
  for (let i = 0; i < waits.since.length; i++) waited += waits.until[i] - waits.since[i];
  const longest = Math.max(profile.end / PARTS, waited / PIECES, 1);
  for (const t of profile.threads) {
    const own = [];
    if (mode === 'wall') pushSamples(profile, t, own);
    pushWaits(waits, waits.range[t.number], longest, parked, own);
    order(own);
    const sum = (key) => own.reduce((all, row) => all + row[key], 0);
    const tail = mode === 'wall' ? t.tail : 0;
    threads.push({ ...t, first: rows.length, end: rows.length + own.length, tail, cpu: sum('weight') + tail, ticks: sum('ticks') });
    for (const row of own) rows.push(row);
  }
  const column = (key, Kind) => Kind.from(rows, (row) => row[key]);
  const period = profile.summary.period_ns > 1 ? profile.summary.period_ns : 1e6;
  return Object.assign(Object.create(profile), {
    threads, time: column('time', Float64Array), begin: column('begin', Float64Array), weight: column('weight', Float64Array),
    ticks: column('ticks', Float64Array), node: column('node', Int32Array), plainNode: column('plain', Int32Array),
    comm: column('comm', Int32Array), state: column('state', Uint8Array),
    terms: { ...TERMS, ...(mode === 'wall' ? { count: (n) => `${count(n)} samples and waits`, time: 'time', use: 'time' } : { count: (n) => plural(n, 'wait'), time: 'waiting', use: 'waiting' }) },
    foldedCount: (i) => (rows[i].state === RUNNING ? rows[i].ticks : rows[i].weight / period),
  });
}

// ---- one wait ---------------------------------------------------------------------------------------

// The wait of a thread at a time, or -1.
export function waitAt(profile, number, time) {
  const { waits } = profile, [first, end] = waits.range[number];
  let low = first, high = end;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (waits.until[middle] < time) low = middle + 1;
    else high = middle;
  }
  return low < end && waits.since[low] <= time ? low : -1;
}

const threadText = (profile, t) => `${profile.threadName(t)} (tid ${t.tid})`;

// "lock, 12 ms from 1.2 s on", and the thread that has it.
export function waitFacts(profile, i) {
  if (i < 0) return [];
  const { waits } = profile, holder = profile.threads[waits.holder[i] - 1];
  const list = [['wait', `${profile.stateName(waits.state[i])}, ${duration((waits.until[i] - waits.since[i]) * 1000)} from ${moment(waits.since[i], 100)} on`]];
  if (holder) list.push(['the lock is held by', threadText(profile, holder)]);
  return list;
}

// What a thread did when another one waited for it: {what, node}, of its wait at that time, or of its sample or wait that
// is closest, which must be in the time of that wait; or null. The holder of a lock was read by the visit that found the wait.
function activity(profile, number, i) {
  const { waits } = profile, t = profile.threads[number], since = waits.since[i], until = waits.until[i], wanted = waits.found[i];
  const wait = (k) => ({ what: `${profile.stateName(waits.state[k])} (${duration((waits.until[k] - waits.since[k]) * 1000)} from ${moment(waits.since[k], 100)} on)`, node: waits.node[k] });
  const there = waitAt(profile, number, wanted);
  if (there >= 0) return wait(there);
  const distance = (from, to) => (from > wanted ? from - wanted : 2 * (wanted - to));
  let found = null, least = Infinity;
  const consider = (from, to, describe) => {
    if (from > until || to < since || distance(from, to) >= least) return;
    least = distance(from, to);
    found = describe;
  };
  for (let k = t.first; k < t.end; k++) consider(profile.time[k], profile.time[k], () => ({ what: `running (sample at ${moment(profile.time[k], 100)})`, node: profile.node[k] }));
  for (let k = waits.range[number][0]; k < waits.range[number][1]; k++) if (waits.until[k] > waits.since[k]) consider(waits.since[k], waits.until[k], () => wait(k));
  return found?.() ?? null;
}

// ---- locks ------------------------------------------------------------------------------------------

// The innermost function that a runtime runs, no stub, else of the program, else of a library: as report --wall --by function.
function waitingFunction(profile, node) {
  const rank = [0, 2, 0, 1, 3, 0];
  let best = -1, most = -1;
  for (let at = node; at; at = profile.nodeParent[at]) {
    const frame = profile.nodeFrame[at], fn = profile.frameFunction[frame];
    let own = rank[profile.frameFlags[frame] & FLAG.CATEGORY] ?? 0;
    if (own === 3 && profile.nameOf(fn).startsWith('[')) own = 1;
    if (own > most) [most, best] = [own, fn];
  }
  return best;
}

const has = (waits, i) => waits.state[i] === LOCK || (waits.holder[i] > 0 && waits.state[i] > THROTTLED);

export function hasLocks(profile) {
  const { waits } = profile;
  for (let i = 0; i < waits.state.length; i++) if (has(waits, i)) return true;
  return false;
}

// How much of a wait is in a time, 0 to 1.
function partIn({ since, until }, i, time) {
  const length = until[i] - since[i];
  return time && length ? (Math.min(until[i], time[1]) - Math.max(since[i], time[0])) / length : 1;
}

// By what waits and which thread has it: {fn, holder, ns, waits, waiters, longest}
export function locksOf(profile, isWanted, time, parked) {
  const { waits } = profile, rows = new Map(), places = new Map();
  for (const t of profile.threads) {
    if (!isWanted(t)) continue;
    for (let i = waits.range[t.number][0]; i < waits.range[t.number][1]; i++) {
      if (!has(waits, i) || (waits.parked[i] && !parked) || (time && (waits.until[i] < time[0] || waits.since[i] > time[1]))) continue;
      if (!places.has(waits.node[i])) places.set(waits.node[i], waitingFunction(profile, waits.node[i]));
      const fn = places.get(waits.node[i]), key = `${fn} ${waits.holder[i]}`;
      if (!rows.has(key)) rows.set(key, { key, fn, holder: waits.holder[i] - 1, ns: 0, waits: 0, waiters: new Set(), all: [] });
      const row = rows.get(key);
      row.ns += waits.weight[i] * partIn(waits, i, time);
      row.waits++;
      row.waiters.add(t.number);
      row.all.push([i, t.number]);
    }
  }
  const length = ([i]) => waits.until[i] - waits.since[i];
  for (const row of rows.values()) row.all = row.all.sort((a, b) => length(b) - length(a)).slice(0, LONGEST);
  return [...rows.values()].sort((a, b) => b.ns - a.ns || b.waits - a.waits);
}

export class LockTable {
  // `menu(fn, x, y)`: of the function that waits
  constructor(host, profile, menu) {
    this.profile = profile;
    this.body = make('tbody');
    offerRowMenu(this.body, (line, x, y) => {
      const row = this.list.find(({ element }) => element === line);
      if (row?.fn >= 0) menu(row.fn, x, y);
      return row?.fn >= 0;
    });
    const heads = [['Time', 'Waiting time'], ['Waits', ''], ['Waiters', 'Threads that waited'], ['Waits in', 'The innermost function of the program'], ['Held by', 'As the mutex itself says; not known of other locks']];
    this.table = make('table', { class: 'functions locks', 'aria-label': 'Locks' },
      make('thead', null, make('tr', null, ...heads.map(([text, title]) => make('th', { scope: 'col', title: title || null }, text)))), this.body);
    this.choice = make('select', { 'aria-label': 'Which of the longest waits', onchange: () => this.showWait(this.row.all[this.choice.selectedIndex]) });
    this.waiter = make('div', { class: 'lock-stack' });
    this.holder = make('div', { class: 'lock-stack' });
    this.details = make('div', { class: 'lock-wait', hidden: true }, make('div', { class: 'lock-choice' }, make('label', null, 'Longest waits ', this.choice)), make('div', { class: 'lock-stacks' }, this.waiter, this.holder));
    host.append(make('div', { class: 'table-host' }, this.table), this.details);
  }

  show(isWanted, time, parked) {
    this.list = locksOf(this.profile, isWanted, time, parked);
    const all = this.list.reduce((sum, row) => sum + row.ns, 0);
    this.body.replaceChildren(...this.list.slice(0, 500).map((row) => this.line(row, all)));
    this.choose(this.list.find((row) => row.key === this.row?.key) ?? this.list.find((row) => row.holder >= 0) ?? this.list[0] ?? null);
  }

  line(row, all) {
    const bar = make('i', { class: 'bar' }), holder = this.profile.threads[row.holder];
    bar.style.width = `${all ? (100 * row.ns) / all : 0}%`;
    const name = row.fn < 0 ? '[unknown]' : this.profile.nameOf(row.fn);
    const line = make('tr', { onclick: () => this.choose(row) },
      make('td', { class: 'self' }, bar, make('span', { class: 'share' }, share(row.ns, all)), make('span', { class: 'number' }, duration(row.ns))),
      make('td', null, count(row.waits)), make('td', null, count(row.waiters.size)),
      make('td', { class: 'name' }, make('div', null, make('button', { type: 'button', class: 'name' }, name.slice(0, 400)))),
      make('td', null, make('bdi', null, holder ? threadText(this.profile, holder).slice(0, 200) : 'not known')));
    row.element = line;
    return line;
  }

  choose(row) {
    this.row = row;
    for (const other of this.list) other.element?.classList.toggle('chosen', other === row);
    this.details.hidden = !row;
    if (!row) return;
    const { waits } = this.profile;
    this.choice.replaceChildren(...row.all.map(([i, number]) => make('option', null,
      `${duration((waits.until[i] - waits.since[i]) * 1000)} from ${moment(waits.since[i], 100)} on: ${threadText(this.profile, this.profile.threads[number]).slice(0, 80)}`)));
    this.showWait(row.all[0]);
  }

  // A wait, beside what the holder did in that time.
  showWait([i, number]) {
    const p = this.profile, { waits } = p, holder = p.threads[waits.holder[i] - 1];
    this.stack(this.waiter, `${threadText(p, p.threads[number])} waits`, p.stateText(waits.state[i]), waits.node[i]);
    if (!holder) return this.stack(this.holder, 'The holder is not known', '', 0);
    const found = activity(p, holder.number, i);
    return this.stack(this.holder, `${threadText(p, holder)} has the lock when the wait is found`, found ? found.what : 'no sample and no visit met it in that time', found?.node ?? 0);
  }

  stack(host, title, text, node) {
    const p = this.profile, list = make('ol');
    for (let at = node; at; at = p.nodeParent[at]) {
      const frame = p.nodeFrame[at], dot = make('i', { class: 'dot', title: kindName(p.frameFlags[frame] & FLAG.CATEGORY) });
      dot.style.background = plainKind(p.frameFlags[frame] & FLAG.CATEGORY);
      list.append(make('li', null, dot, make('bdi', null, p.nameOf(p.frameFunction[frame]).slice(0, 300))));
    }
    host.replaceChildren(make('h3', null, make('bdi', null, title.slice(0, 300))), make('p', null, text), list);
  }
}
