// SPDX-License-Identifier: BSD-2-Clause
//
// What leaves the page: texts and the link for the clipboard, files.

import { placeText, textOf } from './boxes.js';
import { folded } from './data.js';
import { sayBriefly } from './hover.js';
import { openMenu } from './menu.js';
import { pngOf, svgOf } from './picture.js';
import { profile, rangeOf, state, views } from './shown.js';
import { writeAddress } from './state.js';
import { byId, make } from './text.js';
import { ROOT, hottestPlaces, tally } from './tree.js';
import { chart, flame, heat, lower, upper } from './views.js';

export async function copyText(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // not allowed, or not there
    const area = make('textarea', { class: 'quiet' });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
  sayBriefly(`Copied: ${what}`);
}

export function copyLink() {
  writeAddress(state);
  return copyText(location.href, 'the link');
}

// The innermost frame first, each with the line that most of its samples have.
export function stackText(picture, node) {
  const nodes = [], shown = picture.tree;
  for (let at = node; at !== ROOT; at = shown.parent[at]) nodes.push(at);
  const known = picture === chart ? tally(profile, shown, rangeOf) : picture.sums;
  const places = known.counted ? hottestPlaces(profile, known, nodes) : nodes.map(() => -1);
  const lines = nodes.map((at, i) => [textOf(shown.fn[at]), shown.fn[at] >= 0 ? `(${profile.moduleOf(shown.fn[at])})` : '', placeText(places[i])].filter(Boolean).join(' '));
  return `${(picture === upper ? lines.reverse() : lines).join('\n')}\n`;
}

function saveAs(name, blob) {
  const link = make('a', { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

export function saveFolded() {
  saveAs('profile.folded', new Blob([folded(profile, rangeOf)], { type: 'text/plain' }));
}

// Of the view, one below the other; those of texts have none.
function shownPictures() {
  const { view } = state;
  if (!byId('message').hidden) return [];
  if (view === 'sandwich') return [upper, lower].map((picture) => ({ picture, title: picture.title.textContent }));
  const picture = { flame, time: chart, heat }[view];
  return picture ? [{ picture, title: '' }] : [];
}

export function saveMenu() {
  const { left, bottom } = byId('save').getBoundingClientRect(), parts = shownPictures(), name = views.find(([view]) => view === state.view)[1];
  const pictures = [[`${name} as SVG`, () => saveAs('profile.svg', svgOf(parts))], [`${name} as PNG`, async () => saveAs('profile.png', await pngOf(parts))]];
  openMenu(left, bottom + 2, 'Save what is shown', [['Folded stacks (f)', saveFolded], ...(parts.length ? pictures : [])]);
}
