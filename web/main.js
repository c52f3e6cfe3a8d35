// SPDX-License-Identifier: BSD-2-Clause
//
// The page: what is shown is `state`; change() is the only way to change it, and works out what has to be
// computed anew. A selection (time, threads) only changes sums; a grouping makes another tree.

import { forgetTheme } from './canvas.js';
import { frameColour, setDark, isDark, plainKind, kindName, rampColour, stateColour } from './colour.js';
import { readProfile, folded, FLAG, TIERS } from './data.js';
import { Chart } from './chart.js';
import { Difference, DifferenceTable, factsOfWaits, fillDifferenceHeader, differenceDetails } from './difference.js';
import { fillHeader, fillDetails } from './facts.js';
import { Flame } from './flame.js';
import { HeatMap } from './heatmap.js';
import { VIEWS, LOCKS_VIEW, USES, closer, fillHelp } from './help.js';
import { compareTimes, firstAt } from './selections.js';
import { DEFAULTS, toFragment, fromFragment } from './state.js';
import { FunctionTable } from './table.js';
import { Timeline } from './timeline.js';
import { ROOT, buildTree, tally, functionSums, matchedSums, hottestPlace, callees, callers, groupOf } from './tree.js';
import { make, count, plural, share, duration, moment } from './text.js';
import { MODES, LockTable, addStates, withRows, hasLocks, waitAt, waitFacts } from './wall.js';

const byId = (id) => document.getElementById(id);

let profile, recorded; // the rows that are shown, and those of samples
let state = fromFragment(location.hash);
const profiles = new Map(); // by mode
const trees = new Map();
const colours = new Map(); // by function and flags, of the present theme and mode
let tree, sums, rows, matches = null;
let stale = false; // the sums are of an earlier selection
let flame, chart, upper, lower, table, timeline, heat, locks;
let kinds, inlines, states, parked = 0; // that the profile has
let groupings = [['merged', 'Merged'], ['process', 'By process'], ['thread', 'By thread']];
let modes = MODES, views = VIEWS, measures, ownMeasures, colourings; // that there are: [name, text] of each
let allViews, ownColourings; // with those that two compared times do not have
let times = null; // two parts of the time, compared: {key, reason or profile}
let pinned = false; // the next drag selects NEW: the time so far is OLD
let written = '', remembering = 0;
let resized = false; // the timeline, by hand

// ---- what is computed ------------------------------------------------------------------------------

function modeKey(withParked = state.parked) {
  return state.mode === 'cpu' ? 'cpu' : `${state.mode} ${withParked && parked > 0}`;
}

function treeOf(grouping, recursion) {
  const key = `${times?.profile ? 'times' : modeKey()} ${grouping} ${recursion}`;
  if (!trees.has(key)) trees.set(key, buildTree(profile, grouping, recursion));
  return trees.get(key);
}

function isWanted(t) {
  return !state.threads.length || state.threads.includes(t.number);
}

// The rows of a thread that are selected. A sample at the very end of the whole belongs to it.
function rangeOf(t) {
  if (times?.profile) return [t.first, t.end];
  if (!isWanted(t)) return [0, 0];
  if (!state.time) return [t.first, t.end];
  return [firstAt(profile, t, state.time[0]), state.time[1] >= profile.end ? t.end : firstAt(profile, t, state.time[1])];
}

function compile() {
  const query = state.query.trim();
  byId('query').classList.remove('bad');
  if (!query) return null;
  let test;
  if (state.regex) {
    try {
      const pattern = new RegExp(query, 'iu');
      test = (text) => pattern.test(text);
    } catch {
      byId('query').classList.add('bad');
      return null;
    }
  } else {
    const wanted = query.toLowerCase();
    test = (text) => text.toLowerCase().includes(wanted);
  }
  const found = new Uint8Array(profile.functionName.length);
  for (let f = 0; f < found.length; f++) if (test(profile.nameOf(f)) || test(profile.moduleOf(f))) found[f] = 1;
  return found;
}

function whole() {
  return Object.fromEntries(profile.measures.map((m) => [m, sums[m].total[ROOT]]));
}

// Is less than the whole selected? Then the tests of a comparison say nothing about it.
function isPart() {
  return !times?.profile && (state.time !== null || state.threads.length > 0);
}

// ---- texts and colours of boxes --------------------------------------------------------------------

function groupText(number) {
  const threads = number - profile.processes.length, states = threads - profile.threads.length;
  if (states >= 0) return profile.stateName(states);
  if (threads >= 0) {
    const t = profile.threads[threads];
    return `${profile.threadName(t)} (tid ${t.tid})`;
  }
  return `${profile.processName(number)} (pid ${profile.processes[number]?.pid ?? 0})`;
}

function textOf(fn) {
  if (fn >= 0) return profile.nameOf(fn);
  return fn < -1 ? groupText(groupOf(fn)) : 'all';
}

