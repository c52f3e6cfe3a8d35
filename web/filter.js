// SPDX-License-Identifier: BSD-2-Clause
//
// Which part of the profile: the clauses of `sysprof report`, with the same text and the same result (docs/FILTERS.md). The
// list of clauses is that of filter/filter.c, whose threads are kept filter/owners.c, frames filter/filter_frames.c, rows
// filter/filter_rows.c.

import { FLAG, grown } from './data.js';
import { NO_NAMES, OWNERS, binaryOf } from './owners.js';
import { Pattern } from './pattern.js';
import { sequenceSize } from './text.js';

const CLAUSES_MAX = 64, CLAUSE_TEXT_MAX = 1000, FILTER_TEXT_MAX = 2 ** 20;
const EXPRESSIONS_MAX = 31; // bits of a set; all of --hide are one
const KEPT = 255; // instead of the line of the books that drops
const THREAD_KINDS = 6; // the first ones are about whole threads
const CPU_MAX = 65535;

// How several of a kind go together: as one line of the books, or each with its own, in the order of their texts or not.
const FILTER_KINDS = [
  ['process', 'together'], ['thread', 'together'], ['service', 'together'], ['container', 'together'], ['unit', 'together'], ['user', 'together'],
  ['@', 'together'], ['cpu', 'together'], ['state', 'together'],
  ['focus', 'each'], ['ignore', 'each'], ['hide', 'together'], ['show-from', 'in-order'], ['collapse', 'in-order'],
].map(([name, group], order) => ({ name, group, order }));

const TIMES = /^[-+]?\d[-+0-9.:TZa-z]*$/; // what is no such slice is the name of markers

// ---- the list of clauses -----------------------------------------------------------------------------

const encoder = new TextEncoder();

function compareTexts(a, b) {
  const [x, y] = [encoder.encode(a), encoder.encode(b)], size = Math.min(x.length, y.length);
  for (let i = 0; i < size; i++) if (x[i] !== y[i]) return x[i] - y[i];
  return x.length - y.length;
}

// Of a list as 0,2-4: which of them it has, by number + 1; null: it is none.
function parseCpus(text) {
  const has = new Uint8Array(CPU_MAX + 2);
  for (const part of text.split(',')) {
    const [, first, last = first] = /^(\d+)(?:-(\d+))?$/.exec(part) ?? [];
    if (first === undefined || Number(last) < Number(first) || Number(last) > CPU_MAX) return null;
    has.fill(1, Number(first) + 1, Number(last) + 2);
  }
  return has;
}

function makeClause(kind, text) {
  const option = kind.name === '@' ? '@' : `--${kind.name}`;
  if (!text) throw new Error(`${option}: the value is empty`);
  if (encoder.encode(text).length > CLAUSE_TEXT_MAX) throw new Error(`${option}: longer than ${CLAUSE_TEXT_MAX} bytes`);
  if (text.includes('\0')) throw new Error(`${option}: the value has a NUL`);
  if (kind.order < THREAD_KINDS && text === '!') throw new Error(`${option} !: no name after the !`);
  if (kind.name === 'state') throw new Error(`--state ${text}: choose Waiting, grouped by state`);
  if (kind.name === '@') throw new Error(`@${text}: ${TIMES.test(text) ? 'a part of the time is selected in the timeline' : `the page has no markers; take the slice before: sysprof convert FILE@${text}`}`);
  const clause = { kind, text, pattern: null, cpus: kind.name === 'cpu' ? parseCpus(text) : null };
  if (kind.name === 'cpu' && !clause.cpus) throw new Error(`--cpu ${text}: expected CPUs, as in 0,2-4`);
  if (clause.cpus || kind.order < THREAD_KINDS || (kind.name === 'collapse' && text === 'dso')) return clause;
  try {
    clause.pattern = new Pattern(text);
  } catch (error) {
    throw new Error(`${option} ${text}: ${error.message}`, { cause: error });
  }
  return clause;
}

function orderOfClauses(a, kind, text) {
  const order = a.kind.order - kind.order || compareTexts(a.text, text);
  return order && a.kind === kind && kind.group === 'in-order' ? -1 : order;
}

const expressions = (clauses) => clauses.filter((c) => c.pattern && c.kind.name !== 'hide').length + clauses.some((c) => c.kind.name === 'hide');

