// SPDX-License-Identifier: BSD-2-Clause
//
// What one has to know before one believes the pictures: what was recorded, what was lost, what was cut, what
// has no name. In short on top of the page, in full in a dialog.

import { FLAG } from './data.js';
import { make, count, plural, share, duration, isTime } from './text.js';

const YEAR_2000 = 946684800e9; // ns since the epoch; engines write other clocks into their files

// Ticks of all samples, of those with at least one frame without a name, and of those whose innermost frame has none.
function unnamed(profile) {
  const { nodeParent, nodeFrame, frameFlags, node, ticks } = profile;
  const bad = new Uint8Array(nodeParent.length); // 1: somewhere, 2: innermost
  for (let i = 1; i < bad.length; i++) {
    const own = frameFlags[nodeFrame[i]] & FLAG.UNNAMED;
    bad[i] = own ? 3 : bad[nodeParent[i]] & 1;
  }
  const found = { all: 0, any: 0, leaf: 0 };
  for (let i = 0; i < node.length; i++) {
    const n = ticks ? ticks[i] : 1;
    found.all += n;
    if (bad[node[i]] & 1) found.any += n;
    if (bad[node[i]] & 2) found.leaf += n;
  }
  return found;
}

const sumOf = (list) => list.reduce((sum, entry) => sum + entry.count, 0);

// What was filtered: a sum of what is kept and what was dropped.
const wholeOf = (filter) => ({ samples: filter.kept.samples + filter.dropped.reduce((sum, row) => sum + row.samples, 0) });

// [{text, why, level: "", "good" or "warn", title}]
function badges(profile) {
  const { summary, words, terms } = profile, list = [];
  const lost = sumOf(words.lost), cut = sumOf(words.cut), nameless = unnamed(profile);
  if (!lost && summary.due !== null) list.push({ text: 'nothing lost', level: 'good', title: 'Every tick that was due is in the profile or accounted for' });
  else if (lost) list.push({ text: `${count(lost)} lost`, why: `: ${words.lost[0].text}`, level: lost > summary.samples / 100 ? 'warn' : '', title: words.lost.map((l) => `${count(l.count)} ${l.text}`).join('\n') });
  if (cut) list.push({ text: `${share(cut, summary.samples)} of stacks cut`, why: `, most: ${words.cut.reduce((a, b) => (b.count > a.count ? b : a)).text}`, level: cut > summary.samples / 20 ? 'warn' : '', title: words.cut.map((l) => `${count(l.count)}: ${l.text}`).join('\n') });
  else if (Object.values(summary.stack_ends).some((n) => n) && !profile.untimed && summary.complete_share !== null) list.push({ text: 'all stacks whole', level: 'good', title: '' });
  if (nameless.leaf) list.push({ text: `${share(nameless.leaf, nameless.all)} of ${terms.what} in code without a name`, level: nameless.leaf > nameless.all / 20 ? 'warn' : '', title: `${share(nameless.any, nameless.all)} with such a frame somewhere in the stack` });
  if (summary.filter) list.push({ text: `a part: ${share(summary.filter.kept.samples, wholeOf(summary.filter).samples)} of ${terms.what}: ${summary.filter.text}`, level: '', title: summary.filter.text });
  const leftOut = [...words.left_out.map((l) => `${count(l.count)} ${l.text}`), ...(summary.outside || []).map((o) => o.text)];
  if (leftOut.length) list.push({ text: 'something was left out', level: '', title: leftOut.join('\n') });
  if (summary.cut_short) list.push({ text: 'cut short: the recording has no end', level: 'warn', title: 'Its writer was killed, or is still writing' });
  if (profile.uncounted) list.push({ text: 'weights, no number of samples: shares without intervals', level: '', title: 'How many samples there were is not in the file, so nothing can be said about chance' });
  if (profile.untimed) list.push({ text: 'read from a format without times: no timeline, no heat map', level: '', title: '' });
  return list;
}

export function fillHeader(profile, title, strip, opened) {
  const { summary } = profile, { meta } = summary;
  const what = (/^-/.test(meta.target || '') ? `record ${meta.target}` : meta.target) || meta.command || 'profile';
  document.title = `${what.slice(0, 60)} – sysprof`;
  title.replaceChildren(make('bdi', { title: what.slice(0, 2000) }, what.slice(0, 300)));
  const where = [meta.hostname, meta.kernel].filter(Boolean).join(', ');
  if (where) title.append(make('small', null, where));
  const facts = [profile.uncounted ? profile.terms.count(summary.samples) : plural(summary.samples, 'sample'), ...(summary.event && !profile.uncounted ? [profile.terms.count(summary.events)] : []), plural(summary.threads, 'thread')];
  if (!profile.untimed) facts.push(`${duration(summary.duration_ns)} recorded`, `${duration(summary.cpu_ns)} of CPU time`);
  if (summary.start_realtime_ns >= YEAR_2000 && !profile.untimed) facts.push(`started ${new Date(summary.start_realtime_ns / 1e6).toLocaleString()}`);
  const line = make('button', { type: 'button', class: 'facts', title: 'All about this recording', onclick: opened }, make('span', null, facts.join(' · ')));
  for (const b of badges(profile)) line.append(make('span', { class: `badge ${b.level}`, title: b.title || null }, b.text, b.why ? make('span', { class: 'why' }, b.why) : null));
  strip.replaceChildren(line);
}

