// SPDX-License-Identifier: BSD-2-Clause
//
// CPU use over time, a row for each thread and one for all: exact, since each sample carries the CPU time
// that its thread used since the one before. It lies in the time right before the sample. A drag selects a
// part of the time, a click on a name a thread.

import { Surface, themeColour, dragging } from './canvas.js';
import { plainKind, stateColour } from './colour.js';
import { FLAG, CATEGORIES } from './data.js';
import { drawAxis } from './chart.js';
import { offerMenu } from './menu.js';
import { idOfContainer } from './owners.js';
import { make, count, share, duration } from './text.js';

const LINE = 26, ALL = 63;
const RULER = 20;
const BAR = 3; // px
const TILE = 8; // lines of a picture
const TILES = 16; // that are kept
const FEW_THREADS = 12; // that need no field to find one
const MANY_THREADS = 40; // groups of more are folded at first
const STATES = 16; // at most: those of waits (web/wall.js) are behind the categories
const LEVELS = CATEGORIES.length + STATES;
const PILE = [2, 3, 4, 1, 0, 5, ...Array.from({ length: STATES }, (_, state) => CATEGORIES.length + state)]; // from below: kernel, library, JIT code, program, …

// By node: the category of its frame, or behind these the state that it stands for.
function kindsOf({ nodeFrame, frameFunction, frameFlags, stateOf }) {
  const ofFrames = frameFlags.map((flags, frame) => {
    const state = stateOf?.(frameFunction[frame]);
    return state ? CATEGORIES.length + state : flags & FLAG.CATEGORY;
  });
  const kinds = new Uint8Array(nodeFrame.length);
  for (let i = 1; i < kinds.length; i++) kinds[i] = ofFrames[nodeFrame[i]];
  return kinds;
}

// CPU time of rows [from, to) by bin and category, ns. A thread that used more than a period of CPU time without
// being seen by a tick ran in bursts at unknown times, so it is spread over the time since the sample before.
function binRows(profile, kinds, from, to, bins, end, into) {
  const { time, weight, node, begin } = profile, last = bins - 1, scale = bins / end, most = 1.5 * profile.summary.period_ns;
  const isSpan = !!begin && !profile.difference;
  for (let i = from; i < to; i++) {
    const own = weight[i], stop = time[i], burst = own > most && i > from;
    const start = Math.max(0, begin ? begin[i] : burst ? time[i - 1] : stop - own / 1000);
    const low = Math.min(last, Math.floor(start * scale)), high = Math.min(last, Math.floor(stop * scale));
    const ns = isSpan ? (stop - start) * 1000 : own;
    if (low >= high) into[high * LEVELS + kinds[node[i]]] += ns;
    else spread(start, stop, low, high, ns, end / bins, into, kinds[node[i]]);
  }
}

// Over the bins from `low` to `high`.
function spread(start, stop, low, high, ns, each, into, kind) {
  const dense = ns / (stop - start || 1);
  for (let at = start, bin = low; bin <= high; bin++) {
    const edge = bin === high ? stop : (bin + 1) * each;
    into[bin * LEVELS + kind] += (edge - at) * dense;
    at = edge;
  }
}

// Moves what exceeds `room` ns in a bin to the bin before, since CPU time was used before its sample, and what is left
// at the first bin to later ones. Threads whose first ticks are late have all of their time right before them, and
// together they would use more CPUs than there are.
function fitInto(values, room) {
  const bins = values.length / LEVELS, carried = new Float64Array(LEVELS);
  const fit = (b) => {
    const own = values.subarray(b * LEVELS, (b + 1) * LEVELS);
    let sum = 0;
    for (let k = 0; k < LEVELS; k++) sum += own[k] += carried[k];
    const kept = sum > room ? room / sum : 1;
    for (let k = 0; k < LEVELS; k++) own[k] -= carried[k] = own[k] * (1 - kept);
    return sum > room;
  };
  let left = false;
  for (let b = bins - 1; b >= 0; b--) left = fit(b);
  for (let b = 1; left && b < bins; b++) left = fit(b);
}

// The highest bin.
function mostOf(values) {
  let most = 0;
  for (let at = 0; at < values.length; at += LEVELS) {
    let sum = 0;
    for (let k = 0; k < LEVELS; k++) sum += values[at + k];
    most = Math.max(most, sum);
  }
  return most;
}

