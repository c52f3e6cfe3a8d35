// SPDX-License-Identifier: BSD-2-Clause
//
// What is shown: the state, the profile with the rows of its mode and filter, and the sums of what is selected. Others read
// these; start() and change() call what writes them. Nothing here looks at the document.

import { Difference, factsOfWaits } from './difference.js';
import { applyFilter, parseClauses, printClauses } from './filter.js';
import { VIEWS, LOCKS_VIEW } from './help.js';
import { compareTimes, firstAt } from './selections.js';
import { DEFAULTS, fromFragment } from './state.js';
import { ROOT, buildGrouped, buildMerged, functionSums, tally } from './tree.js';
import { gatherUnnamed } from './unnamed.js';
import { MODES, addStates, hasLocks, withLeaves, withRows } from './wall.js';

export let profile, recorded, decoded; // the rows that are shown, those of samples, these as they were read
let unfiltered; // with states of waits
export let state = fromFragment(location.hash);
export let clauses = [], refusal = ''; // of the filter; why it was not taken
const profiles = new Map(); // by mode
const trees = new Map();
const mergedTrees = new WeakMap(); // by the parents of nodes: trees, by recursion
export let tree, sums;
export let rows = null; // by function, once a view needs them
export let matches = null, isBadQuery = false; // of the search
let stale = false; // the sums are of an earlier selection
export let parked = 0; // threads that the profile has
export let groupings = [['merged', 'Merged'], ['process', 'By process'], ['thread', 'By thread']];
export let modes = MODES, views = VIEWS, measures, colourings; // that there are: [name, text] of each
export let allViews; // with those that two compared times do not have
let ownMeasures, ownColourings;
export let times = null; // two parts of the time, compared: {key, reason or profile}

// ---- trees and sums ------------------------------------------------------------------------------------

function modeKey(withParked = state.parked) {
  return state.mode === 'cpu' ? 'cpu' : `${state.mode} ${withParked && parked > 0}`;
}

// `opened`: of code without a symbol, the functions whose addresses are shown; null: all.
export function treeOf(grouping, recursion, opened = state.opened) {
  const key = `${times?.profile ? 'times' : modeKey()} ${grouping} ${recursion} ${decoded.gathered ? opened : ''}`;
  if (!trees.has(key)) {
    const merged = mergedTree(recursion, opened);
    trees.set(key, grouping === 'merged' ? merged : buildGrouped(profile, grouping, merged));
  }
  return trees.get(key);
}

function gatheredBut(opened) {
  const { gathered } = decoded;
  if (!gathered || !opened) return null;
  return opened.length ? gathered.map((f) => (opened.includes(f) ? 0 : f)) : gathered;
}

// Other rows of the same stacks have the same tree, with leaves of their own.
function mergedTree(recursion, opened) {
  const { nodeParent, node } = profile, key = `${recursion} ${decoded.gathered ? opened : ''}`;
  if (!mergedTrees.has(nodeParent)) mergedTrees.set(nodeParent, new Map());
  const known = mergedTrees.get(nodeParent);
  if (!known.has(key)) known.set(key, buildMerged(profile, recursion, gatheredBut(opened)));
  return { ...known.get(key), leaf: node };
}

// With all addresses of code without a symbol.
export function tallyOfAll(grouping) {
  return tally(profile, treeOf(grouping, state.recursion, null), rangeOf);
}

// By function, as the report has them: each address by itself.
export function functionRows() {
  return (rows ??= functionSums(profile, decoded.gathered ? tallyOfAll('merged') : sums));
}

export function isWanted(t) {
  return !state.threads.length || state.threads.includes(t.number);
}

// The rows of a thread that are selected. A sample at the very end of the whole belongs to it.
export function rangeOf(t) {
  if (times?.profile) return [t.first, t.end];
  if (!isWanted(t)) return [0, 0];
  if (!state.time) return [t.first, t.end];
  return [firstAt(profile, t, state.time[0]), state.time[1] >= profile.end ? t.end : firstAt(profile, t, state.time[1])];
}

