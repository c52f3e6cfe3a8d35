// SPDX-License-Identifier: BSD-2-Clause
//
// The stacks of one thread in the order of time. A sample stands for the CPU time that was used since the one
// before, and is drawn over that time: what is left blank, the thread did not run.

import { Surface, SMALL_FONT, characterWidth, themeColour, dragging } from './canvas.js';
import { drawBox, ROW } from './flame.js';
import { moment } from './text.js';
import { ROOT } from './tree.js';

const AXIS = 18;
const BURST = 2; // periods: a thread that used more since its last sample ran in bursts
const JOIN = 0.25; // of a sample's time: less than that between two of them is no gap

// Nice steps of an axis: at most `most` of them.
export function axisStep(span, most) {
  const raw = span / Math.max(1, most), power = 10 ** Math.floor(Math.log10(raw));
  return power * (raw / power <= 1 ? 1 : raw / power <= 2 ? 2 : raw / power <= 5 ? 5 : 10);
}

export function drawAxis(c, from, to, x, width, y, height, lines) {
  const step = axisStep(to - from, width / 90);
  c.font = SMALL_FONT;
  c.textBaseline = 'middle';
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
    const at = x + ((t - from) / (to - from)) * width;
    c.fillStyle = themeColour('grid');
    c.fillRect(Math.round(at), y, 1, lines ?? height);
    c.fillStyle = themeColour('faint');
    c.fillText(moment(t, step), at + 4, y + height / 2 + 1);
  }
}

// By depth: when each box begins and ends, and its node.
export function spansOf(profile, tree, thread) {
  const levels = [], open = []; // node and start by depth
  const { leaf } = tree.fine, { time, weight, begin } = profile;
  const longest = (BURST * profile.summary.period_ns) / 1000 || Infinity;
  let last = -Infinity;
  const close = (from) => {
    while (open.length > from) {
      const { node, start } = open.pop();
      const level = (levels[open.length] ??= { start: [], end: [], node: [] });
      level.start.push(start);
      level.end.push(last);
      level.node.push(node);
    }
  };
  const path = [];
  for (let i = thread.first; i < thread.end; i++) {
    const took = begin ? time[i] - begin[i] : Math.min(weight[i] / 1000, longest, i > thread.first ? time[i] - time[i - 1] : Infinity);
    let start = time[i] - took;
    if (begin ? start > last : start - last > took * JOIN) close(0);
    else start = last;
    path.length = 0;
    for (let at = tree.map[leaf[i]]; at !== ROOT; at = tree.parent[at]) path.push(at);
    path.reverse();
    let same = 0;
    while (same < path.length && same < open.length && open[same].node === path[same]) same++;
    if (open.length) last = start;
    close(same);
    for (let d = same; d < path.length; d++) open.push({ node: path[d], start });
    last = time[i];
  }
  close(0);
  return levels;
}

// The first box of a level that ends after `t`.
function firstAfter(ends, t) {
  let low = 0, high = ends.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ends[middle] > t) high = middle;
    else low = middle + 1;
  }
  return low;
}

export class Chart {
  // `options`: styleOf(node, chart), hover(node, event, span), ranged(from, to)
  constructor(host, options) {
    this.options = options;
    this.levels = [];
    this.surface = new Surface(host, options.label, (c, w, h, left, top) => this.draw(c, w, h, top));
    this.surface.onresize = () => this.layout();
    this.listen();
  }

  show(profile, tree, thread, from, to) {
    if (this.thread !== thread || this.tree !== tree) this.levels = spansOf(profile, tree, thread);
    this.thread = thread;
    this.tree = tree;
    this.end = profile.end;
    this.from = from;
    this.to = to;
    this.layout();
    this.surface.ask();
  }

  layout() {
    this.surface.extent(0, this.levels.length * ROW + AXIS + 4);
  }

  draw(c, width, height, top) {
    if (!this.tree) return;
    const scale = width / (this.to - this.from), each = characterWidth(c);
    c.textBaseline = 'middle';
    this.levels.forEach((level, depth) => {
      const y = AXIS + depth * ROW - top;
      if (y > -ROW && y < height) this.level(c, level, y, width, scale, each);
    });
    c.fillStyle = themeColour('ground');
    c.fillRect(0, 0, width, AXIS);
    drawAxis(c, this.from, this.to, 0, width, 0, AXIS);
  }

  level(c, level, y, width, scale, each) {
    for (let i = firstAfter(level.end, this.from); i < level.start.length && level.start[i] < this.to;) {
      const x = (level.start[i] - this.from) * scale, w = (level.end[i] - level.start[i]) * scale;
      const from = Math.max(0, x), to = Math.min(width, x + w), node = level.node[i];
      const style = this.options.styleOf(node, this);
      drawBox(c, from, y, to - from, style.text, style, each);
      // of those within one pixel the first stands for all
      const next = firstAfter(level.end, this.from + (Math.max(to, from + 0.5)) / scale);
      i = w < 1 ? Math.max(i + 1, next) : i + 1;
    }
  }

  // The box under the pointer: {node, start, end}, or null.
  at(event) {
    const [x, y] = this.surface.where(event), row = y + this.surface.host.scrollTop - AXIS;
    const level = y < AXIS ? null : this.levels[Math.floor(row / ROW)];
    if (!level) return null;
    const each = (this.to - this.from) / this.surface.width, i = firstAfter(level.end, this.from + x * each);
    if (i >= level.start.length || level.start[i] > this.from + (x + 1) * each) return null;
    return { node: level.node[i], start: level.start[i], end: level.end[i] };
  }

  range(from, to) {
    const size = Math.min(this.end, Math.max(1, to - from));
    from = Math.min(Math.max(0, from), this.end - size);
    this.from = from;
    this.to = from + size;
    this.surface.paint();
    this.options.ranged(this.from, this.to);
  }

  scaleBy(factor, centre) {
    const middle = this.from + (this.to - this.from) * centre, size = (this.to - this.from) * factor;
    this.range(middle - size * centre, middle + size * (1 - centre));
  }

  pan(by) {
    const size = this.to - this.from;
    this.range(this.from + by * size, this.to + by * size);
  }

  listen() {
    const { canvas, host } = this.surface;
    canvas.addEventListener('pointermove', (event) => {
      const box = event.buttons ? null : this.at(event);
      this.options.hover(box ? box.node : -1, event, box);
    });
    canvas.addEventListener('pointerleave', (event) => this.options.hover(-1, event));
    canvas.addEventListener('wheel', (event) => {
      const [x] = this.surface.where(event);
      if (event.ctrlKey || event.metaKey || event.altKey) this.scaleBy(1.0018 ** event.deltaY, x / this.surface.width);
      else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan((event.deltaX || event.deltaY) / this.surface.width);
      else return;
      event.preventDefault();
    }, { passive: false });
    dragging(canvas, {
      started: () => ({ from: this.from, to: this.to, top: host.scrollTop }),
      moved: (event, old, down) => {
        const by = ((down.clientX - event.clientX) / this.surface.width) * (old.to - old.from);
        this.range(old.from + by, old.to + by);
        host.scrollTop = old.top + down.clientY - event.clientY;
      },
      clicked: (event) => {
        const box = this.at(event);
        if (box) this.range(box.start, box.end);
      },
    });
  }
}
