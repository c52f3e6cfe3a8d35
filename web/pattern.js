// SPDX-License-Identifier: BSD-2-Clause
//
// Regular expressions in RE2's syntax: what filter/pattern_parse.c and filter/pattern.c accept, reject and match. The
// browser's own have another syntax, and a link could have one that takes forever. Time is linear in the text.

import { sequenceSize } from './text.js';

const PATTERN_TEXT_MAX = 1000; // bytes
const PATTERN_STEPS = 4096, PATTERN_EMITTED = 16 * PATTERN_STEPS, PATTERN_DEPTH = 100, REPEAT_MAX = 1000;
const PATTERN_TIME = 2 ** 27; // steps of all texts: about a second; the command line takes more
const RUNE_MAX = 0x10ffff, NO_RUNE = -1, REPLACEMENT = 0xfffd;
const OP = { RUNES: 0, ASSERT: 1, FORK: 2, DONE: 3 };
const CLASSES = { // pairs of characters
  alnum: '09AZaz', alpha: 'AZaz', ascii: '\x00\x7f', blank: '\t\t  ', cntrl: '\x00\x1f\x7f\x7f', digit: '09', graph: '!~', lower: 'az', print: ' ~',
  punct: '!/:@[`{~', space: '\t\r  ', upper: 'AZ', word: '09AZaz__', xdigit: '09AFaf', d: '09', s: '\t\n\f\r  ', w: '09AZaz__',
};
const ESCAPES = { a: 7, f: 12, t: 9, n: 10, r: 13, v: 11 };

const isLetter = (rune) => (rune >= 0x61 && rune <= 0x7a) || (rune >= 0x41 && rune <= 0x5a);
const isWordRune = (rune) => rune === 0x5f || (rune >= 0x30 && rune <= 0x39) || isLetter(rune);

// The character of `size` bytes at `at`.
function runeOf(bytes, at, size) {
  let rune = size === 2 ? bytes[at] & 0x1f : size === 3 ? bytes[at] & 0xf : size === 4 ? bytes[at] & 7 : bytes[at];
  for (let i = 1; i < size; i++) rune = (rune << 6) | (bytes[at + i] & 0x3f);
  return rune;
}

// Ranges of characters, [low, high] each.
class RuneSet {
  constructor(fold) {
    this.fold = fold;
    this.ranges = [];
  }

  // Letters of ASCII come in both cases; K has the sign for kelvin as well, s the long one.
  add(low, high) {
    this.ranges.push([low, high]);
    if (!this.fold) return;
    for (let rune = low; rune <= high && rune < 0x80; rune++) {
      if (isLetter(rune)) this.ranges.push([rune ^ 0x20, rune ^ 0x20]);
      if ((rune | 0x20) === 0x6b) this.ranges.push([0x212a, 0x212a]);
      if ((rune | 0x20) === 0x73) this.ranges.push([0x17f, 0x17f]);
    }
    if (low <= 0x212a && high >= 0x212a) this.ranges.push([0x6b, 0x6b], [0x4b, 0x4b]);
    if (low <= 0x17f && high >= 0x17f) this.ranges.push([0x73, 0x73], [0x53, 0x53]);
  }

  addClass(pairs, negated) {
    const own = new RuneSet(this.fold);
    for (let i = 0; i < pairs.length; i += 2) own.add(pairs.charCodeAt(i), pairs.charCodeAt(i + 1));
    if (negated) own.negate();
    this.ranges.push(...own.ranges);
  }

  // In order, apart from each other.
  settle() {
    const settled = [];
    for (const [low, high] of this.ranges.sort((a, b) => a[0] - b[0] || a[1] - b[1])) {
      const last = settled[settled.length - 1];
      if (last && low <= last[1] + 1) last[1] = Math.max(last[1], high);
      else settled.push([low, high]);
    }
    this.ranges = settled;
    return this;
  }

  negate() {
    const others = [];
    let low = 0;
    for (const range of this.settle().ranges) {
      if (range[0] > low) others.push([low, range[0] - 1]);
      low = range[1] + 1;
    }
    if (low <= RUNE_MAX) others.push([low, RUNE_MAX]);
    this.ranges = others;
  }

  node() {
    return { kind: 'runes', ranges: this.settle().ranges };
  }
}

