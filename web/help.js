// SPDX-License-Identifier: BSD-2-Clause
//
// The views, what their controls change, the keys: as data, and as the help.

import { make } from './text.js';

export const VIEWS = [
  ['flame', 'Flame graph', 'What the time was spent on: boxes are as wide as their share'],
  ['time', 'Time order', 'The stacks of one thread, one after the other'],
  ['sandwich', 'Sandwich', 'Callers and callees of a function'],
  ['table', 'Functions', 'All functions with their own and total share'],
  ['heat', 'Heat map', 'When the samples fell, 20 ms a cell'],
  ['code', 'Code', 'The lines and instructions of a function with their samples'],
];

// Of a recording with waits.
export const LOCKS_VIEW = ['locks', 'Locks', 'What waits for locks, and which thread has them'];

// Where a control changes something.
export const USES = {
  group: ['flame', 'sandwich'], measure: ['flame', 'sandwich', 'table', 'code'], colours: ['flame', 'time', 'sandwich'], sort: ['flame', 'sandwich'],
  down: ['flame'], recursion: ['flame', 'sandwich'], mode: ['flame', 'time', 'sandwich', 'table', 'heat', 'code'],
  parked: ['flame', 'time', 'sandwich', 'table', 'heat', 'locks', 'code'],
};

const KEYS = [
  ['1 … 7', 'the views'], ['/', 'search; Enter and n: next match'], ['?', 'this help'], ['Esc', 'back: close, clear the search, zoom out, whole time, without the last filter'],
  ['← → ↑ ↓', 'from box to box, thread to thread, row to row (after Tab to them); ← → fold and open groups'], ['Enter', 'zoom into the chosen box'], ['Backspace', 'zoom out by one caller'],
  ['+ −', 'zoom, also Ctrl + wheel'], ['a d', 'pan, also Shift + wheel or drag'], ['w s', 'scroll'], ['0', 'all of it'],
  ['g', 'merged, by service, by process, by thread'], ['i', 'flame graph or icicle'], ['m', 'samples or CPU time'], ['k', 'colours: kind, name, module'],
  ['o', 'heaviest or alphabetical first'], ['r', 'recursion as one frame'], ['x', 'callers and callees of the chosen box'], ['c', 'lines and instructions of the chosen box or row, or of the search’s hottest match'], [', .', 'in Code: the line before, the next line, in the order of samples'], ['Shift + F10', 'menu of the chosen box, function or thread (also right click, or a long touch)'], ['e', 'filter: an expression to focus on, or options of sysprof report'],
  ['[ ]', 'selected time back and forth'], ['b', 'the selected time is OLD: select NEW, and both are compared (also Ctrl + drag)'], ['f', 'save what is shown as folded stacks'], ['t', 'light or dark'], ['h', 'hide the timeline'],
  ['v', 'CPU, waiting, or both (of a recording with waits)'], ['p', 'parked threads: event loops, idle pools'],
];

// A dialog's button to close it.
export function closer() {
  return make('button', { type: 'button', class: 'icon close', 'aria-label': 'Close', onclick: (event) => event.target.closest('dialog').close() }, '✕');
}

export function fillHelp(dialog) {
  dialog.replaceChildren(closer(), make('h2', null, 'Keys'), make('div', { class: 'columns' }, make('table', null, make('tbody', null, ...KEYS.map(([keys, text]) => make('tr', null,
    make('th', { scope: 'row' }, ...keys.split(' ').map((k) => (k === '…' || k === '') ? ` ${k} ` : make('kbd', null, k))), make('td', null, text)))))),
  make('p', null, 'Click a thread to see it alone; with Ctrl several. Drag over the timeline or the heat map to select a part of the time: everything else follows. Hold Ctrl and drag to select a second part: what differs between the two is tested and coloured, as by sysprof diff FILE@10s-20s FILE@40s-50s. The address in the address bar leads back to what is shown.'),
  make('p', null, 'Shares have a 95 % confidence interval (Wilson’s, on the number of samples): two shares whose intervals overlap need not differ.'));
}
