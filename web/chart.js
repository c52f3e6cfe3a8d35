// SPDX-License-Identifier: BSD-2-Clause
//
// The stacks of one thread in the order of time. A sample stands for the CPU time that was used since the one
// before, and is drawn over that time: what is left blank, the thread did not run.

import { Surface, SMALL_FONT, characterWidth, themeColour, dragging } from './canvas.js';
import { drawBox, ROW } from './flame.js';
import { offerMenu } from './menu.js';
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
  const { leaf } = tree, { time, weight, begin } = profile;
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
  // `options`: styleOf(node, chart), hover(node, event, span), menu(node, x, y), ranged(from, to)
  constructor(host, options) {
    this.options = options;
    this.levels = [];
    this.chosen = null; // by keyboard: {depth, i}
    this.surface = new Surface(host, options.label, (c, w, h, left, top) => this.draw(c, w, h, top));
    this.surface.onresize = () => this.layout();
    this.listen();
  }

  show(profile, tree, thread, from, to) {
    if (this.thread !== thread || this.tree !== tree) {
      this.levels = spansOf(profile, tree, thread);
      this.chosen = null;
    }
    this.thread = thread;
    this.tree = tree;
    this.end = profile.end;
    this.from = from;
    this.to = to;
    this.layout();
    this.surface.ask();
  }

  layout() {
    this.surface.extent(0, this.wholeSize().height);
  }

  // Of all rows, of the time that is shown.
  wholeSize() {
    return { width: this.surface.width, height: this.levels.length * ROW + AXIS + 4 };
  }

  drawWhole(context) {
    const { width, height } = this.wholeSize(), { chosen } = this;
    this.chosen = null;
    this.draw(context, width, height, 0);
    this.chosen = chosen;
  }

  draw(c, width, height, top) {
    if (!this.tree) return;
    const scale = width / (this.to - this.from), each = characterWidth(c);
    c.textBaseline = 'middle';
    this.levels.forEach((level, depth) => {
      const y = AXIS + depth * ROW - top;
      if (y > -ROW && y < height) this.level(c, level, y, width, scale, each);
    });
    this.outline(c);
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

  outline(c) {
    const box = this.chosen && this.boxOf(this.chosen);
    if (!box) return;
    c.strokeStyle = themeColour('focus');
    c.lineWidth = 2;
    c.strokeRect(box.x + 1, box.y + 0.5, Math.max(box.w - 3, 1), ROW - 2);
  }

  spanOf({ depth, i }) {
    const { start, end, node } = this.levels[depth];
    return { node: node[i], start: start[i], end: end[i] };
  }

  // Where a box is in the canvas: {x, y, w}, clipped to what can be seen; or null.
  boxOf(place) {
    const { start, end } = this.spanOf(place), { width, host } = this.surface, scale = width / (this.to - this.from);
    const x = Math.max(0, (start - this.from) * scale), right = Math.min(width, (end - this.from) * scale);
    const y = AXIS + place.depth * ROW - host.scrollTop;
    return right > x && y > 0 && y < this.surface.height ? { x, y, w: right - x } : null;
  }

  // The node that the keyboard has chosen, or ROOT.
  get chosenNode() {
    return this.chosen ? this.spanOf(this.chosen).node : ROOT;
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
    const menu = (event) => {
      const box = this.at(event);
      if (box) this.options.menu(box.node, event.clientX, event.clientY);
      return !!box;
    };
    offerMenu(canvas, menu, () => {
      const box = this.chosen && this.boxOf(this.chosen), at = canvas.getBoundingClientRect();
      if (box) this.options.menu(this.chosenNode, at.left + box.x + Math.min(12, box.w / 2), at.top + box.y + ROW);
      return !!box;
    });
    canvas.addEventListener('keydown', (event) => this.key(event));
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
        this.chosen = null;
        if (box) this.range(box.start, box.end);
      },
    });
  }

  // The box of a level that is next to a time: that around it, or the one behind it, or the last.
  near(depth, time) {
    const { end } = this.levels[depth];
    return { depth, i: Math.min(end.length - 1, firstAfter(end, time)) };
  }

  // Among boxes by the arrows: earlier and later ones of the same depth, callers and callees.
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.levels.length) return;
    const { depth, i } = this.chosen ?? {}, span = this.chosen && this.spanOf(this.chosen);
    let next = null;
    if (!['ArrowUp', 'ArrowDown', 'ArrowLeft', 'ArrowRight', 'Enter'].includes(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
    if (!span) next = this.near(0, this.from);
    else if (event.key === 'Enter') this.range(span.start, span.end);
    else if (event.key === 'ArrowLeft') next = { depth, i: Math.max(0, i - 1) };
    else if (event.key === 'ArrowRight') next = { depth, i: Math.min(this.levels[depth].end.length - 1, i + 1) };
    else if (event.key === 'ArrowUp') next = this.near(Math.max(0, depth - 1), span.start);
    else if (depth + 1 < this.levels.length) next = this.calleeOf(depth, span);
    if (next) this.choose(next);
  }

  // The first box below one that can be seen, else the first; itself if it calls nothing.
  calleeOf(depth, { start, end }) {
    const seen = this.near(depth + 1, Math.max(start, Math.min(this.from, end))), first = this.near(depth + 1, start);
    return [seen, first].find((place) => this.spanOf(place).start < end && this.spanOf(place).end > start) ?? null;
  }

  // A box that is to be seen: the time follows if it must.
  choose(place) {
    const { node, start, end } = this.spanOf(place), { host, height } = this.surface, top = place.depth * ROW;
    this.chosen = place;
    if (end <= this.from || start >= this.to) {
      const size = this.to - this.from, middle = (start + Math.min(end, start + size)) / 2;
      this.range(middle - size / 2, middle + size / 2);
    }
    if (top < host.scrollTop || top + ROW + AXIS > host.scrollTop + height) host.scrollTop = top - height / 2;
    this.surface.ask();
    this.options.hover(node, null, { start, end });
  }
}