// Text to a tree of nodes {kind, …}; null is no node.
class PatternParser {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
    this.depth = 0;
    this.flags = { fold: false, lines: false, dotAll: false };
    this.literal = false; // within \Q … \E
  }

  fail(what) {
    throw new Error(`invalid regular expression: byte ${this.at}: ${what}`);
  }

  // The byte there as a character, "" at the end.
  peek(ahead = 0) {
    const at = this.at + ahead;
    return at < this.bytes.length ? String.fromCharCode(this.bytes[at]) : '';
  }

  takeIf(text) {
    for (let i = 0; i < text.length; i++) if (this.peek(i) !== text[i]) return false;
    this.at += text.length;
    return true;
  }

  // ---- escapes and characters

  takeHex() {
    const braces = this.takeIf('{');
    let rune = 0, digits = 0;
    while (/[0-9a-fA-F]/.test(this.peek()) && (braces || digits < 2) && rune <= RUNE_MAX) {
      rune = rune * 16 + parseInt(this.peek(), 16);
      this.at++;
      digits++;
    }
    if (!digits || (!braces && digits < 2) || (braces && this.peek() !== '}') || rune > RUNE_MAX) this.fail('\\x needs two hexadecimal digits, or {…}');
    if (braces) this.at++;
    return rune;
  }

  takeEscape() {
    const c = this.peek(), isOctal = (text) => text !== '' && '01234567'.includes(text);
    if (c === 'x') {
      this.at++;
      return this.takeHex();
    }
    if (c === '0' || (isOctal(c) && isOctal(this.peek(1)))) { // a single digit from 1 on would be a backreference
      let rune = 0;
      for (let i = 0; i < 3 && isOctal(this.peek()); i++, this.at++) rune = rune * 8 + Number(this.peek());
      return rune;
    }
    if (Object.hasOwn(ESCAPES, c)) {
      this.at++;
      return ESCAPES[c];
    }
    if (!c) this.fail('a backslash at the end');
    if (this.bytes[this.at] >= 0x80 || /[0-9A-Za-z]/.test(c)) this.fail(c === 'p' || c === 'P' ? '\\p is not supported' : 'an escape sequence that is not known');
    return this.bytes[this.at++];
  }

  takePerlClass(set) {
    const c = this.peek();
    if (!c || !'dswDSW'.includes(c)) return false;
    set.addClass(CLASSES[c.toLowerCase()], c !== c.toLowerCase());
    this.at++;
    return true;
  }

  takeRune() {
    const size = sequenceSize(this.bytes, this.at), rune = runeOf(this.bytes, this.at, size);
    this.at += size;
    return rune;
  }

  // ---- brackets

  takeNamedClass(set) {
    const { bytes } = this;
    let begin = this.at + 2, end = begin;
    if (this.peek() !== '[' || this.peek(1) !== ':') return false;
    while (end < bytes.length && !(bytes[end] === 0x3a && bytes[end + 1] === 0x5d)) end++;
    if (end >= bytes.length) return false;
    const negated = bytes[begin] === 0x5e;
    if (negated) begin++;
    const name = end > begin ? String.fromCharCode(...bytes.subarray(begin, end)) : '';
    if (name.length < 2 || !Object.hasOwn(CLASSES, name)) this.fail('a class of characters that is not known');
    set.addClass(CLASSES[name], negated);
    this.at = end + 2;
    return true;
  }

  takeClassRune() {
    return this.takeIf('\\') ? this.takeEscape() : this.takeRune();
  }

  takeClassItem(set) {
    if (this.takeNamedClass(set)) return;
    if (this.takeIf('\\')) {
      if (this.takePerlClass(set)) return;
      this.at--;
    }
    const low = this.takeClassRune();
    let high = low;
    if (this.peek() === '-' && this.peek(1) && this.peek(1) !== ']') {
      this.at++;
      high = this.takeClassRune();
    }
    if (high < low) this.fail('a range of characters that ends before it begins');
    set.add(low, high);
  }

  takeClass() {
    const set = new RuneSet(this.flags.fold), negated = this.takeIf('^');
    for (let first = true; first || this.peek() !== ']'; first = false) {
      if (!this.peek()) this.fail('missing ]');
      this.takeClassItem(set);
    }
    this.at++;
    if (negated) set.negate();
    return set.node();
  }

  // ---- repetition

  // [least, most] of "{2}", "{2,}", "{2,5}"; null: it is text
  takeBraces() {
    const rest = String.fromCharCode(...this.bytes.subarray(this.at));
    const match = /^\{(0|[1-9][0-9]*)(?:(,)(0|[1-9][0-9]*)?)?\}/.exec(rest);
    if (!match) return null;
    const least = Number(match[1]), most = !match[2] ? least : match[3] === undefined ? Infinity : Number(match[3]);
    this.at += match[0].length;
    if (least > REPEAT_MAX || (most !== Infinity && (most > REPEAT_MAX || least > most))) this.fail('invalid number of repetitions');
    return [least, most];
  }

  takeRepeat() {
    const c = this.peek();
    if (c === '{') return this.takeBraces();
    if (!c || !'*+?'.includes(c)) return null;
    this.at++;
    return [c === '+' ? 1 : 0, c === '?' ? 1 : Infinity];
  }

  // An atom may be repeated once: "a**" is an error, "a*?" the same as "a*".
  takeRepeats(atom) {
    const times = this.takeRepeat();
    if (!times) return atom;
    this.takeIf('?');
    if (this.takeRepeat()) this.fail('a repetition of a repetition');
    return { kind: 'repeat', left: atom, least: times[0], most: times[1] };
  }

  // ---- atoms

  takeFlags() {
    let on = true, any = false;
    for (; this.peek() && this.peek() !== ')' && this.peek() !== ':'; this.at++) {
      const c = this.peek();
      if (c === 'i') this.flags.fold = on;
      else if (c === 'm') this.flags.lines = on;
      else if (c === 's') this.flags.dotAll = on;
      else if (c === '-' && on) {
        on = any = false;
        continue;
      } else if (c !== 'U') this.fail('invalid flags'); // U: which of several matches
      any = true;
    }
    if (!this.peek()) this.fail('missing )');
    if (!on && !any) this.fail('invalid flags');
  }

  takeGroupName() {
    this.takeIf('P');
    if (!this.takeIf('<')) this.fail('invalid name of a group');
    const begin = this.at;
    while (/^[0-9A-Za-z_]$/.test(this.peek())) this.at++;
    if (this.peek() !== '>' || this.at === begin) this.fail('invalid name of a group');
    this.at++;
  }

  // Behind "(". null: flags alone.
  takeGroup() {
    const outer = { ...this.flags };
    if (++this.depth > PATTERN_DEPTH) this.fail('too many parentheses within each other');
    if (this.takeIf('?')) {
      if (this.peek() === 'P' || this.peek() === '<') {
        this.takeGroupName();
      } else if (!this.takeIf(':')) {
        this.takeFlags();
        if (this.takeIf(')')) {
          this.depth--;
          return null;
        }
        this.at++;
      }
    }
    const inner = this.takeAlternatives();
    if (!this.takeIf(')')) this.fail('missing )');
    this.depth--;
    this.flags = outer;
    return inner;
  }

  single(rune) {
    const set = new RuneSet(this.flags.fold);
    set.add(rune, rune);
    return set.node();
  }

  takeBackslash() {
    const c = this.peek(), assertions = { A: 'text-begin', z: 'text-end', b: 'edge', B: 'no-edge' };
    if (Object.hasOwn(assertions, c)) {
      this.at++;
      return { kind: 'assert', which: assertions[c] };
    }
    if (this.takeIf('Q')) {
      this.literal = true;
      return null;
    }
    const set = new RuneSet(this.flags.fold);
    return this.takePerlClass(set) ? set.node() : this.single(this.takeEscape());
  }

  // The next part that can be repeated; null: there was none.
  takeAtom() {
    if (this.literal) {
      if (!this.takeIf('\\E')) return this.single(this.takeRune());
      this.literal = false;
      return null;
    }
    const c = this.peek();
    if ('*+?'.includes(c)) this.fail('nothing to repeat');
    if (c === '{') {
      const begin = this.at;
      if (!this.takeBraces()) return this.single(this.takeRune());
      this.at = begin;
      this.fail('nothing to repeat');
    }
    if (!'([.^$\\'.includes(c)) return this.single(this.takeRune());
    this.at++;
    if (c === '(') return this.takeGroup();
    if (c === '[') return this.takeClass();
    if (c === '.') return { kind: 'runes', ranges: this.flags.dotAll ? [[0, RUNE_MAX]] : [[0, 9], [11, RUNE_MAX]] };
    if (c === '^') return { kind: 'assert', which: this.flags.lines ? 'line-begin' : 'text-begin' };
    if (c === '$') return { kind: 'assert', which: this.flags.lines ? 'line-end' : 'text-end' };
    return this.takeBackslash();
  }

  takeSequence() {
    const parts = [];
    let last = null;
    while (this.peek() && (this.literal || (this.peek() !== '|' && this.peek() !== ')'))) {
      const begin = this.at;
      if (last && !this.literal) last = this.takeRepeats(last);
      if (this.at !== begin) continue;
      const atom = this.takeAtom();
      if (!atom) continue;
      if (last) parts.push(last);
      last = atom;
    }
    if (last) parts.push(last);
    return { kind: 'then', parts };
  }

  takeAlternatives() {
    const parts = [this.takeSequence()];
    while (this.takeIf('|')) parts.push(this.takeSequence());
    return parts.length === 1 ? parts[0] : { kind: 'or', parts };
  }

  parse() {
    const root = this.takeAlternatives();
    if (this.peek() === ')') this.fail('unexpected )');
    return root;
  }
}