export function section(title, rows) {
  if (!rows.length) return null;
  return make('section', null, make('h3', null, title), make('table', null, make('tbody', null,
    ...rows.map(([name, value]) => make('tr', null, make('th', { scope: 'row' }, make('bdi', null, String(name).slice(0, 2000))), make('td', null, make('bdi', null, String(value).slice(0, 2000))))))));
}

const seconds = (ns) => `${Math.floor(ns / 1e9)}.${String(ns % 1e9).padStart(9, '0')} s`;
const partOf = (part) => `${plural(part.samples, 'sample')}, ${seconds(part.cpu_ns)} of CPU time${part.wall_ns === undefined ? '' : `, ${seconds(part.wall_ns)} of the threads' time`}`;

const spaced = (key) => key.replace(/_/g, ' ');

// What the tab Code has.
function codeFacts(code) {
  if (!code) return [];
  return [
    ['functions with instructions', `${count(code.codes)}, ${plural(code.instructions, 'instruction')}`],
    ['sources', `${count(code.sources)}, ${plural(code.source_bytes, 'byte')}`],
    ...(code.codes_left_out ? [['functions without room for their instructions', `${count(code.codes_left_out)}, ${plural(code.samples_left_out, 'sample')} of their own`]] : []),
    ...(code.sources_left_out ? [['sources without room', count(code.sources_left_out)]] : []),
  ];
}

export function fillDetails(profile, host) {
  const { summary, words, terms } = profile, nameless = unnamed(profile);
  const lost = words.lost.map((l) => [l.text, count(l.count)]);
  if (summary.unexplained) lost.push([`${summary.event ? 'events' : 'ticks'} that are not accounted for`, String(summary.unexplained)]);
  host.replaceChildren(...[
    section('Recording', [
      ['samples', profile.uncounted ? 'number unknown: the file has weights' : count(summary.samples)], ...(summary.event && !isTime(summary.event, summary.event_unit) ? [[summary.event, terms.quantity(summary.events)]] : []), ['threads', count(summary.threads)],
      ...(summary.silent_threads ? [['threads without a sample', `${count(summary.silent_threads)}, ${duration(summary.silent_cpu_ns)} of CPU`]] : []),
      ['CPU time', duration(summary.cpu_ns)],
      ...(profile.behind ? [['of it after the last sample of each thread', `${duration(profile.behind)}, in no box`]] : []),
      ...(profile.untimed ? [] : [['duration', duration(summary.duration_ns)], ...(summary.event || !summary.period_ns ? [] : [['one sample each', `${duration(summary.period_ns)} of a CPU`]]),
        ...(summary.clock === null ? [] : [['clock', `${summary.clock === 'tsc' ? 'TSC' : 'CLOCK_MONOTONIC'}, error below ${count(summary.clock_error_ns)} ns`]]),
        ['start', [summary.start_realtime_ns >= YEAR_2000 && new Date(summary.start_realtime_ns / 1e6).toISOString(), summary.start_monotonic_ns && `monotonic ${(summary.start_monotonic_ns / 1e9).toFixed(6)} s`].filter(Boolean).join(', ') || 'unknown']]),
      ...(summary.cut_short ? [['end', 'missing: the writer was killed or is still writing']] : []),
      ['written by', words.program],
    ]),
    section('Filter', summary.filter ? [
      ['kept', partOf(summary.filter.kept)],
      ...summary.filter.dropped.map((row) => [`dropped by ${row.by}`, partOf(row)]),
    ] : []),
    section('Lost', lost.length ? lost : [[summary.losses_known === false ? 'unknown: not read from files of this format' : 'nothing', '']]),
    section('Left out, by user', (summary.outside || []).map((o) => [o.text, o.waited ? 'late' : 'left'])),
    section('Stacks', [
      ['whole', summary.complete_share === null ? 'unknown how many' : share(summary.complete_share * summary.samples, summary.samples)],
      ...words.cut.map((l) => [`cut: ${l.text}`, `${count(l.count)} (${share(l.count, summary.samples)})`]),
      ...(summary.frames_found.inferred ? [['frames inferred (code without CFI)', count(summary.frames_found.inferred)]] : []),
    ]),
    section('Names', [
      [`${terms.what} whose innermost frame has no name`, `${terms.quantity(nameless.leaf)} (${share(nameless.leaf, nameless.all)})`],
      [`${terms.what} with any frame without a name`, `${terms.quantity(nameless.any)} (${share(nameless.any, nameless.all)})`],
      ...words.left_out.map((l) => [`${l.text} left out`, count(l.count)]),
      ...words.modules.map((m) => [m.path || m.name, m.text]),
    ]),
    section('Machine code and sources', codeFacts(words.code)),
    section('JIT code', words.jit_texts.map((text) => [text, ''])),
    section('Sample accounting', summary.due === null ? [] : [[summary.event ? 'events due' : 'ticks due', count(summary.due)], ...Object.entries(summary.books).filter(([, n]) => n).map(([k, n]) => [k, count(n)]),
      ...(summary.stolen_ticks ? [['not run while the hypervisor had the CPU', count(summary.stolen_ticks)]] : [])]),
    section('CPU times by the kernel', Object.entries(summary.cpu_times_ns ?? {}).filter(([, n]) => n).map(([k, n]) => [k, duration(n)])),
    section('Visits of threads that wait', Object.entries(words.visits ?? {}).filter(([, n]) => n).map(([k, n]) => (k === 'cpu_ns' ? ['CPU time', duration(n)] : [k, count(n)]))),
    section('Machine', Object.entries(summary.meta).map(([k, v]) => [spaced(k), v])),
  ].filter(Boolean));
}
