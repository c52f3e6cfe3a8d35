// SPDX-License-Identifier: BSD-2-Clause
//
// The lines of text around a view: filters, selections and the path above it, what the search has found, the legend below.

import { behindText, figure, figureOf, textOf } from './boxes.js';
import { change, zoomInto } from './change.js';
import { kindName, plainKind, rampColour, stateColour } from './colour.js';
import { FLAG } from './data.js';
import { clauseText, printClauses } from './filter.js';
import { chartThread, clauses, decoded, isBadQuery, isPart, matches, parked, profile, recorded, refusal, state, sums, times, tree, whole } from './shown.js';
import { byId, duration, make, moment, plural, share } from './text.js';
import { ROOT, matchedSums } from './tree.js';
import { heat } from './views.js';

let kinds, inlines, states; // that the profile has

// What was kept, and a chip for each clause.
function filterChips(chip) {
  if (refusal) return [make('span', { class: 'apart', id: 'refusal' }, `no filter: ${refusal}`)];
  if (!clauses.length) return [];
  const { kept, dropped } = recorded.filter, whole = { ...kept };
  for (const line of dropped) for (const key of Object.keys(kept)) whole[key] += line[key];
  const amount = (book) => (state.mode === 'waiting' ? `${duration(book.waits)} of waiting` : decoded.terms.count(book.ticks));
  const part = state.mode === 'waiting' ? duration(kept.waits) : decoded.terms.quantity(kept.ticks);
  const title = dropped.map((line) => `dropped ${amount(line)}, ${duration(line.cpu)} of CPU time: ${line.text}`).join('\n');
  return [...clauses.map((clause) => chip(clauseText(clause), { filter: printClauses(clauses.filter((other) => other !== clause)) })),
    make('span', { id: 'kept', class: 'apart', title }, `kept ${part} of ${amount(whole)}`)];
}

// What is zoomed to, or what the view is of.
function whereParts() {
  if (state.view === 'time') {
    const t = chartThread();
    return t ? [make('span', null, `Thread ${profile.threadName(t).slice(0, 80)} (tid ${t.tid}); click another one in the timeline`)] : [];
  }
  if (state.view !== 'flame') return [make('span', null, `selected: ${figureOf(whole())}${behindText(', and ')}`)];
  const path = [], parts = [make('button', { type: 'button', onclick: () => zoomInto(ROOT) }, `all: ${figureOf(whole())}`)], behind = behindText('and ');
  if (behind) parts.push(make('span', { title: 'CPU time that threads used after their last samples: it is in the sum above and in no box' }, behind));
  for (let at = state.node; at !== ROOT; at = tree.parent[at]) path.push(at);
  if (path.length > 12) path.splice(6, path.length - 12, -1);
  for (const node of path.reverse()) parts.push(make('i', null, '›'), node < 0 ? make('i', null, '…') : make('button', { type: 'button', onclick: () => zoomInto(node) }, textOf(tree.fn[node]).slice(0, 80)));
  return parts;
}

export function showPath() {
  const parts = [];
  const chip = (text, undo) => make('button', { type: 'button', class: 'chip', title: 'Undo this selection', onclick: () => change(undo) }, text);
  const span = ([from, to]) => `${moment(from, (to - from) / 100)} – ${moment(to, (to - from) / 100)}`;
  parts.push(...filterChips(chip));
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
  parts.push(make('span', { class: 'where' }, ...whereParts()));
  byId('path').replaceChildren(...parts);
}

export function showSearch() {
  const field = byId('query');
  if (field.value !== state.query) field.value = state.query;
  field.classList.toggle('bad', isBadQuery);
  byId('regex').setAttribute('aria-pressed', String(state.regex));
  const output = byId('matched');
  if (!matches) {
    output.textContent = isBadQuery ? 'not a pattern' : '';
    return;
  }
  const found = matchedSums(sums, matches);
  output.textContent = `${share(found[state.measure], whole()[state.measure])} matched`;
  output.title = profile.difference ? figureOf(found) : [figure(found.ticks, found.cpu), profile.terms.confidence(found.ticks, whole().ticks)].filter(Boolean).join('; 95 % confidence: ');
}

export function showLegend() {
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
  if (state.view === 'code') {
    const ramp = make('i', { class: 'ramp' });
    ramp.style.background = `linear-gradient(90deg, ${[0, 0.2, 0.4, 0.6, 0.8, 1].map(rampColour).join(', ')})`;
    legend.replaceChildren(make('span', null, 'self', ramp, 'most of a line, an instruction'));
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
