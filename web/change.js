// SPDX-License-Identifier: BSD-2-Clause
//
// The ways to change what is shown. change() is the only one that does; it works out what has to be computed and drawn anew.
// A selection (time, threads) only changes sums; a grouping makes another tree, a filter other rows.

import { forgetColours } from './boxes.js';
import { fillDifferenceHeader } from './difference.js';
import { addClause, checkData, printClauses } from './filter.js';
import { fill, showDetails } from './frame.js';
import { sayBriefly } from './hover.js';
import { showLegend, showPath, showSearch } from './lines.js';
import { clauses, colourings, decoded, measures, postponeTime, profile, recorded, state, sums, take, useFilter, useRows, useSelection, useTimes } from './shown.js';
import { remember } from './state.js';
import { byId } from './text.js';
import { ROOT } from './tree.js';
import { makeLocks, makeRowViews, makeTable, showView, timeline } from './views.js';

// What has rows of its own, in the mode and of the filter.
function remake() {
  fill('measure', measures);
  if (profile.difference) fillDifferenceHeader(profile, byId('title'), byId('strip'), showDetails);
  makeRowViews();
}

function remakeCompared() {
  fill('measure', measures);
  fill('colours', colourings);
  makeTable();
  forgetColours();
}

// `news`: some of the state. What depends on it is computed and drawn.
export function change(news, final = true) {
  const before = state, opening = !sums;
  take(news);
  if (!final && state.base && state.time) { // what a drag selects is compared at its end
    timeline?.mark(state.time, new Set(state.threads), state.base);
    return;
  }
  const refiltered = opening || before.filter !== state.filter;
  if (refiltered && useFilter()) makeLocks();
  if (useRows(before, refiltered)) remake();
  if (useTimes()) remakeCompared();
  const { differs, selected } = useSelection(before);
  if (differs('colours') || (profile.difference && selected)) forgetColours();
  showSearch(); // before the views, whose sizes depend on it
  showPath();
  showView(differs, selected);
  showLegend();
  if (final && !opening) remember(state);
}

// ---- times and threads -----------------------------------------------------------------------------------

let pinned = false; // the next drag selects NEW: the time so far is OLD

// `other`: of two parts of the time (Ctrl); the one so far is OLD.
export function selectTime(from, to, final, other) {
  const time = to > from ? [Math.floor(from), Math.ceil(to)] : null;
  if (time && (other || pinned)) change({ time, base: state.base ?? (other ? state.time : null) }, final);
  else change({ time, base: null }, final);
  if (final) pinned = false;
}

export function pinTime() {
  if (!state.time || profile.words.difference) return;
  pinned = true;
  change({ base: state.time, time: null });
}

export function pickThread(number, event) {
  if (number < 0) return change({ threads: [], chart: -1 });
  const many = event.ctrlKey || event.metaKey || event.shiftKey, had = state.threads.includes(number);
  const others = state.threads.filter((n) => n !== number);
  const only = had && state.threads.length === 1;
  return change({ threads: many ? (had ? others : [...others, number]) : only ? [] : [number], chart: number });
}

// While the chart is moved: the rest is worked out when it is looked at.
export function rangeChart(from, to) {
  const time = to - from >= profile.end * 0.999999 ? null : [from, to];
  if (state.query) {
    change({ time });
    return;
  }
  postponeTime(time);
  timeline?.mark(state.time, new Set(state.threads), state.base);
  showPath();
  remember(state);
}

// ---- what is looked at -----------------------------------------------------------------------------------

export function zoomInto(node) {
  change({ node, zoom: null });
}

export function sandwichOf(fn) {
  if (fn >= 0) change({ view: 'sandwich', fn });
}

export function codeOf(fn) {
  if (fn >= 0) change({ view: 'code', fn, copy: '' });
}

// Waiting has its time as width, as samples have their number.
export function showMode(mode) {
  change(recorded.difference ? { mode } : { mode, measure: '' });
}

// With more clauses: [name, text] of each. False: one is wrong.
export function filterBy(...more) {
  let all = clauses;
  try {
    for (const [name, text] of more) all = addClause(all, name, text);
    checkData(decoded, all);
  } catch (error) {
    sayBriefly(error.message);
    return false;
  }
  change({ filter: printClauses(all) });
  return true;
}

// The last thing that was chosen, undone.
export function stepBack() {
  if (state.query) change({ query: '' });
  else if (state.node || state.zoom) change({ node: ROOT, zoom: null });
  else if (state.base) change({ base: null });
  else if (state.time) change({ time: null });
  else if (state.threads.length) change({ threads: [] });
  else if (clauses.length) change({ filter: printClauses(clauses.slice(0, -1)) });
}
