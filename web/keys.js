// SPDX-License-Identifier: BSD-2-Clause
//
// What keys do, everywhere in the page; arrows in a picture are its own (flame.js, chart.js, heatmap.js, timeline.js).

import { change, codeOf, pinTime, sandwichOf, showMode, stepBack, zoomInto } from './change.js';
import { open } from './frame.js';
import { hoverBox } from './hover.js';
import { saveFolded } from './share.js';
import { colourings, functionRows, groupings, matches, measures, modes, parked, profile, recorded, state, sums, tree, views } from './shown.js';
import { byId } from './text.js';
import { switchTheme } from './theme.js';
import { ROOT } from './tree.js';
import { chart, codeView, flame } from './views.js';

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

// The one that the pointer or the keyboard is at, or that is zoomed to.
function chosenFunction() {
  const node = state.view === 'time' ? chart.chosenNode : flame.chosen || flame.hovered || state.node;
  return (state.view === 'time' ? chart.tree?.fn[node] : tree.fn[node]) ?? -1;
}

// That of a row which has the focus or is pointed at, of a box, or the search's hottest match.
function functionForCode() {
  const row = document.activeElement?.closest('tr[data-function]') ?? document.querySelector('table.functions tr[data-function]:hover');
  if (row) return Number(row.dataset.function);
  if (state.view === 'sandwich' || state.view === 'code') return state.fn;
  const fn = chosenFunction();
  if (fn >= 0 || !matches) return fn >= 0 ? fn : state.fn;
  const { self, total } = functionRows()[state.measure];
  let best = -1;
  for (let f = 0; f < self.length; f++) if (matches[f] && (best < 0 || self[f] > self[best] || (self[f] === self[best] && total[f] > total[best]))) best = f;
  return best;
}

function showCode() {
  const fn = functionForCode();
  if (!views.some(([view]) => view === 'code')) return;
  if (fn >= 0 && !profile.stateOf?.(fn)) codeOf(fn);
  else change({ view: 'code' });
}

const ACTIONS = {
  '/': () => byId('query').focus(), e: () => byId('clause')?.focus(), '?': () => open(byId('keys')), Escape: stepBack, n: nextMatch,
  '+': () => picture().scaleBy(0.7, 0.5), '=': () => picture().scaleBy(0.7, 0.5), '-': () => picture().scaleBy(1 / 0.7, 0.5),
  a: () => picture().pan(-0.2), d: () => picture().pan(0.2), w: () => picture().surface.host.scrollBy(0, -90), s: () => picture().surface.host.scrollBy(0, 90),
  0: () => (state.view === 'time' ? change({ time: null }) : change({ node: ROOT, zoom: null })), Backspace: () => zoomInto(tree.parent[state.node]),
  g: () => nextIn('group', groupings.map(([g]) => g)), p: () => parked && change({ parked: !state.parked }), v: () => recorded.waits && showMode(modes[(modes.findIndex(([m]) => m === state.mode) + 1) % modes.length][0]), i: () => change({ down: !state.down }), m: () => nextIn('measure', measures.map(([m]) => m)),
  c: showCode, ',': () => state.view === 'code' && codeView.step(-1), '.': () => state.view === 'code' && codeView.step(1),
  k: () => nextIn('colours', colourings.map(([c]) => c)), o: () => nextIn('sort', ['weight', 'name']), r: () => change({ recursion: !state.recursion }),
  x: () => sandwichOf(chosenFunction()), '[': () => moveTime(-0.5), ']': () => moveTime(0.5), f: saveFolded,
  t: switchTheme, b: pinTime, h: () => (byId('timeline').hidden = byId('splitter').hidden = !byId('timeline').hidden),
};

export function onKey(event) {
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