// Tree to a program, from its end to its start, so that each step has its next.
class PatternProgram {
  constructor(root) {
    this.steps = [];
    this.emitted = 0;
    this.start = this.node(root, this.emit({ op: OP.DONE }));
  }

  tooLarge() {
    throw new Error('invalid regular expression: too many repetitions or characters');
  }

  emit(step) {
    if (this.steps.length >= PATTERN_STEPS) this.tooLarge();
    return this.steps.push(step) - 1;
  }

  node(node, next) {
    const joins = (node.parts?.length ?? 2) - 1;
    this.emitted += joins < 0 ? 1 : joins; // as many as if parts were joined two by two
    if (this.emitted > PATTERN_EMITTED) this.tooLarge();
    if (node.kind === 'runes') return this.emit({ op: OP.RUNES, ranges: node.ranges, next });
    if (node.kind === 'assert') return this.emit({ op: OP.ASSERT, which: node.which, next });
    if (node.kind === 'then') return node.parts.reduceRight((to, part) => this.node(part, to), next);
    if (node.kind === 'or') return node.parts.map((part) => this.node(part, next)).reduce((a, b) => this.emit({ op: OP.FORK, next: a, other: b }));
    return this.repeat(node, next);
  }

  repeat({ left, least, most }, next) {
    const end = next;
    if (most === Infinity) {
      const loop = this.emit({ op: OP.FORK, next: 0, other: next });
      this.steps[loop].next = this.node(left, loop);
      next = loop;
    } else {
      for (let i = least; i < most; i++) next = this.emit({ op: OP.FORK, next: this.node(left, next), other: end });
    }
    for (let i = 0; i < least; i++) next = this.node(left, next);
    return next;
  }
}