function styleOf(node, picture) {
  const { fn, flags } = picture.tree, f = fn[node];
  if (f < 0 && picture.tree.grouping === 'state' && f < -1) return { text: textOf(f), colour: stateColour(groupOf(f) - profile.processes.length - profile.threads.length), dim: false, hot: false };
  if (f < 0) return { text: f < -1 ? textOf(f) : rootText(picture), colour: isDark() ? '#3a404b' : '#dfe3ea', dim: false, hot: false };
  const name = profile.nameOf(f);
  const key = f * 64 + (flags[node] & 63);
  let colour = colours.get(key);
  if (!colour) {
    const waits = profile.stateOf?.(f);
    colour = state.colours === 'difference' ? profile.difference.colourOf(f, isPart()) : waits ? stateColour(waits) : frameColour(state.colours, flags[node], name, profile.moduleOf(f), null, null);
    colours.set(key, colour);
  }
  return {
    text: flags[node] & FLAG.AMBIGUOUS ? `${name} ?` : name, colour,
    dim: matches !== null && !matches[f], hot: matches !== null && matches[f] === 1, inlined: (flags[node] & FLAG.INLINED) !== 0,
  };
}

function rootText(picture) {
  const part = picture.sums;
  if (!part) return 'all';
  if (profile.difference) return `all: ${profile.difference.change(part, ROOT)}`;
  return state.measure === 'ticks' ? `all: ${profile.terms.count(part.ticks.total[ROOT])}` : `all: ${duration(part.cpu.total[ROOT])} of ${profile.terms.time}`;
}

// Of sums like whole().
function figureOf(sum) {
  return profile.difference ? profile.difference.changeOf(sum.old, sum.new) : figure(sum.ticks, sum.cpu);
}

function figure(ticks, cpu) {
  return profile.untimed && !cpu ? profile.terms.count(ticks) : `${profile.terms.count(ticks)}, ${duration(cpu)}`;
}

function placeOf(node, picture) {
  const from = picture === flame ? sums : null;
  const frame = from ? hottestPlace(profile, from, node) : -1;
  return frame < 0 ? '' : `${profile.strings.shown(profile.frameFile[frame])}:${profile.frameLine[frame]}`;
}

function facts(node, picture) {
  const { sums: part, tree: shown } = picture, all = whole();
  if (profile.difference) return [...profile.difference.facts(part, node, shown.fn[node], isPart()), ...identity(shown.fn[node], shown.flags[node])];
  const ticks = part.ticks.total[node], cpu = part.cpu.total[node];
  const list = [['total', `${figure(ticks, cpu)}`], ['self', figure(part.ticks.self[node], part.cpu.self[node])]];
  list.push(['share', `${share(part[state.measure].total[node], all[state.measure])} of what is selected`]);
  list.push(['95 % confidence', profile.terms.confidence(ticks, all.ticks) || 'unknown: the file has no number of samples']);
  const above = shown.parent[node];
  if (node !== ROOT && above !== ROOT) list.push(['of its caller', share(part[state.measure].total[node], part[state.measure].total[above])]);
  return list.concat(identity(shown.fn[node], shown.flags[node]), [['source', placeOf(node, picture)]]).filter(([, text]) => text);
}

function identity(f, flags) {
  if (f < 0) return [];
  if (profile.stateOf?.(f)) return [['state', profile.stateText(profile.stateOf(f))]];
  const tier = TIERS[flags >> FLAG.TIER] ?? '';
  const words = [kindName(flags & FLAG.CATEGORY), tier, flags & FLAG.INLINED ? 'inlined' : '', flags & FLAG.UNNAMED ? 'no symbol' : '',
    flags & FLAG.AMBIGUOUS ? 'may be another function: the address was reused' : ''];
  return [...profile.fullNamesOf(f).slice(0, 8).map((text) => ['method', text]), ['module', profile.moduleOf(f)], ['kind', words.filter(Boolean).join(', ')]];
}

// ---- tooltip ----------------------------------------------------------------------------------------

function tip(event, title, list) {
  const box = byId('tip');
  if (!event || !title) {
    box.hidden = true;
    return;
  }
  const lines = make('dl');
  for (const [name, text] of list) lines.append(make('dt', null, name), make('dd', null, make('bdi', null, text.slice(0, 600))));
  box.replaceChildren(make('div', { class: 'title' }, make('bdi', null, title.slice(0, 1500))), lines);
  box.hidden = false;
  const { width, height } = box.getBoundingClientRect();
  const right = event.clientX + 14 + width > innerWidth, low = event.clientY + 18 + height > innerHeight;
  box.style.left = `${Math.max(4, right ? event.clientX - width - 10 : event.clientX + 14)}px`;
  box.style.top = `${Math.max(4, low ? event.clientY - height - 10 : event.clientY + 18)}px`;
}

function hoverBox(picture) {
  return (node, event) => {
    if (node < 0) {
      tip(null);
      byId('status').textContent = hint();
      return;
    }
    const text = node === ROOT ? rootText(picture) : textOf(picture.tree.fn[node]);
    const list = facts(node, picture);
    tip(event, text, list);
    const line = `${text.slice(0, 300)} – ${list.map(([name, value]) => `${name}: ${value}`).join(' · ')}`;
    byId('status').textContent = line;
    if (!event) byId('live').textContent = line;
  };
}

function hint() {
  if (state.view === 'heat') return 'Drag over cells to select their time';
  if (state.view === 'table') return 'Click a function for its callers and callees';
  return 'Click zooms · Ctrl + wheel zooms, drag pans · right click: callers and callees · ? for all keys';
}

// ---- views ------------------------------------------------------------------------------------------

