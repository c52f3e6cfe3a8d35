// SPDX-License-Identifier: BSD-2-Clause
//
// The views and the timeline: they are made here, and show what is selected.

import { identity, styleOf, textOf } from './boxes.js';
import { pickThread, rangeChart, sandwichOf, selectTime, zoomInto } from './change.js';
import { Chart } from './chart.js';
import { CodeView } from './codeview.js';
import { DifferenceTable } from './difference.js';
import { Flame } from './flame.js';
import { HeatMap } from './heatmap.js';
import { USES } from './help.js';
import { hint, hoverBox, showFacts, tip } from './hover.js';
import { boxMenu, functionMenu, threadMenu } from './items.js';
import { showPath } from './lines.js';
import { allViews, chartThread, clauses, decoded, functionRows, hasTimes, isPart, isWanted, matches, parked, profile, profileOf, rangeOf, recorded, rows, state, sums, tallyOfAll, times, tree, treeOf, views, whole } from './shown.js';
import { remember } from './state.js';
import { FunctionTable } from './table.js';
import { byId, duration, make, moment, share } from './text.js';
import { Timeline } from './timeline.js';
import { ROOT, callees, callers } from './tree.js';
import { LockTable, waitAt, waitFacts } from './wall.js';

export let flame, chart, upper, lower, table, timeline, heat, codeView;
let locks;
let isResized = false; // the timeline, by hand

function makeFlame(host, label, extra) {
  const picture = new Flame(host, {
    label, textOf, byName: () => state.sort === 'name', hover: (node, event) => hoverBox(picture)(node, event), styleOf,
    open: (node) => zoomInto(node), menu: (node, x, y) => boxMenu(picture, node, x, y), moved: () => {}, ...extra,
  });
  return picture;
}

function pane(host, style) {
  const element = make('div', { class: `pane ${style ?? ''}` });
  host.append(element);
  return element;
}

export function makeViews() {
  flame = makeFlame(pane(byId('view-flame')), 'Flame graph; the table of functions has the figures as text', {
    moved: (p) => {
      const left = state.node;
      Object.assign(state, { zoom: p.to - p.from < 0.999999 ? p.target : null, node: ROOT });
      if (left) showPath();
      remember(state);
    },
  });
  chart = new Chart(pane(byId('view-time')), {
    label: 'Stacks of a thread in the order of time', styleOf,
    hover: (node, event, span) => {
      if (node < 0) {
        byId('status').textContent = hint();
        return tip(null);
      }
      const f = chart.tree.fn[node], list = [['from', moment(span.start, 1)], ['lasts', duration((span.end - span.start) * 1000)], ...identity(f, chart.tree.flags[node])];
      return showFacts(event, textOf(f), list);
    },
    menu: (node, x, y) => boxMenu(chart, node, x, y), ranged: rangeChart,
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
  codeView = new CodeView(byId('view-code'));
  if (recorded.waits) locks = new LockTable(byId('view-locks'), recorded, functionMenu);
}

// That of other rows.
export function makeLocks() {
  if (!locks) return;
  byId('view-locks').replaceChildren();
  locks = new LockTable(byId('view-locks'), recorded, functionMenu);
}

// What has rows of its own, in the mode that is chosen.
export function makeTable() {
  table = new (profile.difference ? DifferenceTable : FunctionTable)(profile, { chosen: (f) => sandwichOf(f), menu: functionMenu, isPart });
  for (const host of [byId('view-table'), byId('view-sandwich').firstChild]) host.replaceChildren();
}

export function makeRowViews() {
  makeTable();
  for (const host of [byId('timeline'), byId('view-heat')]) host.replaceChildren();
  const before = timeline;
  timeline = heat = null;
  if (!hasTimes()) return;
  timeline = new Timeline(byId('timeline'), profileOf(true), {
    all: profile, before, selected: selectTime, thread: pickThread, menu: threadMenu,
    hover: (at, t, width, event) => {
      if (at < 0) {
        byId('status').textContent = hint();
        return tip(null);
      }
      byId('status').textContent = 'Drag to select a part of the time, click for all of it; click a name for one thread, with Ctrl for several';
      return tip(event, moment(at, profile.end / 1000), timelineFacts(at, t, width));
    },
  });
  if (!isResized) byId('timeline').style.height = `${timeline.height(innerHeight)}px`;
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

export function resizeTimeline(height) {
  isResized = true;
  byId('timeline').style.height = `${Math.max(0, Math.min(innerHeight - 260, height))}px`;
}

function showSandwich() {
  let { fn } = state;
  if (fn < 0 || fn >= profile.functionName.length) fn = table.list[0] ?? -1;
  table.choose(fn);
  if (fn < 0) return;
  const all = whole()[state.measure];
  const from = decoded.gatheredIn?.[fn] ? tallyOfAll(state.group) : sums;
  upper.show(callers(from, fn), state.measure);
  lower.show(callees(from, fn), state.measure);
  const part = lower.sums[state.measure].total[ROOT];
  upper.title.textContent = `Callers of ${profile.nameOf(fn).slice(0, 200)} – ${share(part, all)} of what is selected`;
  lower.title.textContent = `What ${profile.nameOf(fn).slice(0, 200)} calls`;
  for (const picture of [upper, lower]) picture.zoomTo(0, 1, 'now');
}

function messageFor() {
  if (times?.reason) return times.reason;
  if (state.view === 'locks') return '';
  if (!profile.threads.some((t) => rangeOf(t)[1] > rangeOf(t)[0])) {
    return profile.node.length || clauses.length ? 'There is no sample in what is selected.' : `This profile has no samples: nothing that was recorded used the CPU when a tick came.${recorded.waits ? ' It has waits.' : ''}`;
  }
  if (profile.untimed && (state.view === 'time' || state.view === 'heat')) return 'This profile was read from a format that has no times: there is no order of samples to show.';
  return '';
}

export function showView(differs, selected) {
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
    if (!rows || entered || differs('measure', 'query', 'regex')) table.show(functionRows(), state.measure, whole(), matches, state.fn);
  }
  if (state.view === 'sandwich' && !message) showSandwich();
  if (selected) codeView.forget();
  if (state.view === 'code' && !message) codeView.show();
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
