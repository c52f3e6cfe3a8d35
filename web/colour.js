// SPDX-License-Identifier: BSD-2-Clause
//
// Colours. Hues stand for kinds of code and can be distinguished with every kind of colour blindness (after Okabe
// and Ito: orange, sky blue, reddish purple, bluish green); brightness varies with the name, so that
// neighbours differ. Text on them has a contrast of at least 4.5.

import { FLAG } from './data.js';
import { hashOf } from './text.js';

// By category: [hue, saturation]; without a symbol it is half as colourful.
const KINDS = [[215, 8], [36, 88], [318, 46], [206, 74], [162, 52], [215, 4]];
const KIND_NAMES = ['other', 'program', 'kernel', 'library', 'JIT code', 'idle'];
const MODULE_HUES = 24;

let dark = false;

export function setDark(on) {
  dark = on;
}

export function isDark() {
  return dark;
}

function hsl(h, s, l) {
  return `hsl(${h} ${s}% ${l}%)`;
}

function kindColour(flags, vary) {
  const [hue, saturation] = KINDS[flags & FLAG.CATEGORY];
  const weak = flags & FLAG.UNNAMED ? 0.35 : 1;
  return dark ? hsl(hue + vary * 6, saturation * 0.7 * weak, 34 + vary * 5) : hsl(hue + vary * 6, saturation * weak, 72 + vary * 7);
}

// A diverging scale for a second profile: blue is less than there, orange is more; white is no change.
export function changeColour(change) {
  const c = Math.max(-1, Math.min(1, change));
  const strength = Math.sqrt(Math.abs(c));
  const hue = c < 0 ? 214 : 28;
  return dark ? hsl(hue, 70 * strength, 26 + 14 * strength) : hsl(hue, 90 * strength, 94 - 28 * strength);
}

// How much a node's share has changed, -1 (it has gone) to 1 (it is new); {self, total, whole} of two profiles.
export function changeOf(a, b) {
  const shareA = a.whole ? a.total / a.whole : 0, shareB = b.whole ? b.total / b.whole : 0;
  const larger = Math.max(shareA, shareB);
  return larger ? (shareB - shareA) / larger : 0;
}

// The colour of a frame. `mode`: "kind", "name" or "module". With `b`, the sums of a second profile, it is
// how much the share of `a` has changed there.
export function frameColour(mode, flags, name, module, a, b) {
  if (b) return changeColour(changeOf(a, b));
  let colour;
  if (mode === 'kind') {
    colour = kindColour(flags, (hashOf(name) % 1000) / 500 - 1);
  } else {
    const hash = hashOf(mode === 'module' ? module : name);
    const hue = ((hash % MODULE_HUES) * 360) / MODULE_HUES;
    colour = dark ? hsl(hue, 36, 30 + (hash >> 8) % 8) : hsl(hue, 58, 72 + (hash >> 8) % 9);
  }
  return colour;
}

export function kindName(category) {
  return KIND_NAMES[category];
}

// Plain colours of kinds, for graphs and the legend.
export function plainKind(category) {
  const [hue, saturation] = KINDS[category];
  return dark ? hsl(hue, saturation * 0.75, 52) : hsl(hue, saturation * 0.92, 60);
}

// States of waits, by their number in the recording (WALL_STATES): [hue, saturation, lightness].
const STATE_COLOURS = [[0, 0, 60], [130, 45, 45], [30, 95, 52], [345, 80, 45], [25, 45, 40], [4, 75, 58], [222, 70, 60], [196, 60, 60], [150, 25, 68], [215, 12, 78], [275, 40, 66], [330, 65, 72], [0, 0, 45], [50, 15, 62]];

export function stateColour(state) {
  const [hue, saturation, lightness] = STATE_COLOURS[state] ?? STATE_COLOURS[0];
  return dark ? hsl(hue, saturation * 0.75, 20 + lightness * 0.5) : hsl(hue, saturation, 18 + lightness * 0.78);
}

// A sequential scale, dark to bright or the other way: 0 to 1. Of equal steps to the eye, as viridis.
const RAMP_LIGHT = [[255, 247, 224], [254, 217, 142], [253, 165, 67], [226, 99, 38], [168, 45, 52], [94, 18, 58]];
const RAMP_DARK = [[30, 30, 48], [74, 28, 92], [146, 40, 100], [214, 72, 70], [249, 142, 42], [252, 230, 130]];

export function rampColour(x) {
  const ramp = dark ? RAMP_DARK : RAMP_LIGHT;
  const at = Math.max(0, Math.min(1, x)) * (ramp.length - 1);
  const i = Math.min(ramp.length - 2, Math.floor(at)), f = at - i;
  const mixed = ramp[i].map((c, k) => Math.round(c + (ramp[i + 1][k] - c) * f));
  return `rgb(${mixed.join(' ')})`;
}