function makeFlame(host, label, extra) {
  const picture = new Flame(host, {
    label, textOf, byName: () => state.sort === 'name', hover: (node, event) => hoverBox(picture)(node, event), styleOf,
    open: (node) => zoomInto(node), menu: (node) => sandwichOf(picture.tree.fn[node]), moved: () => {}, ...extra,
  });
  return picture;
}

function pane(host, style) {
  const element = make('div', { class: `pane ${style ?? ''}` });
  host.append(element);
  return element;
}

function makeViews() {
  flame = makeFlame(pane(byId('view-flame')), 'Flame graph; the table of functions has the figures as text', {
    moved: (p) => {
      const left = state.node;
      Object.assign(state, { zoom: p.to - p.from < 0.999999 ? p.target : null, node: ROOT });
      if (left) showPath();
      remember();
    },
  });
  chart = new Chart(pane(byId('view-time')), {
    label: 'Stacks of a thread in the order of time', styleOf,
    hover: (node, event, span) => {
      if (node < 0) return tip(null);
      const f = chart.tree.fn[node], list = [['from', moment(span.start, 1)], ['lasts', duration((span.end - span.start) * 1000)], ...identity(f, chart.tree.flags[node])];
      return tip(event, textOf(f), list);
    },
    ranged: rangeChart,
  });
  const left = make('div', { class: 'sandwich-left' }), right = make('div', { class: 'sandwich-right' });
  byId('view-sandwich').append(left, right);
  const titles = ['Callers', 'Callees'].map((text) => make('div', { class: 'sandwich-title' }, text));
  right.append(titles[0]);
  upper = makeFlame(pane(right), 'Callers of the chosen function', { skipRoot: true, open: (node) => sandwichOf(upper.tree.fn[node]) });
  right.append(titles[1]);
  lower = makeFlame(pane(right), 'Callees of the chosen function', { skipRoot: true, open: (node) => sandwichOf(lower.tree.fn[node]) });
  upper.title = titles[0];
  lower.title = titles[1];
  lower.upwards = false;
  if (recorded.waits) locks = new LockTable(byId('view-locks'), recorded);
}

// What has rows of its own, in the mode that is chosen.
function makeTable() {
  table = new (profile.difference ? DifferenceTable : FunctionTable)(profile, { chosen: (f) => sandwichOf(f), isPart });
  for (const host of [byId('view-table'), byId('view-sandwich').firstChild]) host.replaceChildren();
}

function makeRowViews() {
  makeTable();
  for (const host of [byId('timeline'), byId('view-heat')]) host.replaceChildren();
  timeline = heat = null;
  if (profile.untimed || !(recorded.node.length || recorded.waits)) return;
  timeline = new Timeline(byId('timeline'), profileOf(true), {
    all: profile, selected: selectTime, thread: pickThread,
    hover: (at, t, width, event) => {
      if (at < 0) {
        byId('status').textContent = hint();
        return tip(null);
      }
      byId('status').textContent = 'Drag to select a part of the time, click for all of it; click a name for one thread, with Ctrl for several';
      return tip(event, moment(at, profile.end / 1000), timelineFacts(at, t, width));
    },
  });
  if (!resized) byId('timeline').style.height = `${timeline.height(innerHeight)}px`;
  if (profile.difference) return;
  heat = new HeatMap(pane(byId('view-heat'), 'wide'), profile, {
    selected: selectTime,
    hover: (cell, event) => {
      const text = cell && `${moment(cell.from, 1000)} to ${moment(cell.to, 1000)}: ${profile.begin ? `${cell.ticks.toFixed(1)} threads` : profile.terms.count(cell.ticks)}`;
      tip(event, text, []);
      if (cell) byId('live').textContent = text;
    },
  });
}

function timelineFacts(at, t, width) {
  const use = timeline.useAt(at, t, width), { terms } = profile;
  const list = [[terms.use, t ? share(use, 1) : `${use.toFixed(2)} ${terms.unit}s`], ['thread', t ? `${profile.threadName(t)} (tid ${t.tid})` : 'all'], ['process', t ? profile.processName(t.process) : '']];
  if (t && profile.begin) list.push(...timeline.statesAt(at, t, width).map(([number, part]) => [profile.stateName(number), share(part, 1)]), ...(profile.difference ? [] : waitFacts(recorded, waitAt(recorded, t.number, at))));
  return list.filter(([, text]) => text);
}

function profileOf(parked) {
  const key = modeKey(parked);
  if (!profiles.has(key)) {
    const rows = state.mode === 'cpu' ? recorded : withRows(recorded, state.mode, parked);
    if (rows !== recorded && recorded.difference) rows.difference = new Difference(rows, factsOfWaits(recorded.words.difference));
    profiles.set(key, rows);
  }
  return profiles.get(key);
}

function modeMeasures() {
  const { mode } = state;
  return mode === 'cpu' || recorded.difference ? ownMeasures : [['cpu', mode === 'wall' ? 'Time' : 'Waiting time'], ['ticks', mode === 'wall' ? 'Samples and waits' : 'Waits']];
}

