// SPDX-License-Identifier: BSD-2-Clause
//
// CPU use over time, a row for each thread and one for all: exact, since each sample carries the CPU time
// that its thread used since the one before. It lies in the time right before the sample. A drag selects a
// part of the time, a click on a name a thread.

import { Surface, themeColour, dragging } from './canvas.js';
import { plainKind, stateColour } from './colour.js';
import { FLAG, CATEGORIES } from './data.js';
import { drawAxis } from './chart.js';
import { make, share, duration } from './text.js';

const LINE = 26, ALL = 63;
const RULER = 20;
const BAR = 3; // px
const STATES = 16; // at most: those of waits (web/wall.js) are behind the categories
const LEVELS = CATEGORIES.length + STATES;
const PILE = [2, 3, 4, 1, 0, 5, ...Array.from({ length: STATES }, (_, state) => CATEGORIES.length + state)]; // from below: kernel, library, JIT code, program, …

// CPU time of rows [from, to) by bin and category, ns. A thread that used more than a period of CPU time without
// being seen by a tick ran in bursts at unknown times, so it is spread over the time since the sample before.
function binRows(profile, kinds, from, to, bins, end, into) {
  const { time, weight, node, begin } = profile, each = end / bins, period = profile.summary.period_ns;
  for (let i = from; i < to; i++) {
    const kind = kinds[node[i]];
    const stop = time[i], burst = weight[i] > 1.5 * period && i > from;
    const start = Math.max(0, begin ? begin[i] : burst ? time[i - 1] : stop - weight[i] / 1000);
    let bin = Math.min(bins - 1, Math.floor(start / each));
    const last = Math.min(bins - 1, Math.floor(stop / each));
    const ns = begin && !profile.difference ? (stop - start) * 1000 : weight[i];
    if (bin >= last) {
      into[Math.max(0, last) * LEVELS + kind] += ns;
      continue;
    }
    const dense = ns / (stop - start || 1);
    for (let at = start; bin <= last; bin++) {
      const edge = bin === last ? stop : (bin + 1) * each;
      into[bin * LEVELS + kind] += (edge - at) * dense;
      at = edge;
    }
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

export class Timeline {
  // `options`: selected(from, to, final), thread(number, event), hover(text, event)
  constructor(host, profile, options) {
    this.profile = profile;
    this.options = options;
    this.end = profile.end || 1;
    this.threads = profile.threads.filter((t) => t.end > t.first || t.cpu > 0);
    this.threads.sort((a, b) => (profile.begin ? !!a.parked - !!b.parked : 0) || b.cpu - a.cpu || a.number - b.number);
    this.cpus = profile.begin || profile.difference ? 0 : Number(profile.summary.meta?.cpus) || 0; // 0: bins are not bounded
    this.all = options.all ?? profile; // what the graph of all threads shows: parked ones may be left out
    this.kinds = new Uint8Array(profile.nodeFrame.length);
    for (let i = 1; i < this.kinds.length; i++) {
      const state = profile.stateOf?.(profile.frameFunction[profile.nodeFrame[i]]);
      this.kinds[i] = state ? CATEGORIES.length + state : profile.frameFlags[profile.nodeFrame[i]] & FLAG.CATEGORY;
    }
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
    all.append(make('button', { class: 'time-label', type: 'button', onclick: (e) => this.options.thread(-1, e), title: 'Show all threads' },
      make('span', null, make('b', null, this.profile.difference ? 'All files' : 'All threads'), this.peak), make('span', { class: 'value' }, duration(total))), allGraph);
    this.rows = make('div', { class: 'time-rows' });
    const labels = make('div', { class: 'time-labels', role: 'group', 'aria-label': 'Threads' });
    this.buttons = this.threads.map((t) => this.label(t, total));
    labels.append(...this.buttons);
    const graphs = make('div', { class: 'time-graph' });
    this.rows.append(labels, graphs);
    host.append(all, this.rows);
    this.top = new Surface(allGraph, `${this.profile.terms.use} of all threads over time`, (c, w, h) => this.drawAll(c, w, h));
    this.surface = new Surface(graphs, `${this.profile.terms.use} of each thread over time`, (c, w, h) => this.drawRows(c, w, h, this.rows.scrollTop));
    this.rows.addEventListener('scroll', () => this.surface.ask(), { passive: true });
    this.listen(this.top);
    this.listen(this.surface);
  }

  isDim(t) {
    return !!this.profile.begin && t.parked;
  }

  label(t, total) {
    const name = this.profile.threadName(t), process = this.profile.processName(t.process);
    const pid = this.profile.processes[t.process]?.pid ?? 0;
    return make('button', {
      class: this.isDim(t) ? 'time-label parked' : 'time-label', type: 'button', 'aria-pressed': 'false', onclick: (e) => this.options.thread(t.number, e),
      title: `${name.slice(0, 300)} (tid ${t.tid}) of ${process.slice(0, 300)} (pid ${pid}): ${duration(t.cpu)} of ${this.profile.terms.time}${this.isDim(t) ? ', parked' : `, ${share(t.cpu, total)}`}`,
    }, make('bdi', null, name.slice(0, 200)), make('small', null, this.profile.difference ? process : String(t.tid)), make('span', { class: 'value' }, duration(t.cpu)));
  }

  // Room for some threads, for all if they are few.
  height(window) {
    const most = Math.max(4, Math.floor((window * 0.26 - ALL) / LINE));
    return ALL + Math.min(this.threads.length, most) * LINE + (this.threads.length > most ? LINE / 2 : 0);
  }

  // A row that is to be seen.
  reveal(number) {
    const i = this.threads.findIndex((t) => t.number === number), top = i * LINE;
    const seen = top >= this.rows.scrollTop && top + LINE <= this.rows.scrollTop + this.rows.clientHeight;
    if (i >= 0 && !seen) this.rows.scrollTop = top - LINE;
  }

  // What is chosen: threads, a part of the time or null, and the part that it is compared with.
  mark(time, picked, base) {
    this.time = time;
    this.base = base;
    this.picked = picked;
    this.threads.forEach((t, i) => {
      this.buttons[i].setAttribute('aria-pressed', String(picked.has(t.number)));
      this.buttons[i].classList.toggle('off', picked.size > 0 && !picked.has(t.number));
    });
    this.redraw();
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
    if (this.cpus) fitInto(values, ((key === 'all' ? this.cpus : 1) * this.end * 1000) / bins);
    this.cache.set(key, values);
    return values;
  }

  // Draws by `draw`, or copies the picture of the last call with the same key.
  once(c, name, key, surface, draw) {
    let kept = this.pictures.get(name);
    if (kept?.key !== key) {
      const { width, height } = surface.canvas, canvas = new OffscreenCanvas(width, height);
      const own = canvas.getContext('2d', { alpha: false });
      own.setTransform(surface.ratio, 0, 0, surface.ratio, 0, 0);
      own.fillStyle = themeColour('ground');
      own.fillRect(0, 0, surface.width, surface.height);
      draw(own);
      kept = { key, canvas };
      this.pictures.set(name, kept);
    }
    c.drawImage(kept.canvas, 0, 0, surface.width, surface.height);
  }

  drawAll(c, width, height) {
    this.once(c, 'all', `${this.top.ratio} ${width} ${height}`, this.top, (own) => this.graphAll(own, width, height));
    this.shade(c, width, height);
  }

  graphAll(c, width, height) {
    drawAxis(c, 0, this.end, 0, width, 0, RULER, height);
    const values = this.bins('all', width, this.all.threads, this.all), bins = values.length / LEVELS;
    let most = 0;
    for (let b = 0; b < bins; b++) {
      let sum = 0;
      for (let k = 0; k < LEVELS; k++) sum += values[b * LEVELS + k];
      most = Math.max(most, sum);
    }
    const cpus = most / ((this.end / bins) * 1000);
    this.graph(c, values, RULER, height - RULER - 1, width, most);
    this.peak.textContent = `peak: ${cpus.toFixed(cpus < 10 ? 1 : 0)} ${this.profile.terms.unit}${cpus.toFixed(1) === '1.0' ? '' : 's'}`;
  }

  drawRows(c, width, height, top) {
    const key = `${this.surface.ratio} ${width} ${height} ${top} ${[...this.picked].join(' ')}`;
    this.once(c, 'rows', key, this.surface, (own) => this.graphRows(own, width, height, top));
    this.shade(c, width, height);
  }

  graphRows(c, width, height, top) {
    const first = Math.floor(top / LINE), last = Math.min(this.threads.length, Math.ceil((top + height) / LINE));
    for (let i = first; i < last; i++) {
      const t = this.threads[i], y = i * LINE - top;
      c.fillStyle = themeColour('grid');
      c.fillRect(0, y + LINE - 1, width, 1);
      const values = this.bins(t.number, width, [t]);
      c.globalAlpha = this.picked.size && !this.picked.has(t.number) ? 0.35 : this.isDim(t) ? 0.4 : 1;
      this.graph(c, values, y + 2, LINE - 4, width, (this.end / (values.length / LEVELS)) * 1000);
      c.globalAlpha = 1;
    }
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
      const i = surface === this.top ? -1 : Math.floor((surface.where(event)[1] + this.rows.scrollTop) / LINE);
      this.options.hover(at(event), this.threads[i] ?? null, surface.width, event);
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
