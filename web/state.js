// SPDX-License-Identifier: BSD-2-Clause
//
// What is shown, as the fragment of the address: a link leads to the same picture, from file:// too.

export const DEFAULTS = {
  view: 'flame', // flame, time, sandwich, table, heat, code, locks
  mode: 'cpu', // cpu, waiting, wall
  parked: false, // waits of parked threads, too
  group: 'merged', // merged, process, thread; of a page with waits: state; with names of services: service
  down: false, // icicle
  measure: 'ticks', // ticks, cpu; of a comparison: mean, new, old
  colours: 'kind', // kind, name, module; of a comparison: difference
  sort: 'weight', // weight, name
  recursion: false, // direct recursion as one frame
  time: null, // [from, to] in µs
  base: null, // the same: what `time` is compared with
  threads: [], // numbers
  opened: [], // functions that stand for code without a symbol, whose addresses are shown
  filter: '', // clauses, as the command line has them
  query: '',
  regex: false,
  zoom: null, // [from, to] of the whole
  node: 0, // zoomed to
  fn: -1, // of the sandwich, and of the code
  copy: '', // of the code: all in the function's module, "all", or one (code.js)
  chart: -1, // thread of the time order
};

const WORDS = {
  view: ['flame', 'time', 'sandwich', 'table', 'heat', 'code', 'locks'], mode: ['cpu', 'waiting', 'wall'],
  group: ['merged', 'service', 'process', 'thread', 'state'],
  measure: ['ticks', 'cpu', 'mean', 'new', 'old'], colours: ['kind', 'name', 'module', 'difference'], sort: ['weight', 'name'],
};

function writeValue(key, value) {
  if (key === 'time' || key === 'base') return value.map((t) => Math.round(t)).join('-');
  if (key === 'zoom') return value.map((x) => Number(x.toPrecision(12))).join('-');
  if (Array.isArray(value)) return value.join('.');
  return value === true ? '1' : String(value);
}

function readPair(text) {
  const match = /^(\d+(?:\.\d+)?(?:e-\d+)?)-(\d+(?:\.\d+)?(?:e-\d+)?)$/.exec(text);
  return match && Number(match[1]) < Number(match[2]) ? [Number(match[1]), Number(match[2])] : null;
}

function readValue(key, text) {
  if (WORDS[key]) return WORDS[key].includes(text) ? text : DEFAULTS[key];
  if (key === 'time' || key === 'base' || key === 'zoom') return readPair(text);
  if (key === 'threads' || key === 'opened') return text.split('.').filter((t) => /^\d+$/.test(t)).map(Number);
  if (typeof DEFAULTS[key] === 'boolean') return text === '1';
  if (typeof DEFAULTS[key] === 'number') return /^\d{1,9}$/.test(text) ? Number(text) : DEFAULTS[key];
  return text;
}

export function toFragment(state) {
  const parts = [];
  for (const key of Object.keys(DEFAULTS)) {
    const value = state[key];
    if (value === null || String(value) === String(DEFAULTS[key])) continue;
    parts.push(`${key}=${encodeURIComponent(writeValue(key, value))}`);
  }
  return parts.join('&');
}

// Whatever is in it, the result is a state.
export function fromFragment(fragment) {
  const state = structuredClone(DEFAULTS);
  for (const part of fragment.replace(/^#/, '').split('&')) {
    const at = part.indexOf('=');
    const key = part.slice(0, Math.max(0, at));
    if (!Object.hasOwn(DEFAULTS, key)) continue;
    try {
      state[key] = readValue(key, decodeURIComponent(part.slice(at + 1)));
    } catch {
      // not encoded as it should be: the default stays
    }
  }
  return state;
}

let written = '', remembering = 0;

export function writeAddress(state) {
  written = toFragment(state);
  try {
    history.replaceState(null, '', written ? `#${written}` : location.href.replace(/#.*/, ''));
  } catch {
    location.replace(`#${written}`);
  }
}

// A moment later, since browsers refuse to change the address more often than they like.
export function remember(state) {
  clearTimeout(remembering);
  remembering = setTimeout(() => writeAddress(state), 120);
}

// The state of an address that was not written here, or null.
export function fromAddress(url) {
  const fragment = url.split('#')[1] ?? '';
  if (fragment === written) return null;
  clearTimeout(remembering);
  return fromFragment(fragment);
}