// CPU, waiting, or both: the same tables, with other rows.
function useMode() {
  profile = profileOf(state.parked);
  times = null;
  measures = modeMeasures();
  fill('measure', measures);
  if (profile.difference) fillDifferenceHeader(profile, byId('title'), byId('strip'), showDetails);
  makeRowViews();
  sums = rows = null;
}

// `other`: of two parts of the time (Ctrl); the one so far is OLD.
function selectTime(from, to, final, other) {
  const time = to > from ? [Math.floor(from), Math.ceil(to)] : null;
  if (time && (other || pinned)) change({ time, base: state.base ?? (other ? state.time : null) }, final);
  else change({ time, base: null }, final);
  if (final) pinned = false;
}

function pinTime() {
  if (!state.time || profile.words.difference) return;
  pinned = true;
  change({ base: state.time, time: null });
}

// ---- two parts of the time, compared ----------------------------------------------------------------

function fill(key, choices) {
  byId(`choose-${key}`).replaceChildren(...choices.map(([value, text]) => make('option', { value }, text)));
}

// If both are selected: their rows, with the tests. The timeline stays that of the whole.
function useTimes() {
  const wanted = state.base && state.time && !recorded.untimed && !recorded.uncounted && !recorded.difference;
  const key = wanted ? `${modeKey()} ${state.base} ${state.time} ${state.threads}` : '';
  if (key === (times?.key ?? '')) return;
  const had = views !== allViews;
  times = null;
  profile = profileOf(state.parked);
  if (wanted) times = { key, ...compareTimes(profile, treeOf('merged', false), [state.base, state.time], isWanted) };
  const has = !!times?.profile;
  if (!has && !had) return;
  for (const known of [...trees.keys()]) if (known.startsWith('times ')) trees.delete(known);
  if (has) profile = times.profile;
  measures = has ? COMPARED_MEASURES : modeMeasures();
  colourings = has ? [['difference', 'Colour: difference'], ...ownColourings] : ownColourings;
  views = has ? allViews.filter(([view]) => !['time', 'heat', 'locks'].includes(view)) : allViews;
  fill('measure', measures);
  fill('colours', colourings);
  if (has && !had) Object.assign(state, { measure: 'mean', colours: 'difference' });
  makeTable();
  Object.assign(state, { node: ROOT, zoom: null });
  sums = rows = null;
  colours.clear();
}

function pickThread(number, event) {
  if (number < 0) return change({ threads: [], chart: -1 });
  const many = event.ctrlKey || event.metaKey || event.shiftKey, had = state.threads.includes(number);
  const others = state.threads.filter((n) => n !== number);
  const only = had && state.threads.length === 1;
  return change({ threads: many ? (had ? others : [...others, number]) : only ? [] : [number], chart: number });
}

// While the chart is moved: the rest is worked out when it is looked at.
function rangeChart(from, to) {
  const time = to - from >= profile.end * 0.999999 ? null : [from, to];
  if (state.query) {
    change({ time });
    return;
  }
  state.time = time;
  stale = true;
  timeline?.mark(state.time, new Set(state.threads), state.base);
  showPath();
  remember();
}

function zoomInto(node) {
  change({ node, zoom: null });
}

function sandwichOf(fn) {
  if (fn >= 0) change({ view: 'sandwich', fn });
}

function chartThread() {
  const ran = profile.threads.filter((t) => t.end > t.first && isWanted(t));
  return ran.find((t) => t.number === state.chart) ?? ran.reduce((a, b) => (!a || b.cpu > a.cpu ? b : a), null);
}

function showSandwich() {
  let { fn } = state;
  if (fn < 0 || fn >= profile.functionName.length) fn = table.list[0] ?? -1;
  table.choose(fn);
  if (fn < 0) return;
  const all = whole()[state.measure];
  upper.show(callers(sums, fn), state.measure);
  lower.show(callees(sums, fn), state.measure);
  const part = lower.sums[state.measure].total[ROOT];
  upper.title.textContent = `Callers of ${profile.nameOf(fn).slice(0, 200)} – ${share(part, all)} of what is selected`;
  lower.title.textContent = `What ${profile.nameOf(fn).slice(0, 200)} calls`;
  for (const picture of [upper, lower]) picture.zoomTo(0, 1, 'now');
}

// ---- the frame around -------------------------------------------------------------------------------

function select(label, key, choices, choose = (value) => change({ [key]: value })) {
  const element = make('select', { 'aria-label': label, title: label, id: `choose-${key}`, onchange: () => choose(element.value) },
    ...choices.map(([value, text]) => make('option', { value }, text)));
  return element;
}

function toggle(key, text, title) {
  return make('button', { type: 'button', id: `toggle-${key}`, title, 'aria-pressed': 'false', onclick: () => change({ [key]: !state[key] }) }, text);
}

// Waiting has its time as width, as samples have their number.
function showMode(mode) {
  change(recorded.difference ? { mode } : { mode, measure: '' });
}

