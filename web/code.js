// SPDX-License-Identifier: BSD-2-Clause
//
// Machine code and sources that the page carries (formats/out/html_code.c), and the samples of each line and instruction of
// a function: those of `sysprof report --annotate`, counted from the rows that are kept and selected.

import { FLAG, Reader, Strings, inflate } from './data.js';
import { sanitize } from './text.js';

const TAB = 8, LINE_MAX = 1024; // as formats/out/annotation.c has them
const CLONES = ['.cold', '.part.', '.constprop.', '.isra.', '.lto_priv', '.llvm.', ' [clone '];

// ---- what the page carries ---------------------------------------------------------------------------

function readOneCode(reader, strings) {
  const code = { module: strings.shown(reader.uint()), problem: reader.uint(), address: reader.uint() };
  const count = reader.uint(), rows = reader.uint(), sizes = reader.column(new Uint32Array(count));
  code.problem = code.problem ? strings.shown(code.problem) : '';
  code.texts = reader.column(new Int32Array(count));
  code.jumps = reader.column(new Int32Array(count)); // 1 + the instruction that it jumps to
  code.offsets = new Uint32Array(count + 1);
  for (let i = 0; i < count; i++) code.offsets[i + 1] = code.offsets[i] + sizes[i];
  code.rows = [];
  code.rowOf = new Int32Array(count).fill(-1); // by instruction
  let at = 0;
  for (let k = 0, line = 0; k < rows; k++) {
    const before = at;
    at += reader.uint();
    if (k) code.rowOf.fill(k - 1, before, at);
    const depth = reader.uint(), name = reader.uint(), file = reader.uint();
    line += reader.int();
    code.rows.push({ depth, name: name ? strings.shown(name) : '', file: file ? strings.shown(file) : '', line });
  }
  if (rows) code.rowOf.fill(rows - 1, at);
  return code;
}

function readOneSource(reader, strings) {
  const source = { path: strings.shown(reader.uint()), state: strings.shown(reader.uint()), isChanged: !!reader.uint(), spans: [] };
  for (let spans = reader.uint(); spans > 0; spans--) {
    const first = reader.uint(), size = reader.uint();
    source.spans.push({ first, bytes: reader.bytes.subarray(reader.at, reader.at + size) });
    reader.at += size;
  }
  return source;
}

export async function readCode(text) {
  const reader = new Reader(await inflate(text)), words = JSON.parse(reader.text(reader.uint())), strings = new Strings(reader, words.strings);
  const code = { words, strings, codes: [null], sources: new Map() };
  for (let i = 0; i < words.codes; i++) code.codes.push(readOneCode(reader, strings));
  for (let i = 0; i < words.sources; i++) {
    const source = readOneSource(reader, strings);
    code.sources.set(source.path, source);
  }
  return code;
}

// A jump within its code is written without its target.
export function instructionText({ strings }, code, i) {
  const text = strings.shown(code.texts[i]);
  return code.jumps[i] && text.endsWith('0x') ? text + (code.address + code.offsets[code.jumps[i] - 1]).toString(16) : text;
}

// Where lines begin, and behind the last one.
function lineStarts({ bytes }) {
  const starts = [0];
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) starts.push(at + 1);
  if (starts[starts.length - 1] < bytes.length) starts.push(bytes.length);
  return starts;
}

// Tabs as blanks, what is no text as \xNN.
function lineText(bytes) {
  let size = Math.min(bytes.length, LINE_MAX);
  const out = [];
  if (size === bytes.length) while (size && (bytes[size - 1] === 10 || bytes[size - 1] === 13)) size--;
  for (let i = 0; i < size; i++) {
    if (bytes[i] !== 9) out.push(bytes[i]);
    else for (let n = TAB - (out.length % TAB); n > 0; n--) out.push(32);
  }
  return sanitize(Uint8Array.from(out));
}

// null: the page does not have it.
export function sourceLine(source, line) {
  for (const span of source?.spans ?? []) {
    span.starts ??= lineStarts(span);
    const i = line - span.first;
    if (i >= 0 && i < span.starts.length - 1) return lineText(span.bytes.subarray(span.starts[i], span.starts[i + 1]));
  }
  return null;
}

const copyKeyOf = (fn, code, tier) => `${fn}.${code}.${tier}`;
const codeOfKey = (key) => Number(key.split('.')[1]);

// ---- which functions ---------------------------------------------------------------------------------