// The list with one more, in its place. Throws an Error that says what is wrong with it.
export function addClause(clauses, name, text) {
  const kind = FILTER_KINDS.find((k) => k.name === name);
  let place = 0;
  for (let i = 0; i < clauses.length; i++) {
    const order = orderOfClauses(clauses[i], kind, text);
    if (!order) return clauses;
    if (order < 0) place = i + 1;
  }
  if (clauses.length === CLAUSES_MAX) throw new Error(`more than ${CLAUSES_MAX} filters`);
  const more = [...clauses.slice(0, place), makeClause(kind, text), ...clauses.slice(place)];
  if (expressions(more) > EXPRESSIONS_MAX) throw new Error(`more than ${EXPRESSIONS_MAX} regular expressions`);
  return more;
}

// A word that a shell reads back.
function printClause({ kind, text }) {
  const word = `${kind.name === '@' ? '@' : `--${kind.name}=`}`;
  return /^[-0-9A-Za-z_.,:/@%+=\u0080-\uffff]*$/.test(text) ? word + text : `'${word}${text.replaceAll("'", "'\\''")}'`;
}

export function printClauses(clauses) {
  return clauses.map(printClause).join(' ');
}

// The words of a command line, without their quotes.
function wordsOf(text) {
  const words = [];
  let quoted = false, word = null;
  for (let at = 0; at < text.length; at++) {
    const c = text[at];
    if (c === ' ' && !quoted) {
      if (word !== null) words.push(word);
      word = null;
      continue;
    }
    word ??= '';
    if (c === "'") quoted = !quoted;
    else if (c === '\\' && !quoted && at + 1 < text.length) word += text[++at];
    else word += c;
  }
  return word === null ? words : [...words, word];
}

export function parseClauses(text) {
  if (text.length > FILTER_TEXT_MAX) throw new Error('not a filter: too long');
  let clauses = [];
  const words = wordsOf(text);
  for (let i = 0; i < words.length; i++) {
    const word = words[i], match = /^(?:(@)|--([a-z-]+)(?:=|$))(.*)$/s.exec(word), name = match?.[1] ?? match?.[2];
    // as on the command line, the value may be the next word
    const value = match?.[2] && !word.includes('=') ? words[++i] : match?.[3];
    if (value === undefined || !FILTER_KINDS.some((kind) => kind.name === name)) throw new Error(`not a filter: ${word}`);
    clauses = addClause(clauses, name, value);
  }
  return clauses;
}

// The lists of clauses that are one line of the books, one after the other.
function linesOf(clauses) {
  const lines = [];
  for (const clause of clauses) {
    const last = lines[lines.length - 1];
    if (last && clause.kind.group === 'together' && last[0].kind === clause.kind) last.push(clause);
    else lines.push([clause]);
  }
  return lines;
}

// ---- whose samples -----------------------------------------------------------------------------------

// 1: a clause on whole threads drops what it matches.
const drops = ({ kind, text }) => Number(kind.order < THREAD_KINDS && text.startsWith('!'));

// By thread: the line that drops all of it, or KEPT.
function judgeThreads(profile, lines) {
  const { strings, processes, threads } = profile, known = [];
  const text = (i) => (known[i] ??= binaryOf(strings.raw[i]));
  const wanted = lines.map((list) => list.filter((c) => c.kind.order < THREAD_KINDS).map((c) => [OWNERS[c.kind.name], binaryOf(encoder.encode(c.text.slice(drops(c)))), drops(c)]));
  return threads.map((thread) => {
    const process = processes[thread.process], names = { ...NO_NAMES, thread: text(thread.name) };
    for (const [key, i] of Object.entries(process?.names ?? {})) names[key] = text(i);
    const line = wanted.findIndex((list) => {
      const matched = list.filter(([matches, pattern]) => matches(pattern, names, thread, process));
      return matched.some(([, , isDrop]) => isDrop) || (!matched.length && list.some(([, , isDrop]) => !isDrop));
    });
    return line < 0 ? KEPT : line;
  });
}

// ---- frames and functions that a filter adds: all parts of a profile share them -----------------------

class Additions {
  constructor(profile) {
    this.profile = profile;
    this.known = profile.addedFrames ??= new Map();
    this.functions = [];
    this.frames = [];
  }