function makeFrame() {
  for (const [view, text, title] of views) {
    byId('tabs').append(make('button', { type: 'button', role: 'tab', id: `tab-${view}`, title, 'aria-controls': `view-${view}`, onclick: () => change({ view }) }, text));
  }
  byId('controls').append(
    ...(recorded.waits ? [toggle('parked', 'Parked', 'Waits of event loops and of idle threads of pools, too (p)'), select('What is shown', 'mode', modes, showMode)] : []),
    select('Grouped by', 'group', groupings),
    select('Width stands for', 'measure', measures),
    select('Colours', 'colours', colourings),
    select('Order of boxes', 'sort', [['weight', 'Heavy first'], ['name', 'A to Z']]),
    toggle('down', 'Icicle', 'Root on top (i)'), toggle('recursion', 'Recursion', 'A function that calls itself is one frame (r)'),
    make('button', { type: 'button', id: 'save', title: 'Save what is selected as folded stacks (f)', onclick: saveFolded }, 'Save folded'));
  byId('query').addEventListener('input', (event) => change({ query: event.target.value }));
  byId('regex').addEventListener('click', () => change({ regex: !state.regex }));
  byId('theme').addEventListener('click', switchTheme);
  byId('help').addEventListener('click', () => open(byId('keys')));
  addEventListener('keydown', onKey);
  addEventListener('hashchange', (event) => {
    const fragment = event.newURL.split('#')[1] ?? '';
    if (fragment === written) return;
    clearTimeout(remembering);
    change(fromFragment(fragment));
  });
  document.addEventListener('scroll', () => tip(null), { capture: true, passive: true });
  const bar = byId('splitter');
  const resize = (height) => (byId('timeline').style.height = `${Math.max(0, Math.min(innerHeight - 260, height))}px`);
  bar.addEventListener('pointerdown', (down) => {
    const from = byId('timeline').offsetHeight;
    resized = true;
    bar.setPointerCapture(down.pointerId);
    const move = (event) => resize(from + event.clientY - down.clientY);
    bar.addEventListener('pointermove', move);
    bar.addEventListener('pointerup', () => bar.removeEventListener('pointermove', move), { once: true });
  });
  bar.addEventListener('keydown', (event) => {
    const by = { ArrowUp: -26, ArrowDown: 26 }[event.key];
    if (by) resize(byId('timeline').offsetHeight + by);
  });
  fillHelp(byId('keys'));
}

function open(dialog) {
  tip(null);
  if (!dialog.open) dialog.showModal();
}

function showDetails() {
  const host = make('div');
  if (profile.difference) host.replaceChildren(...differenceDetails(profile.difference));
  else fillDetails(recorded, host);
  byId('details').replaceChildren(closer(), make('h2', null, profile.difference ? 'About this comparison' : 'About this recording'), host);
  open(byId('details'));
}

function showLegend() {
  const entry = (colour, text, extra) => {
    const dot = make('i', { class: `dot ${extra ?? ''}` });
    if (colour) dot.style.background = colour;
    return make('span', null, dot, text);
  };
  const legend = byId('legend');
  if (state.view === 'heat') {
    const ramp = make('i', { class: 'ramp' });
    ramp.style.background = `linear-gradient(90deg, ${[0, 0.2, 0.4, 0.6, 0.8, 1].map(rampColour).join(', ')})`;
    legend.replaceChildren(make('span', null, '0', ramp, profile.begin ? `${(heat?.most ?? 0).toFixed(1)} threads` : `${profile.terms.count(heat?.most ?? 0)} in ${heat ? heat.each / 1000 : 20} ms`));
    return;
  }
  if (state.colours === 'difference' || (profile.difference && state.view === 'table')) {
    legend.replaceChildren(...profile.difference.legend(isPart(), entry));
    return;
  }
  kinds ??= new Set(profile.frameFlags.map((flags) => flags & FLAG.CATEGORY));
  inlines ??= profile.frameFlags.some((flags) => flags & FLAG.INLINED);
  if (profile.begin) states ??= [...new Set(recorded.waits.state)].sort((a, b) => a - b);
  const entries = state.colours === 'kind' || state.view === 'table' ? [1, 3, 4, 2, 0].filter((k) => kinds.has(k)).map((k) => entry(plainKind(k), kindName(k))) : [];
  if (profile.begin) entries.push(...states.map((number) => entry(stateColour(number), profile.stateName(number))));
  if (inlines) entries.push(entry('', 'inlined', 'inlined'));
  if (matches) entries.push(entry('', 'match', 'match'));
  legend.replaceChildren(...entries);
}