// Numbers of steps, each once.
class StateSet {
  constructor(size) {
    this.dense = new Int32Array(size);
    this.sparse = new Int32Array(size);
    this.count = 0;
  }

  add(state) {
    const at = this.sparse[state];
    if (at < this.count && this.dense[at] === state) return false;
    this.sparse[state] = this.count;
    this.dense[this.count++] = state;
    return true;
  }
}

const ASSERTIONS = {
  'text-begin': (before) => before === NO_RUNE, 'text-end': (before, after) => after === NO_RUNE,
  'line-begin': (before) => before === NO_RUNE || before === 10, 'line-end': (before, after) => after === NO_RUNE || after === 10,
  edge: (before, after) => isWordRune(before) !== isWordRune(after), 'no-edge': (before, after) => isWordRune(before) === isWordRune(after),
};

// The constructor throws an Error with what is wrong, and at which byte.
export class Pattern {
  constructor(text) {
    const bytes = new TextEncoder().encode(text);
    if (!bytes.length) throw new Error('invalid regular expression: it is empty');
    if (bytes.length > PATTERN_TEXT_MAX) throw new Error(`invalid regular expression: longer than ${PATTERN_TEXT_MAX} bytes`);
    const { steps, start } = new PatternProgram(new PatternParser(bytes).parse());
    this.steps = steps;
    this.start = start;
    this.ascii = new Uint8Array(steps.length * 128); // by step: the characters that it takes
    steps.forEach(({ ranges = [] }, i) => {
      for (const [low, high] of ranges) this.ascii.fill(1, i * 128 + Math.min(low, 128), i * 128 + Math.min(high + 1, 128));
    });
    this.now = new StateSet(steps.length);
    this.next = new StateSet(steps.length);
    this.pending = new Int32Array(2 * steps.length + 2);
    const { op, ranges, which } = steps[start];
    // every match begins with this byte; -1: with several
    this.first = op === OP.RUNES && ranges.length === 1 && ranges[0][0] === ranges[0][1] && ranges[0][0] < 128 ? ranges[0][0] : -1;
    this.anchored = op === OP.ASSERT && which === 'text-begin';
    this.findPrefix();
    this.taken = 0; // steps
  }