  frame(key, make) {
    let frame = this.known.get(key);
    if (frame === undefined) {
      frame = this.profile.frameFunction.length + this.frames.length;
      this.frames.push(make());
      this.known.set(key, frame);
    }
    return frame;
  }

  // The same one. `isOuter`: not inlined, because what it was inlined into is not shown. `inner`: the innermost frame of
  // the address, if it is now this one; or -1.
  variant(frame, isOuter, inner) {
    const { frameFunction, frameFlags, frameFile, frameLine, framePath, frameCode, frameInstruction } = this.profile;
    const flags = isOuter ? frameFlags[frame] & ~FLAG.INLINED : frameFlags[frame], code = inner < 0 ? 0 : frameCode[inner], instruction = inner < 0 ? 0 : frameInstruction[inner];
    if (flags === frameFlags[frame] && code === frameCode[frame] && instruction === frameInstruction[frame]) return frame;
    return this.frame(`${frame} ${flags} ${code} ${instruction}`, () => [frameFunction[frame], flags, frameFile[frame], frameLine[frame], framePath[frame], code, instruction]);
  }

  // Of a whole file; files of one name are one function.
  file(key, frame) {
    return this.frame(key, () => {
      const { profile } = this, module = profile.functionModule[profile.frameFunction[frame]], flags = profile.frameFlags[frame] & FLAG.CATEGORY;
      const name = profile.strings.raw[module], files = (profile.addedFiles ??= new Map());
      if (!files.has(module)) {
        files.set(module, profile.functionName.length + this.functions.length);
        this.functions.push([name[0] === 0x5b ? name : Uint8Array.from([0x5b, ...name, 0x5d]), module, flags]);
      }
      return [files.get(module), flags, 0, 0, profile.framePath[frame], 0, 0];
    });
  }

  finish() {
    const { profile, functions, frames } = this, strings = profile.strings.raw;
    const add = (columns, rows) => rows.length && columns.forEach((column, k) => (profile[column] = grown(profile[column], rows.map((row) => row[k]))));
    add(['functionName', 'functionModule', 'functionFlags'], functions.map(([name, module, flags]) => [strings.push(name) - 1, module, flags]));
    add(['frameFunction', 'frameFlags', 'frameFile', 'frameLine', 'framePath', 'frameCode', 'frameInstruction'], frames);
  }
}

// The nodes that are left. Equal ones of different nodes stay apart: trees that are shown are merged by function anyway.
class NodeTable {
  constructor(capacity) {
    this.parent = new Int32Array(capacity);
    this.frame = new Int32Array(capacity);
    this.count = 1;
    this.shared = new Map();
  }

  add(parent, frame) {
    if (this.count === this.parent.length) {
      this.parent = grown(this.parent, new Int32Array(this.count));
      this.frame = grown(this.frame, new Int32Array(this.count));
    }
    this.parent[this.count] = parent;
    this.frame[this.count] = frame;
    return this.count++;
  }

  // The same one for equal arguments: places that begin alike share their outer frames.
  share(parent, frame) {
    const key = parent * 2 ** 26 + frame;
    if (!this.shared.has(key)) this.shared.set(key, this.add(parent, frame));
    return this.shared.get(key);
  }

  finish() {
    return { parent: this.parent.slice(0, this.count), frame: this.frame.slice(0, this.count) };
  }
}

// ---- which frames ------------------------------------------------------------------------------------

// Nodes of samples, and of callers: where a place ends.
function endsOf(profile) {
  if (profile.placeEnds) return profile.placeEnds;
  const { nodeParent, nodeFrame, frameFlags, node, waits } = profile, ends = (profile.placeEnds = new Uint8Array(nodeParent.length));
  for (let i = 0; i < node.length; i++) ends[node[i]] = 1;
  for (const at of waits?.node ?? []) ends[at] = 1;
  for (let i = 1; i < ends.length; i++) if (!(frameFlags[nodeFrame[i]] & FLAG.INLINED)) ends[nodeParent[i]] = 1;
  return ends;
}

