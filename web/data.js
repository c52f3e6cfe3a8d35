// SPDX-License-Identifier: BSD-2-Clause
//
// The profile, out of the page: base64, gzip, then columns as formats/out/html_data.c writes them.

import { shown, foldedField, plural, count, duration, interval, isTime, quantity } from './text.js';

export const CATEGORIES = ['other', 'user', 'kernel', 'library', 'jit', 'idle'];
export const FLAG = { CATEGORY: 7, INLINED: 8, AMBIGUOUS: 16, UNNAMED: 32, TIER: 6 };
export const TIERS = ['', 'interpreted', 'baseline', 'middle tier', 'optimized', 'builtin', 'regular expression', 'stub'];
const VERSION = 3;

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const chars = atob(text);
  const bytes = new Uint8Array(chars.length);
  for (let i = 0; i < chars.length; i++) bytes[i] = chars.charCodeAt(i);
  return bytes;
}

export async function inflate(text) {
  const stream = new Blob([fromBase64(text)]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// An array with more at its end.
export function grown(array, more) {
  const next = new array.constructor(array.length + more.length);
  next.set(array);
  next.set(more, array.length);
  return next;
}

export class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  uint() {
    const bytes = this.bytes;
    let b = bytes[this.at++];
    if (b < 128) return b;
    let value = b & 127, unit = 128;
    do {
      b = bytes[this.at++];
      value += (b & 127) * unit;
      unit *= 128;
    } while (b > 127);
    return value;
  }

  int() {
    const v = this.uint();
    return v % 2 ? -(v + 1) / 2 : v / 2;
  }

  text(size) {
    const text = new TextDecoder().decode(this.bytes.subarray(this.at, this.at + size));
    this.at += size;
    return text;
  }

  toNul() {
    const end = this.bytes.indexOf(0, this.at);
    const bytes = this.bytes.subarray(this.at, end);
    this.at = end + 1;
    return bytes;
  }

  column(array) {
    for (let i = 0; i < array.length; i++) array[i] = this.uint();
    return array;
  }
}

export class Strings {
  constructor(reader, size) {
    this.raw = [];
    this.texts = [];
    for (let i = 0; i < size; i++) this.raw.push(reader.toNul());
  }

  shown(i) {
    return (this.texts[i] ??= shown(this.raw[i]));
  }

  folded(i, mark) {
    return foldedField(this.raw[i], mark);
  }
}

function readNodes(profile, reader, size) {
  const parent = new Int32Array(size + 1);
  for (let i = 1; i <= size; i++) {
    let up = reader.uint(), at = i - 1;
    for (; up > 0; up--) at = parent[at];
    parent[i] = at;
  }
  const frame = new Int32Array(size + 1);
  for (let i = 1; i <= size; i++) frame[i] = reader.uint();
  profile.nodeParent = parent;
  profile.nodeFrame = frame;
}

function readLives(profile, reader, counts) {
  profile.processes = [];
  profile.threads = [];
  for (let i = 0; i < counts.processes; i++) {
    const pid = reader.uint(), name = reader.uint(), flags = reader.uint();
    const service = flags & 4 ? reader.uint() : 0;
    const [ownName, cgroup, container, containerId, unit, instance, user] = reader.column(new Int32Array(7));
    const names = { name: ownName, cgroup, container, containerId, unit, instance, user, service }; // what filters look at
    profile.processes.push({ pid, name, service, names, isKernel: !!(flags & 1), isTarget: !!(flags & 2) });
  }
  let first = 0;
  for (let i = 0; i < counts.threads; i++) {
    const thread = {
      number: i, process: reader.uint(), tid: reader.uint(), name: reader.uint(), isMain: !!reader.uint(),
      tail: reader.uint(), first, end: 0, cpu: 0, ticks: 0,
    };
    first += reader.uint();
    thread.end = first;
    profile.threads.push(thread);
  }
}

// By runs of a thread's rows [from, to).
function readRuns(reader, column, from, to) {
  for (let i = from; i < to;) {
    const value = reader.uint(), end = i + reader.uint();
    column.fill(value, i, end);
    i = end;
  }
}

function readSamples(profile, reader, counts, base) {
  const n = counts.samples;
  const time = (profile.time = new Float64Array(n)); // µs since the start of the recording
  const weight = (profile.weight = new Float64Array(n)); // ns
  const node = (profile.node = new Int32Array(n));
  const comm = (profile.comm = new Int32Array(n));
  for (const t of profile.threads) {
    let at = base;
    for (let i = t.first; i < t.end; i++) time[i] = at += reader.uint();
  }
  for (const t of profile.threads) {
    for (let i = t.first; i < t.end; i++) {
      weight[i] = reader.int() + (i > t.first ? (time[i] - time[i - 1]) * 1000 : 0);
      t.cpu += weight[i];
    }
    t.cpu += t.tail;
  }
  for (const t of profile.threads) {
    let before = 0;
    for (let i = t.first; i < t.end; i++) node[i] = before += reader.int();
  }
  for (const t of profile.threads) readRuns(reader, comm, t.first, t.end);
  profile.ticks = counts.ticks ? reader.column(new Float64Array(n)) : null;
  for (const t of profile.threads) {
    if (!profile.ticks) t.ticks = t.end - t.first;
    else for (let i = t.first; i < t.end; i++) t.ticks += profile.ticks[i];
  }
  profile.cpu = counts.cpus ? new Uint16Array(n) : null; // from 1 on; 0: unknown
  if (profile.cpu) for (const t of profile.threads) readRuns(reader, profile.cpu, t.first, t.end);
}

// What visits found (record --wall), as columns of its own: web/wall.js makes rows of it.
function readWaits(profile, reader, n, base) {
  const waits = (profile.waits = {
    since: new Float64Array(n), until: new Float64Array(n), found: new Float64Array(n), // µs since the start of the recording
    weight: new Float64Array(n), node: new Int32Array(n), comm: new Int32Array(n), state: new Uint8Array(n), holder: new Int32Array(n),
    range: [], // by thread: [first, end]
  });
  let first = 0;
  for (let k = 0; k < profile.threads.length; k++) waits.range.push([first, (first += reader.uint())]);
  for (const [from, to] of waits.range) for (let i = from; i < to; i++) waits.since[i] = reader.uint();
  for (const [from, to] of waits.range) {
    let at = base;
    for (let i = from; i < to; i++) {
      waits.since[i] += at;
      at = waits.until[i] = waits.since[i] + reader.uint();
    }
  }
  for (let i = 0; i < n; i++) waits.found[i] = waits.since[i] + reader.uint();
  reader.column(waits.weight);
  for (const [from, to] of waits.range) {
    let before = 0;
    for (let i = from; i < to; i++) waits.node[i] = before += reader.int();
  }
  for (const [from, to] of waits.range) readRuns(reader, waits.comm, from, to);
  reader.column(waits.state);
  waits.parked = waits.state.map((state) => state >> 4);
  waits.state = waits.state.map((state) => state & 15);
  reader.column(waits.holder);
}

// What frames have in common that are one function.
function describeFunctions(profile) {
  const flags = (profile.functionFlags = new Int32Array(profile.functionName.length).fill(-1));
  for (let i = 0; i < profile.frameFunction.length; i++) {
    const f = profile.frameFunction[i], own = profile.frameFlags[i];
    if (flags[f] < 0) flags[f] = own;
    else flags[f] = (flags[f] & (own | ~FLAG.INLINED)) | (own & FLAG.AMBIGUOUS);
  }
}

// By function: all full names that its name stands for.
function fullNames(profile, pairs) {
  const names = new Map();
  for (let i = 0; i + 1 < pairs.length; i += 2) {
    if (!names.has(pairs[i])) names.set(pairs[i], []);
    names.get(pairs[i]).push(profile.strings.shown(pairs[i + 1]));
  }
  return names;
}

// Of samples that count an event; `each`: ns of a tick that is CPU time.
function termsOf(event, unit, each = 1) {
  if (isTime(event, unit)) return { what: 'CPU time', quantity: (n) => duration(n * each), count: (n) => `${duration(n * each)} of CPU time` };
  const text = (n) => quantity(n, unit);
  return { what: event, quantity: text, count: (n) => `${text(n)} ${/^[a-z]/i.test(unit) && unit !== 'count' ? 'of ' : ''}${event}` };
}

export function decode(bytes) {
  const reader = new Reader(bytes);
  const words = JSON.parse(reader.text(reader.uint()));
  if (words.version !== VERSION) throw new Error(`data of version ${words.version}`);
  const counts = words.counts;
  const profile = { words, summary: words.summary };
  const strings = (profile.strings = new Strings(reader, counts.strings));
  profile.functionName = reader.column(new Int32Array(counts.functions));
  profile.functionModule = reader.column(new Int32Array(counts.functions));
  profile.frameFunction = reader.column(new Int32Array(counts.frames));
  profile.frameFlags = reader.column(new Int32Array(counts.frames));
  profile.frameFile = reader.column(new Int32Array(counts.frames));
  profile.frameLine = reader.column(new Int32Array(counts.frames));
  profile.framePath = reader.column(new Int32Array(counts.frames)); // 1 + the string of the file with the code
  profile.frameOwner = reader.column(new Int32Array(counts.frames)); // 1 + the process of code without a symbol
  profile.frameCode = reader.column(new Int32Array(counts.frames)); // from 1 on: of the innermost frame of an address
  profile.frameInstruction = reader.column(new Int32Array(counts.frames)); // of that code
  readNodes(profile, reader, counts.nodes);
  readLives(profile, reader, counts);
  readSamples(profile, reader, counts, Math.floor(words.base_us));
  if (counts.waits) readWaits(profile, reader, counts.waits, Math.floor(words.base_us));
  describeFunctions(profile);
  profile.behind = profile.threads.reduce((sum, t) => sum + t.tail, 0); // CPU time that no sample has, ns
  profile.untimed = words.untimed;
  profile.end = words.summary.duration_ns / 1000;
  for (const t of profile.threads) if (t.end > t.first) profile.end = Math.max(profile.end, profile.time[t.end - 1]);
  for (const until of profile.waits?.until ?? []) profile.end = Math.max(profile.end, until);
  profile.nameOf = (f) => strings.shown(profile.functionName[f]);
  const full = fullNames(profile, words.full_names ?? []);
  profile.fullNamesOf = (f) => full.get(f) ?? [];
  profile.moduleOf = (f) => strings.shown(profile.functionModule[f]);
  profile.threadName = (t) => strings.shown(t.name);
  profile.hasServices = profile.processes.some((p) => p.service);
  const firsts = new Map(); // by service: the first process
  profile.processes.forEach((p, i) => firsts.has(p.service) || firsts.set(p.service, i));
  profile.serviceOf = (p) => firsts.get(profile.processes[p]?.service ?? 0) ?? p;
  profile.serviceName = (p) => strings.shown(profile.processes[p]?.service ?? 0) || '[no service]';
  profile.processName = (p) => strings.shown(profile.processes[p]?.name ?? 0);
  profile.terms = { what: 'samples', count: (n) => plural(n, 'sample'), quantity: count, time: 'CPU time', use: 'CPU use', unit: 'CPU', confidence: (k, n) => `${interval(k, n)} (Wilson, by number of samples)` };
  const { event, event_unit: unit = 'count', tick_cpu_ns: tick } = words.summary, each = 1 / words.events_per_sample;
  profile.event = event ?? ''; // what the ticks are, if not those of a clock
  if (event) Object.assign(profile.terms, termsOf(event, unit), { confidence: (k, n) => `${interval(k * each, n * each)} (Wilson, by as many equal samples)` });
  profile.uncounted = words.summary.samples_known === false; // ticks are weights
  if (profile.uncounted && tick) Object.assign(profile.terms, termsOf('cpu', 'nanoseconds', tick));
  else if (profile.uncounted && !event) Object.assign(profile.terms, { what: 'weight', count: (n) => `weight ${count(n)}` });
  if (profile.uncounted) profile.terms.confidence = () => '';
  profile.measures = ['ticks', 'cpu'];
  profile.columns = []; // of rows, of measures beyond these
  return profile;
}

export async function readProfile(text) {
  return decode(await inflate(text));
}

// What the numbers of a .folded file are, if they are no counts of samples: as formats/out/folded.c writes it.
function foldedComment({ uncounted, foldedCount, words }) {
  const { event, event_unit: unit = 'count', events, samples, tick_cpu_ns: tick } = words.summary, each = Math.floor(events / samples);
  if (!uncounted && (foldedCount || !event)) return '';
  if (tick || (!uncounted && isTime(event, unit))) return `# weights: ${tick || 1} ns of CPU time\n`;
  const isEqual = !uncounted && each && events % samples === 0 && Math.abs(words.events_per_sample - each) < 1e-5;
  return `${isEqual ? `# samples: each ${each} ` : '# weights: '}${unit}${event && event !== 'weight' ? ` of ${event}` : ''}\n`;
}

// The lines of a .folded file: comm;frame;frame… count, root first, merged by text, in byte order.
export function folded(profile, filter) {
  const counts = new Map(); // comm << nodes, as the number comm * nodes + node
  const nodes = profile.nodeParent.length;
  for (const t of profile.threads) {
    const [from, to] = filter(t);
    for (let i = from; i < to; i++) {
      const key = profile.comm[i] * nodes + profile.node[i];
      counts.set(key, (counts.get(key) ?? 0) + (profile.foldedCount ? profile.foldedCount(i) : profile.ticks ? profile.ticks[i] : 1));
    }
  }
  const fields = [], paths = ['']; // by frame, by node
  const fieldOf = (frame) => {
    const flags = profile.frameFlags[frame];
    const mark = (flags & FLAG.CATEGORY) === 2 ? '_[k]' : flags & FLAG.AMBIGUOUS ? '_[?]' : '';
    return (fields[frame] ??= profile.strings.folded(profile.functionName[profile.frameFunction[frame]], mark));
  };
  for (let i = 1; i < nodes; i++) paths.push(`${paths[profile.nodeParent[i]]};${fieldOf(profile.nodeFrame[i])}`);
  const lines = new Map();
  for (const [key, ticks] of counts) {
    const comm = profile.strings.folded(Math.floor(key / nodes), '');
    const line = comm + paths[key % nodes];
    lines.set(line, (lines.get(line) ?? 0) + ticks);
  }
  const encoder = new TextEncoder();
  const bytes = [...lines].map(([line, ticks]) => [line, Math.round(ticks)]).filter(([, ticks]) => ticks).map(([line, ticks]) => [encoder.encode(`${line} ${ticks}\n`), `${line} ${ticks}\n`]);
  bytes.sort(([a], [b]) => {
    const size = Math.min(a.length, b.length);
    for (let i = 0; i < size; i++) if (a[i] !== b[i]) return a[i] - b[i];
    return a.length - b.length;
  });
  return foldedComment(profile) + bytes.map(([, line]) => line).join('');
}
