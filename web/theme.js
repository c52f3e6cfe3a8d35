// SPDX-License-Identifier: BSD-2-Clause
//
// Light or dark: as the system has it, or as it was chosen last.

import { forgetColours } from './boxes.js';
import { forgetTheme } from './canvas.js';
import { isDark, setDark } from './colour.js';
import { showLegend } from './lines.js';
import { profile, sums } from './shown.js';
import { chart, codeView, flame, heat, lower, table, timeline, upper } from './views.js';

function applyTheme(isNight) {
  setDark(isNight);
  forgetColours();
  document.documentElement.dataset.theme = isNight ? 'dark' : 'light';
  forgetTheme();
  if (!profile || !sums) return;
  timeline?.redraw(true);
  heat?.surface.ask();
  for (const p of [flame, chart, upper, lower]) p.surface.ask();
  if (table.rows) table.render();
  for (const list of [codeView.source, codeView.machine]) list.render();
  showLegend();
}

function kept(name, value) {
  try {
    if (value === undefined) return localStorage.getItem(name);
    localStorage.setItem(name, value);
  } catch {
    // a page from a file may have no storage
  }
  return null;
}

export function switchTheme() {
  applyTheme(!isDark());
  kept('sysprof-theme', isDark() ? 'dark' : 'light');
}

export function watchTheme() {
  const query = matchMedia('(prefers-color-scheme: dark)'), own = kept('sysprof-theme');
  applyTheme(own ? own === 'dark' : query.matches);
  query.addEventListener('change', () => !kept('sysprof-theme') && applyTheme(query.matches));
}