// A place is the frames of one address: a function and what is inlined into it. Stacks are a tree of frames, so the frames
// of a place are above each other, and all but the outermost are INLINED. What becomes of a place depends on all of its
// frames: nodes where one ends are decided, each by the end of its caller.
class FrameWalk {
  constructor(profile, lines) {
    this.profile = profile;
    this.bits = { focus: [], ignore: [], hide: [], 'show-from': [], collapse: [] };
    this.clauses = []; // [clause, bit]
    this.lineOf = []; // by bit
    this.files = false; // --collapse dso
    lines.forEach((list, line) => list.forEach((clause) => this.addClause(clause, line)));
    const all = (list) => list.reduce((set, bit) => set | bit, 0);
    this.focus = all(this.bits.focus);
    this.ignore = all(this.bits.ignore);
    this.hide = all(this.bits.hide);
    this.showFrom = this.bits['show-from'];
    this.collapse = all(this.bits.collapse);
    this.changing = this.hide | this.collapse | all(this.showFrom);
    this.changes = this.changing !== 0 || this.files;
  }

  addClause(clause, line) {
    if (clause.kind.order < THREAD_KINDS || clause.cpus) return;
    if (!clause.pattern) {
      this.files = true;
      return;
    }
    const own = this.bits[clause.kind.name];
    const bit = clause.kind.name === 'hide' && own.length ? own[0] : 2 ** this.lineOf.length;
    if (!own.includes(bit)) {
      own.push(bit);
      this.lineOf.push(line);
    }
    this.clauses.push([clause, bit]);
    clause.pattern.taken = 0;
  }

  matchText(bytes) {
    let set = 0;
    for (const [clause, bit] of this.clauses) {
      if (set & bit) continue;
      try {
        if (clause.pattern.matches(bytes)) set |= bit;
      } catch (error) {
        throw new Error(`--${clause.kind.name} ${clause.text} ${error.message}`, { cause: error });
      }
    }
    return set;
  }

  // By frame: what matches its function's name or the file of its source, and what the file with the code.
  matchFrames() {
    const { strings, functionName, frameFunction, frameFile, framePath } = this.profile, count = frameFunction.length;
    const sets = new Int32Array(strings.raw.length).fill(-1);
    const matchString = (i) => (sets[i] < 0 ? (sets[i] = this.matchText(strings.raw[i])) : sets[i]);
    this.frameSet = new Int32Array(count);
    this.pathSet = new Int32Array(count);
    for (let f = 0; f < count; f++) {
      this.frameSet[f] = matchString(functionName[frameFunction[f]]) | matchString(frameFile[f]);
      if (framePath[f]) this.pathSet[f] = matchString(framePath[f] - 1);
    }
  }

  // The line that drops a sample, by the lowest bit: that of the first clause.
  lineOfBits(set) {
    return this.lineOf[31 - Math.clz32(set & -set)];
  }

  judge(matched, visible, begun) {
    if (this.focus & ~matched) return this.lineOfBits(this.focus & ~matched);
    if (this.ignore & matched) return this.lineOfBits(this.ignore & matched);
    if (this.hide && !visible) return this.lineOfBits(this.hide);
    if (begun < this.showFrom.length) return this.lineOfBits(this.showFrom[begun]);
    return KEPT;
  }

  // The frames of the place that ends at a node, which --hide leaves, innermost first, into `kept`. The node of its caller.
  takePlace(node) {
    const { nodeParent, nodeFrame, frameFlags } = this.profile;
    this.kept.length = 0;
    for (let at = node; ; at = nodeParent[at]) {
      const frame = nodeFrame[at];
      if (!((this.frameSet[frame] | this.pathSet[frame]) & this.hide)) this.kept.push(frame);
      if (!(frameFlags[frame] & FLAG.INLINED) || !nodeParent[at]) return nodeParent[at];
    }
  }

  // Does --show-from match what is kept of a place? Frames outside of the outermost match go.
  trim(bit) {
    const { kept } = this;
    if (this.pathSet[kept[0]] & bit) return true;
    for (let i = kept.length - 1; i >= 0; i--) {
      if (!(this.frameSet[kept[i]] & bit)) continue;
      kept.length = i + 1;
      return true;
    }
    return false;
  }

  // Of frames that match a --collapse, as the one outside does, the outer one stays. Outermost first, into `left`.
  collapsePlace(inside) {
    const { kept, left } = this;
    left.length = 0;
    for (let i = kept.length - 1; i >= 0; i--) {
      const matched = (this.frameSet[kept[i]] | this.pathSet[kept[i]]) & this.collapse;
      let goes = false;
      for (const bit of this.bits.collapse) { // each clause sees what those before it have left
        goes = (matched & inside & bit) !== 0;
        inside = (inside & ~bit) | (matched & bit);
        if (goes) break;
      }
      if (!goes) left.push(kept[i]);
    }
    return inside;
  }