// Threads by what their processes belong to, if that differs: services, else containers; groups in the order of their CPU
// time. Without names they are one group, which has no line.
function groupsOfThreads(profile, threads) {
  const nameOf = (t, kind) => {
    const names = profile.processes[t.process]?.names;
    return names ? [names[kind] && profile.strings.shown(names[kind]), kind === 'container' && idOfContainer(profile, names)].filter(Boolean).join(', ') : '';
  };
  const kind = profile.difference ? undefined : ['service', 'container'].find((k) => threads.some((t) => nameOf(t, k) !== nameOf(threads[0], k)));
  if (!kind) return [{ number: 0, name: '', threads, cpu: 0 }];
  const groups = new Map();
  for (const t of threads) {
    const key = nameOf(t, kind);
    if (!groups.has(key)) groups.set(key, { number: groups.size, kind, name: key || `[no ${kind}]`, threads: [], cpu: 0 });
    groups.get(key).threads.push(t);
    groups.get(key).cpu += t.cpu;
  }
  return [...groups.values()].sort((a, b) => b.cpu - a.cpu || a.number - b.number);
}

export class Timeline {
  // `options`: selected(from, to, final), thread(number, event), menu(thread, x, y, group), hover(text, event); before: the
  // timeline of other rows that this one follows
  constructor(host, profile, options) {
    this.profile = profile;
    this.options = options;
    this.end = profile.end || 1;
    this.threads = profile.threads.filter((t) => t.end > t.first || t.cpu > 0);
    this.threads.sort((a, b) => (profile.begin ? !!a.parked - !!b.parked : 0) || b.cpu - a.cpu || a.number - b.number);
    this.groups = groupsOfThreads(profile, this.threads);
    const { before } = options, isLong = this.groups.length > 1 && this.threads.length > MANY_THREADS;
    // names of groups; one of a single thread has the same graph
    this.folded = before?.folded ?? new Set(this.groups.filter(({ name, threads }) => name && (isLong || threads.length === 1)).map(({ name }) => name));
    this.wanted = before?.wanted ?? ''; // in the names of threads that are listed
    this.labels = new Map(); // of threads
    this.cpus = profile.begin || profile.difference ? 0 : Number(profile.summary.meta?.cpus) || this.threads.length; // 0: bins are not bounded
    this.all = options.all ?? profile; // what the graph of all threads shows: parked ones may be left out
    this.kinds = kindsOf(profile);
    this.cache = new Map();
    this.pictures = new Map(); // what does not change while time is selected
    this.time = this.base = null;
    this.picked = new Set();
    this.build(host);
  }

  build(host) {
    const all = make('div', { class: 'time-all' });
    const allGraph = make('div', { class: 'time-graph' });
    this.peak = make('small');
    const total = this.all.threads.reduce((sum, t) => sum + t.cpu, 0);
    const find = make('input', { type: 'search', value: this.wanted, placeholder: 'Find threads', 'aria-label': 'Find threads', spellcheck: 'false', autocomplete: 'off',
      oninput: () => this.find(find.value) });
    const isLong = this.threads.length > FEW_THREADS || this.wanted !== '';
    all.append(make('div', { class: isLong ? 'time-head long' : 'time-head' }, make('button', { class: 'time-label', type: 'button', onclick: (e) => this.options.thread(-1, e), title: 'Show all threads' },
      make('span', null, make('b', null, this.profile.difference ? 'All files' : 'All threads'), this.peak), make('span', { class: 'value' }, duration(total))), isLong ? find : null), allGraph);
    this.whole = total;
    this.rows = make('div', { class: 'time-rows' });
    const labels = (this.labelHost = make('div', { class: 'time-labels', role: 'group', 'aria-label': 'Threads' }));
    const menu = (event) => {
      const button = event.target.closest('.time-label'), at = button?.getBoundingClientRect(), line = this.lines[this.buttons.indexOf(button)];
      if (line) this.options.menu(line.thread ?? line.threads[0], event.clientX || at.left + 20, event.clientY || at.bottom, line.group);
      return !!line;
    };
    offerMenu(labels, menu, menu);
    labels.addEventListener('keydown', (event) => this.labelKey(event));
    labels.addEventListener('focusin', (event) => this.leadTo(event.target));
    this.list();
    const graphs = make('div', { class: 'time-graph' });
    this.rows.append(labels, graphs);
    host.append(all, this.rows);
    this.top = new Surface(allGraph, `${this.profile.terms.use} of all threads over time`, (c, w, h) => this.drawAll(c, w, h));
    this.surface = new Surface(graphs, `${this.profile.terms.use} of each thread over time`, (c, w, h) => this.drawRows(c, w, h, this.rows.scrollTop));
    this.rows.addEventListener('scroll', () => this.surface.ask(), { passive: true });
    this.listen(this.top);
    this.listen(this.surface);
  }