function showPath() {
  const parts = [];
  const chip = (text, undo) => make('button', { type: 'button', class: 'chip', title: 'Undo this selection', onclick: () => change(undo) }, text);
  const span = ([from, to]) => `${moment(from, (to - from) / 100)} – ${moment(to, (to - from) / 100)}`;
  if (state.base) parts.push(chip(`OLD ${span(state.base)}`, { base: null }));
  if (state.time) parts.push(chip(`${state.base ? 'NEW ' : ''}${span(state.time)}`, { time: state.base, base: null }));
  if (state.base && !state.time) parts.push(make('span', { class: 'apart' }, 'drag over the timeline to select NEW'));
  if (times?.profile) {
    parts.push(make('b', { id: 'sentence' }, profile.difference.all.sentence));
  }
  if (parked && !state.parked && (profile.begin || state.view === 'locks')) parts.push(make('button', { type: 'button', class: 'apart', title: 'Their waits are nearly all at one place, for a time or for what comes from outside', onclick: () => change({ parked: true }) }, `without the waits of ${plural(parked, 'parked thread')}`));
  for (const number of state.threads.slice(0, 4)) {
    const t = profile.threads[number];
    if (t) parts.push(chip(`${profile.threadName(t).slice(0, 40)} (${t.tid})`, { threads: state.threads.filter((n) => n !== number) }));
  }
  if (state.threads.length > 4) parts.push(chip(`${state.threads.length - 4} more threads`, { threads: [] }));
  if (state.view === 'flame') {
    const path = [];
    for (let at = state.node; at !== ROOT; at = tree.parent[at]) path.push(at);
    const all = whole();
    parts.push(make('button', { type: 'button', onclick: () => zoomInto(ROOT) }, `all: ${figureOf(all)}`));
    if (path.length > 12) path.splice(6, path.length - 12, -1);
    for (const node of path.reverse()) parts.push(make('i', null, '›'), node < 0 ? make('i', null, '…') : make('button', { type: 'button', onclick: () => zoomInto(node) }, textOf(tree.fn[node]).slice(0, 80)));
  } else if (state.view === 'time') {
    const t = chartThread();
    if (t) parts.push(make('span', null, `Thread ${profile.threadName(t).slice(0, 80)} (tid ${t.tid}); click another one in the timeline`));
  } else {
    parts.push(make('span', null, `selected: ${figureOf(whole())}`));
  }
  byId('path').replaceChildren(...parts);
}

function showSearch() {
  const field = byId('query');
  if (field.value !== state.query) field.value = state.query;
  byId('regex').setAttribute('aria-pressed', String(state.regex));
  const output = byId('matched');
  if (!matches) {
    output.textContent = byId('query').classList.contains('bad') ? 'not a pattern' : '';
    return;
  }
  const found = matchedSums(sums, matches);
  output.textContent = `${share(found[state.measure], whole()[state.measure])} matched`;
  output.title = profile.difference ? figureOf(found) : [figure(found.ticks, found.cpu), profile.terms.confidence(found.ticks, whole().ticks)].filter(Boolean).join('; 95 % confidence: ');
}

function messageFor() {
  if (times?.reason) return times.reason;
  if (state.view === 'locks') return '';
  if (!profile.threads.some((t) => rangeOf(t)[1] > rangeOf(t)[0])) {
    return profile.node.length ? 'There is no sample in what is selected.' : `This profile has no samples: nothing that was recorded used the CPU when a tick came.${recorded.waits ? ' It has waits.' : ''}`;
  }
  if (profile.untimed && (state.view === 'time' || state.view === 'heat')) return 'This profile was read from a format that has no times: there is no order of samples to show.';
  return '';
}

// ---- change -----------------------------------------------------------------------------------------

// `news`: some of the state. What depends on it is computed and drawn.
function change(news, final = true) {
  const before = state, opening = !sums;
  state = { ...state, ...news };
  if (!final && state.base && state.time) { // what a drag selects is compared at its end
    timeline?.mark(state.time, new Set(state.threads), state.base);
    return;
  }
  if (!recorded.waits || !modes.some(([m]) => m === state.mode)) Object.assign(state, { mode: 'cpu', parked: false });
  const changed = before.mode !== state.mode || before.parked !== state.parked;
  if (opening || changed) useMode();
  if (!opening && changed) Object.assign(state, { node: ROOT, zoom: null });
  if (state.time && (profile.untimed || state.time[0] >= profile.end)) state.time = null;
  if (state.base && (profile.untimed || state.base[0] >= profile.end)) state.base = null;
  useTimes();
  const first = !sums;
  const differs = (...keys) => first || keys.some((key) => String(before[key]) !== String(state[key]));
  state.threads = state.threads.filter((n) => n < profile.threads.length);
  if (!measures.some(([m]) => m === state.measure)) state.measure = measures[0][0];
  if (!groupings.some(([g]) => g === state.group)) state.group = DEFAULTS.group;
  if (!colourings.some(([c]) => c === state.colours)) state.colours = DEFAULTS.colours;
  if (!views.some(([v]) => v === state.view)) state.view = DEFAULTS.view;
  const regrouped = differs('group', 'recursion');
  if (regrouped) tree = treeOf(state.group, state.recursion);
  if (state.node >= tree.count) state.node = ROOT;
  if (!first && regrouped) Object.assign(state, { node: ROOT, zoom: null });
  const wanted = regrouped || differs('time', 'threads') || stale;
  stale = wanted && state.view === 'time' && !state.query && !first; // none of it can be seen there
  const selected = wanted && !stale;
  if (selected) {
    sums = tally(profile, tree, rangeOf, sums);
    profile.difference?.average(profile, sums, isWanted);
    rows = null;
  }
  if (differs('colours') || (profile.difference && selected)) colours.clear();
  if (differs('query', 'regex')) matches = compile();
  showView(differs, selected);
  showSearch();
  showPath();
  showLegend();
  if (final && !opening) remember();
}