  // The new node of what is left of a place.
  addNodes(node, parent) {
    const { left, added } = this;
    if (!left.length) return parent;
    if (!this.files) {
      const inner = this.profile.nodeFrame[node], last = left.length - 1;
      if (!last) return this.nodes.add(parent, added.variant(left[0], true, inner));
      left.forEach((frame, i) => (parent = this.nodes.share(parent, added.variant(frame, !i, i === last ? inner : -1))));
      return parent;
    }
    const { frameFunction, functionModule, framePath } = this.profile, frame = left[0];
    const key = `${functionModule[frameFunction[frame]]} ${framePath[frame]}`;
    const file = added.file(key, frame) + 1;
    if (this.file[node] === file) return parent;
    this.file[node] = file;
    return this.nodes.add(parent, file - 1);
  }

  // What is left of a node that is a place of its own, which no clause matches.
  pass(node, caller, frame) {
    const { visible, begun, made } = this;
    visible[node] = 1;
    begun[node] = begun[caller];
    made[node] = begun[node] < this.showFrom.length ? made[caller] : this.nodes.add(made[caller], frame);
  }

  decide(node) {
    const { nodeParent, nodeFrame, frameFlags } = this.profile, frame = nodeFrame[node];
    if (!((this.frameSet[frame] | this.pathSet[frame]) & this.changing || frameFlags[frame] & FLAG.INLINED || this.files)) {
      this.pass(node, nodeParent[node], frame);
      return;
    }
    const caller = this.takePlace(node);
    this.visible[node] = this.visible[caller];
    this.begun[node] = this.begun[caller];
    this.inside[node] = this.inside[caller];
    this.file[node] = this.file[caller];
    this.made[node] = this.made[caller];
    if (!this.kept.length) return;
    this.visible[node] = 1;
    for (let i = 0; i < this.showFrom.length; i++) if (this.trim(this.showFrom[i]) && i === this.begun[node]) this.begun[node]++;
    if (this.begun[node] < this.showFrom.length) return;
    this.inside[node] = this.collapsePlace(this.inside[caller]);
    this.made[node] = this.addNodes(node, this.made[caller]);
  }


  // By node, what matches it and its callers.
  matchNodes() {
    const { matched, frameSet, pathSet, profile: { nodeParent, nodeFrame } } = this, own = frameSet.map((set, f) => set | pathSet[f]);
    for (let i = 1; i < matched.length; i++) matched[i] = matched[nodeParent[i]] | own[nodeFrame[i]];
  }

  decideAll(ends) {
    const { matched, line, visible, begun } = this;
    for (let i = 1; i < line.length; i++) {
      if (!ends[i]) continue;
      this.decide(i);
      line[i] = this.judge(matched[i], visible[i], begun[i]);
    }
  }

  // {line, drops, node, parent, frame}: by node the line that drops a sample, whether any does, and the node that it becomes;
  // the tables of those.
  run() {
    const { nodeParent, nodeFrame } = this.profile, count = nodeParent.length, matched = (this.matched = new Int32Array(count));
    const line = (this.line = new Uint8Array(count).fill(KEPT));
    this.matchFrames();
    this.matchNodes();
    line[0] = this.judge(0, true, 0); // without frames: nothing hides them
    if (!this.changes) {
      for (let i = 1; i < count; i++) line[i] = this.judge(matched[i], true, 0);
      return { line, drops: line.some((by) => by !== KEPT), node: null, parent: nodeParent, frame: nodeFrame };
    }
    Object.assign(this, { kept: [], left: [], added: new Additions(this.profile), nodes: new NodeTable(count + 1) });
    Object.assign(this, { visible: new Uint8Array(count), begun: new Uint8Array(count), inside: new Int32Array(count), file: new Int32Array(count), made: new Int32Array(count) });
    this.decideAll(endsOf(this.profile));
    this.added.finish();
    return { line, drops: line.some((by) => by !== KEPT), node: this.made, ...this.nodes.finish() };
  }
}

// ---- rows --------------------------------------------------------------------------------------------

