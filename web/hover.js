// SPDX-License-Identifier: BSD-2-Clause
//
// What is under the pointer, or was just done: the tooltip and the line below the picture.

import { facts, rootText, textOf } from './boxes.js';
import { state } from './shown.js';
import { byId, make } from './text.js';
import { ROOT } from './tree.js';

export function tip(event, title, list) {
  const box = byId('tip');
  if (!event || !title) {
    box.hidden = true;
    return;
  }
  const lines = make('dl');
  for (const [name, text] of list) lines.append(make('dt', null, name), make('dd', null, make('bdi', null, text.slice(0, 600))));
  box.replaceChildren(make('div', { class: 'title' }, make('bdi', null, title.slice(0, 1500))), lines);
  box.hidden = false;
  const { width, height } = box.getBoundingClientRect();
  const right = event.clientX + 14 + width > innerWidth, low = event.clientY + 18 + height > innerHeight;
  box.style.left = `${Math.max(4, right ? event.clientX - width - 10 : event.clientX + 14)}px`;
  box.style.top = `${Math.max(4, low ? event.clientY - height - 10 : event.clientY + 18)}px`;
}

export function hoverBox(picture) {
  return (node, event) => {
    if (node < 0) {
      tip(null);
      byId('status').textContent = hint();
      return;
    }
    const text = node === ROOT ? rootText(picture) : textOf(picture.tree.fn[node]);
    showFacts(event, text, facts(node, picture));
  };
}

// `event`: of the pointer; null: the keyboard has chosen it.
export function showFacts(event, text, list) {
  tip(event, text, list);
  const line = `${text.slice(0, 300)} – ${list.map(([name, value]) => `${name}: ${value}`).join(' · ')}`;
  byId('status').textContent = line;
  if (!event) byId('live').textContent = line;
}

export function hint() {
  if (state.view === 'heat') return 'Drag over cells to select their time';
  if (state.view === 'code') return 'Click a line for its instructions, an instruction for its line · , and . step through the hottest lines';
  if (state.view === 'table') return 'Click a function for its callers and callees';
  return 'Click zooms · Ctrl + wheel zooms, drag pans · right click: focus, hide, copy, … · ? for all keys';
}

export function sayBriefly(text) {
  byId('status').textContent = byId('live').textContent = text;
}
