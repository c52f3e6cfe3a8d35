// SPDX-License-Identifier: BSD-2-Clause
//
// Whose samples: the clauses about processes and threads, as filter/owners.c decides them. A value is a number (of a process
// or thread), a name, or a pattern with *, ? and []. What the profile does not know of a process matches nothing.

const SUFFIXES = ['.service', '.scope', '.slice', '.socket'], UNIT_NAME_MAX = 1280, ID_SIZE = 64, ID_LEAST = 12;
export const NO_NAMES = { name: '', service: '', container: '', containerId: '', unit: '', instance: '', user: '', cgroup: '' };

// Bytes as a text of as many characters.
export function binaryOf(bytes) {
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(byte);
  return text;
}

const NAMED = {
  alnum: /[0-9A-Za-z]/, alpha: /[A-Za-z]/, blank: /[ \t]/, cntrl: /[\x00-\x1f\x7f]/, digit: /[0-9]/, graph: /[!-~]/, lower: /[a-z]/, print: /[ -~]/,
  punct: /[!-/:-@[-`{-~]/, space: /[ \t-\r]/, upper: /[A-Z]/, xdigit: /[0-9A-Fa-f]/,
};

// One item of brackets, from `at` on: where the next one is and whether it has `c`; null: there is no such class.
function bracketItem(pattern, at, c) {
  const named = /^\[:([a-z]*):\]/.exec(pattern.slice(at, at + 16));
  if (named) return Object.hasOwn(NAMED, named[1]) ? { next: at + named[0].length, has: NAMED[named[1]].test(c) } : null;
  const take = () => {
    const single = /^\[([.=])([^])\1\]/.exec(pattern.slice(at, at + 5));
    if (single) {
      at += 5;
      return single[2];
    }
    if (pattern[at] === '\\' && at + 1 < pattern.length) at++;
    return pattern[at++];
  };
  const low = take();
  if (pattern[at] !== '-' || at + 1 >= pattern.length || pattern[at + 1] === ']') return { next: at, has: low === c };
  at++;
  const high = take();
  return { next: at, has: low <= c && c <= high };
}

// Behind "[" at `begin`: where the pattern goes on if `c` is in the brackets, or -1. Without an end it is a character.
function takeBrackets(pattern, begin, c) {
  const negated = pattern[begin] === '!' || pattern[begin] === '^';
  let at = begin + negated, has = false;
  for (let first = true; ; first = false) {
    if (at >= pattern.length) return c === '[' ? begin : -1;
    if (pattern[at] === ']' && !first) return has !== negated ? at + 1 : -1;
    const item = bracketItem(pattern, at, c);
    if (!item) return -1;
    at = item.next;
    has ||= item.has;
  }
}

// Where the pattern goes on behind what takes the character, or -1.
function takeGlob(pattern, at, c) {
  if (pattern[at] === '?') return at + 1;
  if (pattern[at] === '[') return takeBrackets(pattern, at + 1, c);
  if (pattern[at] === '\\') return pattern[at + 1] === c ? at + 2 : -1;
  return pattern[at] === c ? at + 1 : -1;
}

// As fnmatch(): *, ?, […] and \.
export function globMatches(pattern, text) {
  let at = 0, star = -1, mark = 0;
  for (let i = 0; i < text.length;) {
    if (pattern[at] === '*') {
      star = at++;
      mark = i;
      continue;
    }
    const next = at < pattern.length ? takeGlob(pattern, at, text[i]) : -1;
    if (next >= 0) {
      at = next;
      i++;
    } else if (star >= 0) {
      at = star + 1;
      i = ++mark;
    } else {
      return false;
    }
  }
  while (pattern[at] === '*') at++;
  return at === pattern.length;
}

const isNumber = (text, number) => /^[0-9]+$/.test(text) && Number(text) === number;
const isName = (pattern, text) => text !== '' && (pattern === text || globMatches(pattern, text));
const isId = (pattern, id) => isName(pattern, id) || (pattern.length >= ID_LEAST && id.startsWith(pattern));

// "nginx.service", or "nginx"
function isUnit(pattern, unit) {
  const suffix = SUFFIXES.find((s) => unit.length > s.length && unit.length < UNIT_NAME_MAX && unit.endsWith(s));
  return suffix !== undefined && (isName(pattern, unit) || isName(pattern, unit.slice(0, -suffix.length)));
}

// The id in "docker-0123….scope", or its beginning.
function isContainer(pattern, part) {
  const id = part.slice(part.lastIndexOf('-') + 1), size = /^[0-9a-fA-F]*/.exec(id)[0].length;
  return size === ID_SIZE && (id.length === size || id[size] === '.') && isId(pattern, id.slice(0, size));
}

// Is one of the parts of a control group's path such a name?
function hasPart(path, matches, pattern) {
  return path.split('/').some((part) => part !== '' && part.length < UNIT_NAME_MAX && matches(pattern, part));
}

function unitMatches(pattern, { unit, instance, cgroup }) {
  if (!unit) return hasPart(cgroup, isUnit, pattern);
  const at = unit.indexOf('@');
  const whole = `${unit.slice(0, at + 1)}${instance}${unit.slice(at + 1)}`.slice(0, UNIT_NAME_MAX - 1);
  return isUnit(pattern, unit) || isName(pattern, unit) || (instance !== '' && at >= 0 && isUnit(pattern, whole));
}

function containerMatches(pattern, { container, containerId, cgroup }) {
  if (!container && !containerId) return hasPart(cgroup, isContainer, pattern);
  return isName(pattern, container) || isId(pattern, containerId);
}

// By kind of clause: does it hold for a thread? The pattern and the names are of binaryOf().
export const OWNERS = {
  process: (pattern, names, thread, process) => isNumber(pattern, process?.pid ?? 0) || isName(pattern, names.name),
  thread: (pattern, names, thread) => isNumber(pattern, thread.tid) || isName(pattern, names.thread),
  service: (pattern, names) => isName(pattern, names.service), user: (pattern, names) => isName(pattern, names.user),
  container: containerMatches, unit: unitMatches,
};

// Containers of which others have the name, too.
function sharedContainers({ processes }) {
  const ids = new Map(), shared = new Set();
  for (const { names: { container, containerId } } of processes) {
    if (!ids.has(container)) ids.set(container, containerId);
    else if (ids.get(container) !== containerId) shared.add(container);
  }
  return shared;
}

// For a container that its name does not stand for: the beginning of its id, as tools print it; else "".
export function idOfContainer(profile, { container, containerId }) {
  const shared = (profile.sharedContainers ??= sharedContainers(profile));
  return containerId && (!container || shared.has(container)) ? profile.strings.shown(containerId).slice(0, ID_LEAST) : '';
}