// Throws an Error if samples lack what a clause is about: "none" would be wrong.
export function checkData(profile, clauses) {
  const clause = clauses.find(({ cpus }) => cpus);
  if (clause && !profile.cpu && profile.node.length) throw new Error(`--cpu ${clause.text}: the samples have no CPU`);
}

// What clauses say of CPUs: their line and which numbers they have; line -1: nothing.
function judgeCpus(profile, lines) {
  const line = lines.findIndex(([clause]) => clause.cpus), has = new Uint8Array(CPU_MAX + 2);
  if (line < 0) return { line, has, cpu: null };
  for (const { cpus } of lines[line]) cpus.forEach((wanted, cpu) => (has[cpu] |= wanted));
  return { line, has, cpu: profile.cpu };
}

// Numbers of the rows of a range that are kept, behind the others; `sums` has those of two columns by line, and of KEPT.
function keepRows([from, to], lineOfNode, node, { line: cpuLine, has, cpu }, [ticks, weight], [tickSums, weightSums], kept) {
  const { rows } = kept;
  let { count } = kept;
  for (let i = from; i < to; i++) {
    const line = cpuLine < 0 || has[cpu[i]] ? lineOfNode[node[i]] : cpuLine;
    tickSums[line] += ticks ? ticks[i] : 1;
    weightSums[line] += weight[i];
    rows[count] = i;
    if (line === KEPT) count++;
  }
  kept.count = count;
}

// A loop for each type: one for all of them is several times slower.
function takeFloats(copy, column, rows) {
  for (let i = 0; i < copy.length; i++) copy[i] = column[rows[i]];
}

function takeInts(copy, column, rows) {
  for (let i = 0; i < copy.length; i++) copy[i] = column[rows[i]];
}

function takeBytes(copy, column, rows) {
  for (let i = 0; i < copy.length; i++) copy[i] = column[rows[i]];
}

// The column itself if all rows are kept: new memory takes longer than the rest.
function columnOf(column, { rows, count }) {
  if (count === column.length) return column;
  const copy = new column.constructor(count);
  if (copy instanceof Float64Array) takeFloats(copy, column, rows);
  else if (copy instanceof Int32Array) takeInts(copy, column, rows);
  else takeBytes(copy, column, rows);
  return copy;
}

function mapped(node, nodes) {
  const copy = new Int32Array(node.length);
  takeInts(copy, nodes, node);
  return copy;
}

// `nodes`: what they become, or null.
function columnsOf(table, names, kept, nodes) {
  const columns = {};
  for (const name of names) columns[name] = table[name] && columnOf(table[name], kept);
  if (nodes) columns.node = mapped(columns.node, nodes);
  return columns;
}

let rowNumbers = new Uint32Array(0); // of a filter while it is applied

// Room for rows, and one more: each is written before it is judged.
function newKept(size) {
  if (rowNumbers.length <= size) rowNumbers = new Uint32Array(size + 1);
  return { rows: rowNumbers, count: 0 };
}

// Is a row on CPUs that are not wanted? -1: no row, which has none.
const isOnOthers = ({ line, has, cpu }, row) => line >= 0 && (row < 0 || !has[cpu[row]]);

// All of them.
function keepSamples({ threads, node }, nodes) {
  return { threads: threads.map((t) => ({ ...t })), node: nodes ? mapped(node, nodes) : node };
}

// A thread's CPU time after its last sample goes with that one, or with what has no frames.
function filterSamples(profile, ofThreads, cpus, walked, books) {
  if (!walked.drops && cpus.line < 0 && ofThreads.every((line) => line === KEPT)) return keepSamples(profile, walked.node);
  const { ticks, weight, node } = profile, kept = newKept(node.length), sums = [new Float64Array(KEPT + 1), new Float64Array(KEPT + 1)];
  const threads = profile.threads.map((t) => {
    const thread = { ...t, first: kept.count, cpu: 0, ticks: 0, tail: 0 }, line = ofThreads[t.number];
    const bookOf = (to) => (to === KEPT ? thread : books[to]);
    if (line !== KEPT) {
      books[line].ticks += t.ticks;
      books[line].cpu += t.cpu;
    } else {
      sums[0][KEPT] = sums[1][KEPT] = 0;
      keepRows([t.first, t.end], walked.line, node, cpus, [ticks, weight], sums, kept);
      thread.ticks = sums[0][KEPT];
      thread.cpu = sums[1][KEPT];
      const last = isOnOthers(cpus, t.end > t.first ? t.end - 1 : -1) ? cpus.line : walked.line[t.end > t.first ? node[t.end - 1] : 0];
      if (last === KEPT) thread.tail = t.tail;
      bookOf(last).cpu += t.tail;
    }
    thread.end = kept.count;
    return thread;
  });
  books.forEach((book, line) => {
    book.ticks += sums[0][line];
    book.cpu += sums[1][line];
  });
  return { threads, ...columnsOf(profile, ['time', 'weight', 'node', 'comm', 'ticks'], kept, walked.node) };
}