  // What is listed: [{thread}, {group, threads}], with the threads of groups that are not folded, and a button of each.
  list() {
    const wanted = this.wanted.toLowerCase(), { profile } = this;
    const has = (t) => [profile.threadName(t), profile.processName(t.process), String(t.tid)].some((text) => text.toLowerCase().includes(wanted));
    this.lines = [];
    for (const group of this.groups) {
      const threads = wanted && !group.name.toLowerCase().includes(wanted) ? group.threads.filter(has) : group.threads;
      if (group.name && threads.length) this.lines.push({ group, threads });
      if (group.name && !wanted && this.folded.has(group.name)) continue;
      for (const thread of threads) this.lines.push({ thread });
    }
    this.buttons = this.lines.map((line) => (line.group ? this.groupLabel(line) : this.labelOf(line.thread)));
    this.labelHost.replaceChildren(...this.buttons);
    this.leadTo(this.buttons[0]);
    this.markLabels();
  }

  // The one label that Tab comes to.
  leadTo(button) {
    for (const other of this.buttons) other.tabIndex = other === button ? 0 : -1;
  }

  // From label to label; groups are folded and opened.
  labelKey(event) {
    const at = this.buttons.indexOf(event.target.closest('.time-label')), line = this.lines[at];
    if (!line || event.ctrlKey || event.metaKey || event.altKey) return;
    const last = this.buttons.length - 1, to = { ArrowDown: Math.min(at + 1, last), ArrowUp: Math.max(at - 1, 0), Home: 0, End: last }[event.key];
    const isOpen = this.buttons[at].getAttribute('aria-expanded') === 'true';
    if (to !== undefined) this.buttons[to].focus();
    else if (line.group && event.key === (isOpen ? 'ArrowLeft' : 'ArrowRight')) this.fold(line.group);
    else if (event.key === 'ArrowLeft' && line.thread) this.buttons[this.lines.findLastIndex(({ group }, i) => i < at && group)]?.focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  find(text) {
    this.wanted = text.trim();
    this.rows.scrollTop = 0;
    this.list();
    this.redraw(true);
  }

  fold(group) {
    if (!this.folded.delete(group.name)) this.folded.add(group.name);
    this.list();
    this.redraw(true);
    this.buttons[this.lines.findIndex((line) => line.group === group)].focus();
  }

  labelOf(t) {
    if (!this.labels.has(t)) this.labels.set(t, this.label(t, this.whole));
    return this.labels.get(t);
  }

  groupLabel({ group, threads }) {
    const cpu = threads.reduce((sum, t) => sum + t.cpu, 0), isOpen = this.wanted !== '' || !this.folded.has(group.name);
    return make('button', { class: 'time-label group', type: 'button', 'aria-expanded': String(isOpen), title: `${group.name.slice(0, 300)}: ${count(threads.length)} threads`, onclick: () => this.fold(group) },
      make('bdi', null, group.name.slice(0, 200)), make('small', null, count(threads.length)), make('span', { class: 'value' }, duration(cpu)));
  }

  isDim(t) {
    return !!this.profile.begin && t.parked;
  }

  label(t, total) {
    const name = this.profile.threadName(t), process = this.profile.processName(t.process);
    const pid = this.profile.processes[t.process]?.pid ?? 0;
    return make('button', {
      class: ['time-label', this.isDim(t) && 'parked', this.groups[0].name && 'inside'].filter(Boolean).join(' '), type: 'button', 'aria-pressed': 'false', onclick: (e) => this.options.thread(t.number, e),
      title: `${name.slice(0, 300)} (tid ${t.tid}) of ${process.slice(0, 300)} (pid ${pid}): ${duration(t.cpu)} of ${this.profile.terms.time}${this.isDim(t) ? ', parked' : `, ${share(t.cpu, total)}`}`,
    }, make('bdi', null, name.slice(0, 200)), make('small', null, this.profile.difference ? process : !this.groups[0].name && this.profile.hasServices && this.profile.processes.length > 1 ? `${process.slice(0, 80)} ${t.tid}` : String(t.tid)), make('span', { class: 'value' }, duration(t.cpu)));
  }

  // Room for some threads, for all if they are few.
  height(window) {
    const most = Math.max(4, Math.floor((window * 0.26 - ALL) / LINE));
    return ALL + Math.min(this.lines.length, most) * LINE + (this.lines.length > most ? LINE / 2 : 0);
  }

  // A row that is to be seen.
  reveal(number) {
    const group = this.groups.find(({ threads }) => threads.some((t) => t.number === number));
    if (!this.wanted && group && this.folded.delete(group.name)) {
      this.list();
      this.redraw(true);
    }
    const i = this.lines.findIndex(({ thread }) => thread?.number === number), top = i * LINE;
    const seen = top >= this.rows.scrollTop && top + LINE <= this.rows.scrollTop + this.rows.clientHeight;
    if (i >= 0 && !seen) this.rows.scrollTop = top - LINE;
  }

  // What is chosen: threads, a part of the time or null, and the part that it is compared with.
  mark(time, picked, base) {
    this.time = time;
    this.base = base;
    this.picked = picked;
    this.markLabels();
    this.redraw();
  }

  isPicked({ thread, threads }) {
    return thread ? this.picked.has(thread.number) : threads.some((t) => this.picked.has(t.number));
  }

  markLabels() {
    this.lines.forEach((line, i) => {
      if (line.thread) this.buttons[i].setAttribute('aria-pressed', String(this.isPicked(line)));
      this.buttons[i].classList.toggle('off', this.picked.size > 0 && !this.isPicked(line));
    });
  }

  redraw(anew) {
    if (anew) this.pictures.clear();
    this.top.ask();
    this.surface.ask();
  }

  bins(key, width, rows, profile = this.profile) {
    const bins = Math.max(1, Math.floor(width / BAR));
    const kept = this.cache.get(key);
    if (kept?.length === bins * LEVELS) return kept;
    const values = new Float64Array(bins * LEVELS);
    for (const t of rows) binRows(profile, this.kinds, t.first, t.end, bins, this.end, values);
    if (this.cpus) fitInto(values, ((typeof key === 'number' ? 1 : this.cpus) * this.end * 1000) / bins);
    this.cache.set(key, values);
    return values;
  }

  // A picture of this height at `y`: drawn by `draw`, or that of the last call with the same key.
  once(c, name, key, { width, ratio }, y, height, draw) {
    let kept = this.pictures.get(name);
    if (kept?.key !== key) {
      const canvas = new OffscreenCanvas(Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio)));
      const own = canvas.getContext('2d', { alpha: false });
      own.setTransform(ratio, 0, 0, ratio, 0, 0);
      own.fillStyle = themeColour('ground');
      own.fillRect(0, 0, width, height);
      draw(own);
      kept = { key, image: canvas.transferToImageBitmap() };
      this.pictures.get(name)?.image.close();
      this.pictures.set(name, kept);
    }
    c.drawImage(kept.image, 0, Math.round(y * ratio) / ratio, kept.image.width / ratio, kept.image.height / ratio);
  }

  drawAll(c, width, height) {
    this.once(c, 'all', `${this.top.ratio} ${width} ${height}`, this.top, 0, height, (own) => this.graphAll(own, width, height));
    this.shade(c, width, height);
  }

  graphAll(c, width, height) {
    drawAxis(c, 0, this.end, 0, width, 0, RULER, height);
    const values = this.bins('all', width, this.all.threads, this.all), bins = values.length / LEVELS, most = mostOf(values);
    const cpus = most / ((this.end / bins) * 1000);
    this.graph(c, values, RULER, height - RULER - 1, width, most);
    this.peak.textContent = `peak: ${cpus.toFixed(cpus < 10 ? 1 : 0)} ${this.profile.terms.unit}${cpus.toFixed(1) === '1.0' ? '' : 's'}`;
  }

  // By tiles: what is scrolled to is mostly there already.
  drawRows(c, width, height, top) {
    const tall = TILE * LINE, key = `${this.surface.ratio} ${width} ${[...this.picked].join(' ')}`;
    for (let tile = Math.floor(top / tall); tile * tall < top + height && tile * TILE < this.lines.length; tile++) {
      this.once(c, `rows ${tile % TILES}`, `${tile} ${key}`, this.surface, tile * tall - top, tall, (own) => this.graphRows(own, width, tile * TILE));
    }
    this.shade(c, width, height);
  }

  graphRows(c, width, first) {
    this.lines.slice(first, first + TILE).forEach((line, i) => {
      const t = line.thread, y = i * LINE;
      c.fillStyle = themeColour('grid');
      c.fillRect(0, y + LINE - 1, width, 1);
      const values = t ? this.bins(t.number, width, [t]) : this.bins(`group ${line.group.number} ${this.wanted}`, width, line.threads);
      c.globalAlpha = this.picked.size && !this.isPicked(line) ? 0.35 : t && this.isDim(t) ? 0.4 : 1;
      const one = (this.end / (values.length / LEVELS)) * 1000; // CPU
      this.graph(c, values, y + 2, LINE - 4, width, t ? one : Math.max(one, mostOf(values)));
      c.globalAlpha = 1;
    });
  }

  // Piled bars, by category of the innermost frame; `full` is the highest.
  graph(c, values, y, height, width, full) {
    const bins = values.length / LEVELS, each = width / bins;
    if (!full) return;
    const base = new Float32Array(bins);
    for (const kind of PILE) {
      c.fillStyle = kind < CATEGORIES.length ? plainKind(kind) : stateColour(kind - CATEGORIES.length);
      for (let b = 0; b < bins; b++) {
        const v = values[b * LEVELS + kind];
        if (!v) continue;
        const h = Math.min(height - base[b], (v / full) * height);
        const x = Math.round(b * each);
        c.fillRect(x, y + height - base[b] - h, Math.round((b + 1) * each) - x, h);
        base[b] += h;
      }
    }
  }

  shade(c, width, height) {
    for (const [from, to] of this.profile.words.lost_ranges) {
      c.fillStyle = themeColour('lost');
      c.fillRect((from / this.end) * width, 0, Math.max(2, ((to - from) / this.end) * width), height);
    }
    const parts = [this.base && ['OLD', ...this.base], this.time && [this.base ? 'NEW' : '', ...this.time]].filter(Boolean);
    parts.sort((a, b) => a[1] - b[1]);
    let shaded = 0;
    for (const [name, start, end] of parts) {
      const from = (start / this.end) * width, to = (end / this.end) * width;
      c.fillStyle = themeColour('shade');
      c.fillRect(shaded, 0, Math.max(0, from - shaded), height);
      shaded = Math.max(shaded, to);
      c.fillStyle = themeColour('accent');
      c.fillRect(Math.round(from) - 1, 0, 2, height);
      c.fillRect(Math.round(to) - 1, 0, 2, height);
      if (name && height === this.top.height) c.fillText(name, from + 4, RULER + 10);
    }
    if (!parts.length) return;
    c.fillStyle = themeColour('shade');
    c.fillRect(shaded, 0, width - shaded, height);
  }

  listen(surface) {
    const at = (event) => Math.min(this.end, Math.max(0, (surface.where(event)[0] / surface.width) * this.end));
    dragging(surface.canvas, {
      started: (event) => at(event),
      moved: (event, from) => this.options.selected(Math.min(from, at(event)), Math.max(from, at(event)), false, event.ctrlKey || event.metaKey),
      ended: (event, from) => this.options.selected(Math.min(from, at(event)), Math.max(from, at(event)), true, event.ctrlKey || event.metaKey),
      clicked: () => this.options.selected(0, 0, true),
    });
    surface.canvas.addEventListener('pointermove', (event) => {
      const line = surface === this.top ? null : this.lines[Math.floor((surface.where(event)[1] + this.rows.scrollTop) / LINE)];
      this.options.hover(line?.group ? -1 : at(event), line?.thread ?? null, surface.width, event);
    });
    surface.canvas.addEventListener('pointerleave', (event) => this.options.hover(-1, null, 1, event));
    surface.canvas.addEventListener('keydown', (event) => {
      const step = this.end / 50 * (event.key === 'ArrowLeft' ? -1 : 1);
      if ((event.key !== 'ArrowLeft' && event.key !== 'ArrowRight') || event.altKey || event.ctrlKey) return;
      const [from, to] = this.time ?? [0, this.end / 10];
      if (event.shiftKey) this.options.selected(from, Math.min(this.end, Math.max(from, to + step)), true);
      else this.options.selected(Math.max(0, from + step), Math.min(this.end, Math.max(to - from, to + step)), true);
      event.preventDefault();
      event.stopPropagation();
    });
  }

  // [state, part of the time] of a thread in the pixel at `t`, the longest first.
  statesAt(t, thread, width) {
    const values = this.bins(thread.number, width, [thread]), bins = values.length / LEVELS;
    const b = Math.min(bins - 1, Math.floor((t / this.end) * bins)), list = [];
    for (let state = 1; state < STATES; state++) list.push([state, values[b * LEVELS + CATEGORIES.length + state] / ((this.end / bins) * 1000)]);
    return list.filter(([, part]) => part > 0.005).sort(([, x], [, y]) => y - x);
  }

  // CPU use in the pixel at `t`: of a thread, or of all; in CPUs.
  useAt(t, thread, width) {
    const values = thread ? this.bins(thread.number, width, [thread]) : this.bins('all', width, this.all.threads, this.all);
    const bins = values.length / LEVELS, b = Math.min(bins - 1, Math.floor((t / this.end) * bins));
    let sum = 0;
    for (let k = 0; k < LEVELS; k++) sum += values[b * LEVELS + k];
    return sum / ((this.end / bins) * 1000);
  }
}