function showView(differs, selected) {
  const message = messageFor();
  byId('message').hidden = !message;
  byId('message').textContent = message;
  for (const [view] of allViews) {
    byId(`tab-${view}`).hidden = !views.some(([shown]) => shown === view);
    byId(`view-${view}`).hidden = view !== state.view || !!message;
    byId(`tab-${view}`).setAttribute('aria-selected', String(view === state.view));
    byId(`tab-${view}`).tabIndex = view === state.view ? 0 : -1;
  }
  for (const [key, views] of Object.entries(USES)) {
    const control = byId(`choose-${key}`) ?? byId(`toggle-${key}`);
    if (!control) continue;
    control.hidden = !views.includes(state.view) || (key === 'parked' && (!parked || (state.mode === 'cpu' && state.view !== 'locks')));
    if (control.matches('select')) control.value = state[key];
    else control.setAttribute('aria-pressed', String(state[key]));
  }
  byId('status').textContent = hint();
  const entered = differs('view'), resorted = differs('sort', 'measure');
  if (selected || entered || resorted || flame.tree !== tree) flame.show(sums, state.measure);
  flame.point(!state.down);
  if (selected || resorted || differs('node', 'zoom')) {
    const [from, to] = state.node ? flame.place(state.node) : state.zoom ?? [0, 1];
    flame.zoomTo(from, to, differs('node') && !selected ? '' : 'now');
  }
  timeline?.mark(state.time, new Set(state.threads), state.base);
  if (differs('threads') && state.threads.length) timeline?.reveal(state.threads[0]);
  if (state.view === 'table' || state.view === 'sandwich') {
    (state.view === 'table' ? byId('view-table') : byId('view-sandwich').firstChild).append(table.element);
    if (!rows || entered || differs('measure', 'query', 'regex')) table.show((rows ??= functionSums(profile, sums)), state.measure, whole(), matches, state.fn);
  }
  if (state.view === 'sandwich' && !message) showSandwich();
  if (locks && state.view === 'locks' && differs('threads', 'time', 'view')) locks.show(isWanted, state.time, state.parked);
  if (differs('threads')) heat?.forget();
  if (heat && state.view === 'heat') {
    if (!heat.cells) heat.count(isWanted);
    heat.mark(state.time);
  }
  if (state.view === 'time' && !message) {
    const t = chartThread();
    const [from, to] = state.time ?? [0, profile.end];
    if (t) chart.show(profile, treeOf('merged', false), t, from, to);
  }
  for (const picture of [flame, chart, upper, lower]) picture.surface.ask();
}

// A moment later, since browsers refuse to change the address more often than they like.
function remember() {
  clearTimeout(remembering);
  remembering = setTimeout(writeAddress, 120);
}