// Waits are on no CPU.
function filterWaits({ waits }, ofThreads, cpus, walked, books, whole) {
  const { weight, node } = waits, kept = newKept(node.length), sums = [new Float64Array(KEPT + 1), new Float64Array(KEPT + 1)];
  const range = waits.range.map((rows, number) => {
    const first = kept.count, line = ofThreads[number] === KEPT && cpus.line >= 0 ? cpus.line : ofThreads[number];
    if (line === KEPT) keepRows(rows, walked.line, node, cpus, [null, weight], sums, kept);
    else for (let i = rows[0]; i < rows[1]; i++) sums[1][line] += weight[i];
    return [first, kept.count];
  });
  books.forEach((book, line) => (book.waits += sums[1][line]));
  whole.waits += sums[1][KEPT];
  return { ...waits, ...columnsOf(waits, ['since', 'until', 'found', 'weight', 'node', 'comm', 'state', 'holder', 'parked'], kept, walked.node), range };
}

// The part of a profile that clauses keep; its `filter` has what they kept and dropped: {ticks, cpu, waits} of each line.
export function applyFilter(profile, clauses) {
  if (!clauses.length) return profile;
  checkData(profile, clauses);
  const lines = linesOf(clauses), ofThreads = judgeThreads(profile, lines), cpus = judgeCpus(profile, lines), walked = new FrameWalk(profile, lines).run();
  const dropped = lines.map((list) => ({ text: printClauses(list), ticks: 0, cpu: 0, waits: 0 })), kept = { ticks: 0, cpu: 0, waits: 0 };
  const part = Object.assign(Object.create(profile), { nodeParent: walked.parent, nodeFrame: walked.frame }, filterSamples(profile, ofThreads, cpus, walked, dropped));
  if (profile.waits) part.waits = filterWaits(profile, ofThreads, cpus, walked, dropped, kept);
  for (const t of part.threads) {
    kept.ticks += t.ticks;
    kept.cpu += t.cpu;
  }
  part.filter = { clauses, kept, dropped };
  return part;
}

// ---- clauses for what is pointed at ------------------------------------------------------------------

// Each character of a name, and "" for a byte that is none.
function* charactersOf(bytes) {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  for (let at = 0, size; at < bytes.length; at += size || 1) {
    size = sequenceSize(bytes, at);
    yield size ? decoder.decode(bytes.subarray(at, at + size)) : '';
  }
}

// An expression that matches this name alone.
export function expressionOf(bytes) {
  return `^${[...charactersOf(bytes)].map((c) => (c === '' ? '\\x{fffd}' : c.replace(/[\\.+*?()|[\]{}^$]/, '\\$&'))).join('')}$`;
}

// A pattern that matches this name alone.
export function globOf(bytes) {
  return [...charactersOf(bytes)].map((c) => (c === '' ? '?' : c.replace(/[\\*?[\]]/, '\\$&'))).join('').replace(/^!/, '\\!');
}

// A clause as a reader sees it: expressions for one name as that name.
export function clauseText({ kind, text }) {
  const inner = /^\^(.*)\$$/s.exec(text)?.[1], plain = inner?.replace(/\\([\\.+*?()|[\]{}^$])/g, '$1');
  const isOne = plain !== undefined && kind.order >= THREAD_KINDS && expressionOf(encoder.encode(plain)) === text;
  if (drops({ kind, text })) return `drop ${kind.name} ${text.slice(1)}`;
  return `${kind.name === 'ignore' ? 'drop' : kind.name.replace('-', ' ')} ${isOne ? plain : text}`;
}
