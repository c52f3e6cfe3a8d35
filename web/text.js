// SPDX-License-Identifier: BSD-2-Clause
//
// Texts. Names come from other people's processes and may have any bytes in them: what is no text is
// shown as \xNN, as `sysprof report` does, and characters that would turn or break a line as \uNNNN.
// Names reach the page as text nodes and on canvases, never as markup.

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const CONTROL = /[\x00-\x1f\x7f-\x9f]/;
const TURNING = /[\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

// The size of the valid UTF-8 sequence at `at`, or 0.
export function sequenceSize(bytes, at) {
  const a = bytes[at];
  if (a < 0x80) return 1;
  const size = a >= 0xc2 && a <= 0xdf ? 2 : a >= 0xe0 && a <= 0xef ? 3 : a >= 0xf0 && a <= 0xf4 ? 4 : 0;
  if (!size || at + size > bytes.length) return 0;
  for (let i = 1; i < size; i++) if ((bytes[at + i] & 0xc0) !== 0x80) return 0;
  const b = bytes[at + 1];
  if ((a === 0xe0 && b < 0xa0) || (a === 0xed && b > 0x9f)) return 0;
  if ((a === 0xf0 && b < 0x90) || (a === 0xf4 && b > 0x8f)) return 0;
  return size;
}

function escaped(c) {
  return '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0');
}

// What utf8_sanitize() of base/utf8.c makes of it.
export function sanitize(bytes) {
  try {
    const text = strict.decode(bytes);
    if (!CONTROL.test(text)) return text.replace(TURNING, escaped);
  } catch {
    // then piece by piece
  }
  let out = '';
  for (let at = 0; at < bytes.length;) {
    const size = sequenceSize(bytes, at);
    const text = size ? strict.decode(bytes.subarray(at, at + size)) : '';
    if (size && !CONTROL.test(text)) {
      out += text.replace(TURNING, escaped);
      at += size;
    } else {
      out += '\\x' + bytes[at].toString(16).padStart(2, '0');
      at++;
    }
  }
  return out;
}

// For people to look at; never empty.
export function shown(bytes) {
  const text = sanitize(bytes);
  return text.trim() ? text : '[unknown]';
}

// A field of a line of folded stacks, as formats/out/folded.c writes it.
export function foldedField(bytes, mark) {
  const plain = bytes.map((b) => (b === 0x3b ? 0x3a : b === 0x0a || b === 0x0d ? 0x20 : b));
  const text = sanitize(plain).replace(/ +$/, '');
  return (text || '[unknown]') + mark;
}

const wholeNumbers = new Intl.NumberFormat('en-US'); // making one for each number takes longer than all else of a label

export function count(n) {
  return wholeNumbers.format(Math.round(n));
}

export function plural(n, what) {
  return `${count(n)} ${what}${Math.round(n) === 1 ? '' : 's'}`;
}

// CPU time that is the samples' event.
export const isTime = (event, unit) => event === 'cpu' && unit === 'nanoseconds';

// So many of an event's unit. Fractions have a unit like 0.01.
export function quantity(n, unit) {
  if (unit === 'nanoseconds') return duration(n);
  if (unit === 'count') return count(n);
  return /^0\.0*1$/.test(unit) ? (n * unit).toLocaleString('en-US', { maximumFractionDigits: unit.length - 2 }) : `${count(n)} ${unit}`;
}

export function share(part, whole) {
  if (!whole) return '0 %';
  const p = (100 * part) / whole;
  if (p === 100) return '100 %';
  return `${p >= 99.95 ? '99.9' : p > 0 && p < 0.01 ? '< 0.01' : p.toFixed(p < 10 ? 2 : 1)} %`;
}

// Nanoseconds.
export function duration(ns) {
  const a = Math.abs(ns);
  if (a >= 100e9) return `${(ns / 1e9).toFixed(0)} s`;
  if (a >= 1e9) return `${(ns / 1e9).toFixed(2)} s`;
  if (a >= 1e6) return `${(ns / 1e6).toFixed(a >= 1e8 ? 0 : 1)} ms`;
  if (a >= 1e3) return `${(ns / 1e3).toFixed(a >= 1e5 ? 0 : 1)} µs`;
  return `${Math.round(ns)} ns`;
}

// A moment of the recording, µs since its start; `step`: the difference that must be visible.
export function moment(us, step) {
  const digits = step >= 1e6 ? 0 : step >= 1e5 ? 1 : step >= 1e4 ? 2 : step >= 1e3 ? 3 : step >= 100 ? 4 : 6;
  return `${(us / 1e6).toFixed(digits)} s`;
}

// Wilson's interval for a share of k in n independent samples, 95 %: [low, high].
export function wilson(k, n) {
  if (!n) return [0, 0];
  const z = 1.959964, p = k / n, d = 1 + (z * z) / n;
  const middle = (p + (z * z) / (2 * n)) / d;
  const half = (z * Math.sqrt((p * (1 - p)) / n + (z * z) / (4 * n * n))) / d;
  return [Math.max(0, middle - half), Math.min(1, middle + half)];
}

export function interval(k, n) {
  const [low, high] = wilson(k, n);
  const digits = high < 0.1 ? 2 : 1;
  return `${(100 * low).toFixed(digits)}–${(100 * high).toFixed(digits)} %`;
}

export function hashOf(text) {
  let h = 2166136261;
  for (let i = 0; i < text.length && i < 200; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
  return (h ^ (h >>> 15)) >>> 0;
}

// An element with attributes and children; strings become text nodes.
export function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'class') element.className = value;
    else if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.filter((c) => c !== null && c !== undefined));
  return element;
}

export const byId = (id) => document.getElementById(id);