function writeAddress() {
  written = toFragment(state);
  try {
    history.replaceState(null, '', written ? `#${written}` : location.href.replace(/#.*/, ''));
  } catch {
    location.replace(`#${written}`);
  }
}

function saveFolded() {
  const text = folded(profile, rangeOf);
  const link = make('a', { href: URL.createObjectURL(new Blob([text], { type: 'text/plain' })), download: 'profile.folded' });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// ---- keys and theme ---------------------------------------------------------------------------------

function stepBack() {
  if (state.query) change({ query: '' });
  else if (state.node || state.zoom) change({ node: ROOT, zoom: null });
  else if (state.base) change({ base: null });
  else if (state.time) change({ time: null });
  else if (state.threads.length) change({ threads: [] });
}

function nextIn(key, choices) {
  change({ [key]: choices[(choices.indexOf(state[key]) + 1) % choices.length] });
}

function nextMatch() {
  if (!matches || state.view !== 'flame') return;
  const found = [];
  for (let i = 1; i < tree.count; i++) if (tree.fn[i] >= 0 && matches[tree.fn[i]] && sums[state.measure].total[i] > 0) found.push(i);
  if (!found.length) return;
  found.sort((a, b) => sums[state.measure].total[b] - sums[state.measure].total[a] || a - b);
  const next = found[(found.indexOf(flame.chosen) + 1) % found.length];
  if ((flame.boxOf(next)?.w ?? 0) < 3 && flame.place(next)[1] - flame.place(next)[0] < 3 / flame.surface.width) zoomInto(next);
  flame.chosen = next;
  flame.reveal(next);
  hoverBox(flame)(next, null);
}

function moveTime(by) {
  if (!state.time || profile.untimed) return;
  const [from, to] = state.time, size = to - from;
  const start = Math.min(Math.max(0, from + by * size), Math.max(0, profile.end - size));
  change({ time: [Math.round(start), Math.round(start + size)] });
}

function picture() {
  return state.view === 'time' ? chart : flame;
}

const ACTIONS = {
  '/': () => byId('query').focus(), '?': () => open(byId('keys')), Escape: stepBack, n: nextMatch,
  '+': () => picture().scaleBy(0.7, 0.5), '=': () => picture().scaleBy(0.7, 0.5), '-': () => picture().scaleBy(1 / 0.7, 0.5),
  a: () => picture().pan(-0.2), d: () => picture().pan(0.2), w: () => picture().surface.host.scrollBy(0, -90), s: () => picture().surface.host.scrollBy(0, 90),
  0: () => (state.view === 'time' ? change({ time: null }) : change({ node: ROOT, zoom: null })), Backspace: () => zoomInto(tree.parent[state.node]),
  g: () => nextIn('group', groupings.map(([g]) => g)), p: () => parked && change({ parked: !state.parked }), v: () => recorded.waits && showMode(modes[(modes.findIndex(([m]) => m === state.mode) + 1) % modes.length][0]), i: () => change({ down: !state.down }), m: () => nextIn('measure', measures.map(([m]) => m)),
  c: () => nextIn('colours', colourings.map(([c]) => c)), o: () => nextIn('sort', ['weight', 'name']), r: () => change({ recursion: !state.recursion }),
  x: () => sandwichOf(tree.fn[flame.chosen || flame.hovered || state.node] ?? -1), '[': () => moveTime(-0.5), ']': () => moveTime(0.5), f: saveFolded,
  t: switchTheme, b: pinTime, h: () => (byId('timeline').hidden = byId('splitter').hidden = !byId('timeline').hidden),
};

function onKey(event) {
  const inField = event.target.matches?.('input, select, textarea');
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const dialog = document.querySelector('dialog[open]');
  if (dialog) {
    if (event.key === 'Escape' || event.key === '?') dialog.close();
    return;
  }
  if (inField) {
    if (event.key === 'Escape') {
      if (event.target.value && event.target.id === 'query') change({ query: '' });
      else event.target.blur();
    } else if (event.key === 'Enter' && event.target.id === 'query') nextMatch();
    return;
  }
  if (event.target.getAttribute?.('role') === 'tab' && (event.key === 'ArrowLeft' || event.key === 'ArrowRight')) {
    const at = views.findIndex(([view]) => view === state.view) + (event.key === 'ArrowLeft' ? -1 : 1);
    const [view] = views[(at + views.length) % views.length];
    change({ view });
    byId(`tab-${view}`).focus();
    return;
  }
  const view = views[Number(event.key) - 1];
  const action = view ? () => change({ view: view[0] }) : ACTIONS[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

function applyTheme(isNight) {
  setDark(isNight);
  colours.clear();
  document.documentElement.dataset.theme = isNight ? 'dark' : 'light';
  forgetTheme();
  if (!profile || !sums) return;
  timeline?.redraw(true);
  heat?.surface.ask();
  for (const p of [flame, chart, upper, lower]) p.surface.ask();
  if (table.rows) table.render();
  showLegend();
}

function kept(name, value) {
  try {
    if (value === undefined) return localStorage.getItem(name);
    localStorage.setItem(name, value);
  } catch {
    // a page from a file may have no storage
  }
  return null;
}

function switchTheme() {
  applyTheme(!isDark());
  kept('sysprof-theme', isDark() ? 'dark' : 'light');
}

function watchTheme() {
  const query = matchMedia('(prefers-color-scheme: dark)'), own = kept('sysprof-theme');
  applyTheme(own ? own === 'dark' : query.matches);
  query.addEventListener('change', () => !kept('sysprof-theme') && applyTheme(query.matches));
}

// ---- start ------------------------------------------------------------------------------------------

// A page of a comparison has measures and colours of its own, and no order of samples.
const COMPARED_MEASURES = [['mean', 'Width: mean'], ['new', 'Width: NEW'], ['old', 'Width: OLD']];

function chooseMode() {
  measures = [['ticks', profile.event || (profile.uncounted ? 'Weight' : 'Samples')], ['cpu', 'CPU time']];
  colourings = [['kind', 'Colour: kind'], ['name', 'Colour: function'], ['module', 'Colour: module']];
  if (profile.waits) {
    addStates(profile);
    parked = profile.threads.filter((t) => t.parked).length;
    groupings = [...groupings, ['state', 'By state']];
    if (hasLocks(profile)) views = [...VIEWS, LOCKS_VIEW];
  }
  if (!profile.words.difference) return;
  profile.difference = new Difference(profile, profile.words.difference);
  measures = COMPARED_MEASURES;
  colourings.unshift(['difference', 'Colour: difference']);
  groupings = [['merged', 'Merged'], ['process', 'By side'], ['thread', 'By file']];
  modes = MODES.filter(([mode]) => mode !== 'wall');
  profile.waits?.parked.fill(0); // the tests are of all waits
  parked = 0;
  views = VIEWS.filter(([view]) => view !== 'time' && view !== 'heat');
  Object.assign(DEFAULTS, { measure: 'mean', colours: 'difference' });
  state = fromFragment(location.hash);
}

async function start() {
  watchTheme();
  const element = byId('profile');
  profile = await readProfile(element.textContent.trim());
  element.remove();
  recorded = profile;
  chooseMode();
  ownMeasures = measures;
  ownColourings = colourings;
  allViews = views;
  if (!profile.difference) fillHeader(profile, byId('title'), byId('strip'), showDetails);
  makeFrame();
  makeViews();
  change({});
  byId('timeline').hidden = byId('splitter').hidden = !timeline;
  for (const p of [flame, upper, lower, chart]) p.surface.resize();
  performance.mark('first-picture');
  document.documentElement.dataset.ready = 'yes';
}

// For tests, and for use in the console.
globalThis.page = {
  get state() { return structuredClone(state); },
  get profile() { return profile; },
  change,
  folded: () => folded(profile, rangeOf),
  whole,
  rows: () => (rows ??= functionSums(profile, sums)),
  frameColour,
  defaults: DEFAULTS,
  pictures: () => ({ flame, chart, upper, lower, timeline, heat }),
};

start().catch((error) => {
  byId('message').hidden = false;
  byId('message').textContent = `This page could not be read: ${error.message}`;
  throw error;
});