// "find.cold": a part or version that a compiler made of one function.
function isCloneOf(name, base) {
  return name === base || (name.startsWith(base) && CLONES.some((end) => name.startsWith(end, base.length)));
}

// Copies of a function: in its module, or those of that name everywhere; `only`: the key of one of them, or ''.
export function copiesWanted(profile, fn, everywhere, only) {
  const wanted = new Uint8Array(profile.functionName.length), base = profile.nameOf(fn), { functionModule } = profile;
  for (let f = 0; f < wanted.length; f++) if ((everywhere || functionModule[f] === functionModule[fn]) && isCloneOf(profile.nameOf(f), base)) wanted[f] = 1;
  return { functions: wanted, only, hasCode: (code, number) => (only ? number === codeOfKey(only) : everywhere || code.module === profile.moduleOf(fn)) };
}

// ---- samples of nodes --------------------------------------------------------------------------------

// Of what is selected: by measure and node, the samples that end at it, and those that it is the innermost frame of an
// address in (a sample's or a caller's). `outer`: the outermost frame of the address.
export class NodeCounts {
  constructor(profile, ranges) {
    const { nodeParent, nodeFrame, frameFlags, measures } = profile, n = nodeParent.length;
    this.profile = profile;
    this.measures = measures;
    this.self = measures.map(() => new Float64Array(n));
    for (const t of profile.threads) this.addRows(...ranges(t));
    this.ends = this.self.map((self) => {
      const total = self.slice(), inner = new Float64Array(n);
      for (let i = n - 1; i > 0; i--) {
        total[nodeParent[i]] += total[i];
        if (frameFlags[nodeFrame[i]] & FLAG.INLINED) inner[nodeParent[i]] += total[i];
      }
      return total.map((sum, i) => sum - inner[i]);
    });
    this.outer = new Int32Array(n);
    for (let i = 1; i < n; i++) this.outer[i] = frameFlags[nodeFrame[i]] & FLAG.INLINED && nodeParent[i] ? this.outer[nodeParent[i]] : i;
  }

  addRows(from, to) {
    const { node, ticks, weight, columns } = this.profile, { self } = this;
    for (let i = from; i < to; i++) {
      const at = node[i];
      self[0][at] += ticks ? ticks[i] : 1;
      self[1][at] += weight[i];
      for (let k = 0; k < columns.length; k++) self[2 + k][at] += columns[k][i];
    }
  }
}

// ---- samples of lines and instructions ---------------------------------------------------------------

// `copies`: those that are counted (copiesWanted()). `lines` and `copies` have {self, total} by
// measure, as `whole` has.
export class CodeCounts {
  constructor(nodes, code, { functions: wanted, only, hasCode }) {
    const { profile } = nodes, { nodeParent, nodeFrame, frameFunction, frameFlags } = profile, n = nodeParent.length;
    Object.assign(this, { nodes, profile, code, wanted, lines: [], copies: [], lineNumbers: new Map(), copyNumbers: new Map(), whole: this.newCounts(nodes) });
    this.lineOfFrame = new Int32Array(frameFunction.length).fill(-1);
    this.copyOf = new Int32Array(n).fill(-1); // by node that is the innermost frame of an address of the function
    const has = new Uint8Array(n); // the frames up to the outermost one of the address have the function
    this.above = new Int32Array(n); // the nearest caller that has it
    for (let i = 1; i < n; i++) {
      const frame = nodeFrame[i], caller = nodeParent[nodes.outer[i]];
      has[i] = wanted[frameFunction[frame]] | (frameFlags[frame] & FLAG.INLINED ? has[nodeParent[i]] : 0);
      this.above[i] = this.copyOf[caller] >= 0 ? caller : this.above[caller];
      if (has[i] && (!only || this.keyOf(i) === only)) this.copyOf[i] = this.copyAt(i);
    }
    for (let i = 1; i < n; i++) if (this.copyOf[i] >= 0) this.add(i);
    this.copies = this.copies.filter((copy) => copy.total.some((sum) => sum)).sort((a, b) => b.self[0] - a.self[0] || b.total[0] - a.total[0] || a.fn - b.fn || a.code - b.code);
    this.addQuietLines(hasCode);
  }

  newCounts({ measures }) {
    return { self: new Float64Array(measures.length), total: new Float64Array(measures.length) };
  }

