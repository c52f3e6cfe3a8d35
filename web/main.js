// SPDX-License-Identifier: BSD-2-Clause
//
// The page, from the profile in it to the first picture.

import { change } from './change.js';
import { frameColour } from './colour.js';
import { folded, readProfile } from './data.js';
import { fillHeader } from './facts.js';
import { makeFrame, showDetails } from './frame.js';
import { functionRows, hasTimes, profile, rangeOf, recorded, state, useProfile, whole } from './shown.js';
import { DEFAULTS } from './state.js';
import { byId } from './text.js';
import { watchTheme } from './theme.js';
import { chart, codeView, flame, heat, lower, makeViews, timeline, upper } from './views.js';

async function start() {
  watchTheme();
  const element = byId('profile');
  useProfile(await readProfile(element.textContent.trim()));
  element.remove();
  if (!profile.difference) fillHeader(profile, byId('title'), byId('strip'), showDetails);
  makeFrame();
  makeViews();
  change({});
  byId('timeline').hidden = byId('splitter').hidden = !hasTimes();
  for (const p of [flame, upper, lower, chart]) p.surface.resize();
  performance.mark('first-picture');
  document.documentElement.dataset.ready = 'yes';
}

// For tests, and for use in the console.
globalThis.page = {
  get state() { return structuredClone(state); },
  get profile() { return profile; },
  change,
  folded: () => folded(profile, rangeOf),
  whole,
  get filtered() { return recorded.filter; },
  rows: functionRows,
  frameColour,
  code: () => codeView,
  defaults: DEFAULTS,
  pictures: () => ({ flame, chart, upper, lower, timeline, heat }),
};

start().catch((error) => {
  byId('message').hidden = false;
  byId('message').textContent = `This page could not be read: ${error.message}`;
  throw error;
});