// By function: whether the search finds it; null: there is none.
function compile() {
  const query = state.query.trim();
  isBadQuery = false;
  if (!query) return null;
  let test;
  if (state.regex) {
    try {
      const pattern = new RegExp(query, 'iu');
      test = (text) => pattern.test(text);
    } catch {
      isBadQuery = true;
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

export function whole() {
  return Object.fromEntries(profile.measures.map((m) => [m, sums[m].total[ROOT]]));
}

// CPU time after the last samples of what is selected: no row has it, the summary does.
export function timeBehind() {
  if (profile.difference) return 0;
  return profile.threads.reduce((sum, t) => {
    const [from, to] = rangeOf(t), isLast = t.end > t.first ? from < to && to === t.end : isWanted(t) && !state.time;
    return sum + (isLast ? t.tail : 0);
  }, 0);
}

// Is less than the whole selected? Then the tests of a comparison say nothing about it.
export function isPart() {
  return !times?.profile && (state.time !== null || state.threads.length > 0);
}

export function hasTimes() {
  return !decoded.untimed && (decoded.node.length > 0 || !!decoded.waits);
}

// Whose stacks the time order shows.
export function chartThread() {
  const ran = profile.threads.filter((t) => t.end > t.first && isWanted(t));
  return ran.find((t) => t.number === state.chart) ?? ran.reduce((a, b) => (!a || b.cpu > a.cpu ? b : a), null);
}

// ---- filter, mode, compared times ----------------------------------------------------------------------

// With the rows of the mode.
export function profileOf(parked) {
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

// The clauses of the address. What they keep is as if nothing else had been recorded. False: there were and are none.
export function useFilter() {
  if (decoded.words.difference) state.filter = ''; // its tests are of the whole
  if (!state.filter && !recorded.filter) return false;
  refusal = '';
  let part = decoded;
  try {
    clauses = parseClauses(state.filter);
    part = applyFilter(decoded, clauses);
  } catch (error) {
    refusal = error.message;
    clauses = [];
  }
  state.filter = printClauses(clauses);
  recorded = part === decoded ? unfiltered : part.waits ? withLeaves(part) : part;
  parked = recorded.waits ? recorded.threads.filter((t) => t.parked).length : 0;
  for (const known of [profiles, trees]) known.clear();
  return true;
}

// CPU, waiting, or both: the same tables, with other rows.
function useMode() {
  profile = profileOf(state.parked);
  times = null;
  measures = modeMeasures();
  sums = rows = null;
}

// A page of a comparison has measures and colours of its own, and no order of samples.
export const COMPARED_MEASURES = [['mean', 'Width: mean'], ['new', 'Width: NEW'], ['old', 'Width: OLD']];

// If both are selected: their rows, with the tests. The timeline stays that of the whole. False: nothing has changed.
export function useTimes() {
  const wanted = state.base && state.time && !recorded.untimed && !recorded.uncounted && !recorded.difference;
  const key = wanted ? `${modeKey()} ${state.base} ${state.time} ${state.threads}` : '';
  if (key === (times?.key ?? '')) return false;
  const had = views !== allViews;
  times = null;
  profile = profileOf(state.parked);
  if (wanted) times = { key, ...compareTimes(profile, treeOf('merged', false, null), [state.base, state.time], isWanted) };
  const has = !!times?.profile;
  if (!has && !had) return false;
  for (const known of [...trees.keys()]) if (known.startsWith('times ')) trees.delete(known);
  if (has) profile = times.profile;
  measures = has ? COMPARED_MEASURES : modeMeasures();
  colourings = has ? [['difference', 'Colour: difference'], ...ownColourings] : ownColourings;
  views = has ? allViews.filter(([view]) => !['time', 'heat', 'locks'].includes(view)) : allViews;
  if (has && !had) Object.assign(state, { measure: 'mean', colours: 'difference' });
  Object.assign(state, { node: ROOT, zoom: null });
  sums = rows = null;
  return true;
}

// ---- changes -------------------------------------------------------------------------------------------

// What has become of the profile: the read one, with what the page adds to it.
export function useProfile(read) {
  profile = decoded = read;
  if (!decoded.words.difference) gatherUnnamed(decoded);
  chooseMode();
  recorded = unfiltered = profile;
  ownMeasures = measures;
  ownColourings = colourings;
  allViews = views;
}

function chooseMode() {
  measures = [['ticks', profile.event || (profile.uncounted ? 'Weight' : 'Samples')], ['cpu', 'CPU time']];
  colourings = [['kind', 'Colour: kind'], ['name', 'Colour: function'], ['module', 'Colour: module']];
  if (!profile.frameLine.some((line) => line) && !profile.words.code) views = views.filter(([view]) => view !== 'code');
  if (profile.hasServices) groupings.splice(1, 0, ['service', 'By service']);
  if (profile.waits) {
    addStates(decoded);
    profile = withLeaves(decoded);
    parked = profile.threads.filter((t) => t.parked).length;
    groupings = [...groupings, ['state', 'By state']];
    if (hasLocks(profile)) views = [...views, LOCKS_VIEW];
  }
  if (!profile.words.difference) return;
  profile.difference = new Difference(profile, profile.words.difference);
  measures = COMPARED_MEASURES;
  colourings.unshift(['difference', 'Colour: difference']);
  groupings = [['merged', 'Merged'], ['process', 'By side'], ['thread', 'By file']];
  modes = MODES.filter(([mode]) => mode !== 'wall');
  profile.waits?.parked.fill(0); // the tests are of all waits
  parked = 0;
  views = views.filter(([view]) => view !== 'time' && view !== 'heat' && view !== 'locks');
  Object.assign(DEFAULTS, { measure: 'mean', colours: 'difference' });
  state = fromFragment(location.hash);
}

export function take(news) {
  state = { ...state, ...news };
}

// For later: what can be seen does not depend on it.
export function postponeTime(time) {
  state.time = time;
  stale = true;
}

// Values that the profile does not have become others.
function settleState() {
  if (state.time && (profile.untimed || state.time[0] >= profile.end)) state.time = null;
  if (state.base && (profile.untimed || state.base[0] >= profile.end)) state.base = null;
}

function settleChoices() {
  state.threads = state.threads.filter((n) => n < profile.threads.length);
  if (!measures.some(([m]) => m === state.measure)) state.measure = measures[0][0];
  if (!groupings.some(([g]) => g === state.group)) state.group = DEFAULTS.group;
  if (!colourings.some(([c]) => c === state.colours)) state.colours = DEFAULTS.colours;
  if (!views.some(([v]) => v === state.view)) state.view = DEFAULTS.view;
}

// The rows of the mode, if it or the filter has changed.
export function useRows(before, refiltered) {
  const opening = !sums;
  if (!recorded.waits || !modes.some(([m]) => m === state.mode)) Object.assign(state, { mode: 'cpu', parked: false });
  const changed = refiltered || before.mode !== state.mode || before.parked !== state.parked;
  if (opening || changed) useMode();
  if (!opening && changed) Object.assign(state, { node: ROOT, zoom: null });
  settleState();
  return opening || changed;
}

// The tree and the sums of what is selected. `differs(keys)`: has one of the state changed? `selected`: there are new sums.
export function useSelection(before) {
  const first = !sums, differs = (...keys) => first || keys.some((key) => String(before[key]) !== String(state[key]));
  settleChoices();
  const regrouped = differs('group', 'recursion', 'opened');
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
  if (differs('query', 'regex', 'filter')) matches = compile();
  return { differs, selected };
}