  keyOf(node) {
    const { nodeFrame, frameFunction, frameFlags, frameCode } = this.profile, frame = nodeFrame[node];
    return copyKeyOf(frameFunction[nodeFrame[this.nodes.outer[node]]], frameCode[frame], frameFlags[frame] >> FLAG.TIER);
  }

  copyAt(node) {
    const { nodeFrame, frameFunction, frameFlags, frameCode } = this.profile, frame = nodeFrame[node], fn = frameFunction[nodeFrame[this.nodes.outer[node]]];
    const id = (fn * 2 ** 20 + frameCode[frame]) * 16 + (frameFlags[frame] >> FLAG.TIER);
    let copy = this.copyNumbers.get(id);
    if (copy === undefined) {
      copy = this.copies.push({ key: this.keyOf(node), fn, code: frameCode[frame], tier: frameFlags[frame] >> FLAG.TIER, isOwn: !!this.wanted[fn], instructions: new Map(), ...this.newCounts(this.nodes) }) - 1;
      this.copyNumbers.set(id, copy);
    }
    return copy;
  }

  lineNumber(file, line) {
    const key = `${line} ${file}`;
    let number = this.lineNumbers.get(key);
    if (number === undefined) {
      number = this.lines.push({ file, line, ...this.newCounts(this.nodes) }) - 1;
      this.lineNumbers.set(key, number);
    }
    return number;
  }

  lineAt(frame) {
    const { frameFile, frameLine, strings } = this.profile;
    if (this.lineOfFrame[frame] < 0) this.lineOfFrame[frame] = this.lineNumber(frameLine[frame] ? strings.shown(frameFile[frame]) : '', frameLine[frame]);
    return this.lineOfFrame[frame];
  }

  // Is one of the frames of an address, up to `end` outside of it, of the function in that line?
  hasLine(from, end, line) {
    const { nodeParent, nodeFrame, frameFunction } = this.profile;
    for (let at = from; at !== end; at = nodeParent[at]) if (this.wanted[frameFunction[nodeFrame[at]]] && this.lineAt(nodeFrame[at]) === line) return true;
    return false;
  }

  isInCallers(node, test) {
    for (let at = this.above[node]; at; at = this.above[at]) if (test(at)) return true;
    return false;
  }

  addTo(sums, column, node) {
    const from = column === 'self' ? this.nodes.self : this.nodes.ends;
    for (let k = 0; k < from.length; k++) sums[column][k] += from[k][node];
  }

  add(node) {
    const { nodes, above, copyOf, copies, wanted, profile: { nodeParent, nodeFrame, frameFunction, frameCode, frameInstruction } } = this;
    if (!nodes.ends.some((sums) => sums[node])) return;
    const frame = nodeFrame[node], copy = copies[copyOf[node]], end = nodeParent[nodes.outer[node]];
    const sums = [];
    if (!above[node]) this.addTo(this.whole, 'total', node);
    if (!this.isInCallers(node, (at) => copyOf[at] === copyOf[node])) this.addTo(copy, 'total', node);
    if (copy.code) {
      const i = frameInstruction[frame];
      if (!copy.instructions.has(i)) copy.instructions.set(i, this.newCounts(nodes));
      sums.push(copy.instructions.get(i));
      if (!this.isInCallers(node, (at) => copyOf[at] === copyOf[node] && frameCode[nodeFrame[at]] && frameInstruction[nodeFrame[at]] === i)) this.addTo(sums[0], 'total', node);
    }
    for (let at = node; at !== end; at = nodeParent[at]) {
      if (!wanted[frameFunction[nodeFrame[at]]]) continue;
      const line = this.lineAt(nodeFrame[at]);
      if (at === node) sums.push(this.lines[line]);
      if (this.hasLine(node, at, line) || this.isInCallers(node, (caller) => this.hasLine(caller, nodeParent[nodes.outer[caller]], line))) continue;
      this.addTo(this.lines[line], 'total', node);
    }
    if (wanted[frameFunction[frame]]) for (const each of [this.whole, copy, ...sums]) this.addTo(each, 'self', node);
  }

  // Lines with code and without samples: readers see where none are.
  addQuietLines(hasCode) {
    const { profile, wanted } = this, names = (this.names = new Set());
    for (let f = 0; f < wanted.length; f++) if (wanted[f]) names.add(profile.nameOf(f));
    this.code.codes.forEach((code, number) => {
      if (code && hasCode(code, number)) for (const { name, file, line } of code.rows) if (line && names.has(name)) this.lineNumber(file, line);
    });
  }
}