  // The characters that an anchored expression begins with, as bytes; `isOne`: they are the whole text.
  findPrefix() {
    const { steps } = this, prefix = [];
    let step = this.anchored ? steps[steps[this.start].next] : null;
    for (; step?.op === OP.RUNES && step.ranges.length === 1 && step.ranges[0][0] === step.ranges[0][1] && step.ranges[0][0] < 128; step = steps[step.next]) prefix.push(step.ranges[0][0]);
    this.prefix = Uint8Array.from(prefix);
    this.isOne = step?.op === OP.ASSERT && step.which === 'text-end' && steps[step.next].op === OP.DONE;
  }

  // The names of a profile differ at their end more than at their beginning.
  hasPrefix(bytes) {
    const { prefix, isOne } = this;
    if (isOne ? bytes.length !== prefix.length : bytes.length < prefix.length) return false;
    for (let i = prefix.length - 1; i >= 0; i--) if (bytes[i] !== prefix[i]) return false;
    return true;
  }

  // Adds a state and those that follow it without a character. True: one of them is the end.
  follow(set, state, before, after) {
    const { pending } = this;
    let depth = 0;
    pending[depth++] = state;
    while (depth) {
      state = pending[--depth];
      if (!set.add(state)) continue;
      this.taken++;
      const step = this.steps[state];
      if (step.op === OP.RUNES) continue;
      if (step.op === OP.DONE) return true;
      if (step.op === OP.FORK) pending[depth++] = step.other;
      if (step.op === OP.FORK || ASSERTIONS[step.which](before, after)) pending[depth++] = step.next;
    }
    return false;
  }

  takes(state, rune) {
    if (rune < 128) return this.ascii[state * 128 + rune] === 1;
    return this.steps[state].ranges.some(([low, high]) => low <= rune && rune <= high);
  }

  // From the states of `now` over a character to those of `next`.
  stepOver(rune, after) {
    const { now, next, steps } = this;
    next.count = 0;
    this.taken += now.count;
    for (let i = 0; i < now.count; i++) {
      const state = now.dense[i];
      if (steps[state].op === OP.RUNES && this.takes(state, rune) && this.follow(next, steps[state].next, rune, after)) return true;
    }
    this.now = next;
    this.next = now;
    return false;
  }

  // Is there a match in a text? A byte that is not UTF-8 is one U+FFFD.
  matches(bytes) {
    if (this.anchored && !this.hasPrefix(bytes)) return false;
    const size = bytes.length;
    const sizeAt = (at) => (at < size && bytes[at] >= 128 ? sequenceSize(bytes, at) : 1);
    const runeAt = (at, length) => (at >= size ? NO_RUNE : length ? runeOf(bytes, at, length) : REPLACEMENT);
    let at = 0, before = NO_RUNE, length = sizeAt(0), rune = runeAt(0, length);
    this.now.count = 0;
    for (;;) {
      if (!this.now.count && this.first >= 0 && rune !== this.first) { // no assertion looks at `before` then
        at = at < size ? bytes.indexOf(this.first, at) : -1;
        if (at < 0) return false;
        [length, rune] = [1, this.first];
      }
      if (this.follow(this.now, this.start, before, rune)) return true;
      if (rune === NO_RUNE) return false;
      if (this.taken > PATTERN_TIME) throw new Error('takes too long on the names of this profile; one with fewer repetitions takes less');
      at += length || 1;
      length = sizeAt(at);
      const after = runeAt(at, length);
      if (this.stepOver(rune, after)) return true;
      if (this.anchored && !this.now.count) return false;
      before = rune;
      rune = after;
    }
  }
}
