// SPDX-License-Identifier: BSD-2-Clause
//
// The distributions and tests of userspace/compare/statistics.c and tests.c, for parts of a recording that are compared in
// the page. An estimate is {value, variance, freedom}.

const KNOWN_FREEDOM = 1e7; // from here on Student's t is the normal distribution
const SMALLEST = 1e-300;
const LANCZOS = [0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059, 12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7];

function logGamma(x) {
  const t = x + 6.5;
  let sum = LANCZOS[0];
  for (let i = 1; i < LANCZOS.length; i++) sum += LANCZOS[i] / (x + i - 1);
  return 0.5 * Math.log(2 * Math.PI) + (x - 0.5) * Math.log(t) - t + Math.log(sum);
}

// The continued fraction of the incomplete beta function, by Lentz's method.
function betaFraction(a, b, x) {
  const apart = (y) => (Math.abs(y) < SMALLEST ? SMALLEST : y);
  let c = 1, d = 1 / apart(1 - ((a + b) * x) / (a + 1)), value = d;
  for (let m = 1; m <= 500; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / apart(1 + even * d);
    c = apart(1 + even / c);
    value *= d * c;
    d = 1 / apart(1 + odd * d);
    c = apart(1 + odd / c);
    value *= d * c;
    if (Math.abs(d * c - 1) < 1e-15) break;
  }
  return value;
}

function incompleteBeta(a, b, x) {
  if (x <= 0 || x >= 1) return x <= 0 ? 0 : 1;
  const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x));
  return x < (a + 1) / (a + b + 2) ? (front * betaFraction(a, b, x)) / a : 1 - (front * betaFraction(b, a, 1 - x)) / b;
}

// Of the normal distribution, on both sides: a series near 0, else a continued fraction.
function normalP(z) {
  const x = (z * z) / 2;
  if (x < 1.5) {
    let term = 2, sum = 2;
    for (let n = 1; n < 100; n++) sum += term *= x / (n + 0.5);
    return 1 - sum * Math.sqrt(x) * Math.exp(-x) / Math.sqrt(Math.PI);
  }
  let b = x + 0.5, c = 1 / SMALLEST, d = 1 / b, value = d;
  for (let i = 1; i < 500; i++) {
    const an = -i * (i - 0.5);
    b += 2;
    d = 1 / (an * d + b);
    c = b + an / c;
    value *= d * c;
    if (Math.abs(d * c - 1) < 1e-15) break;
  }
  return Math.exp(-x) * Math.sqrt(x) * value / Math.sqrt(Math.PI);
}

export function studentP(t, freedom) {
  return freedom < KNOWN_FREEDOM ? incompleteBeta(freedom / 2, 0.5, freedom / (freedom + t * t)) : normalP(Math.abs(t));
}

const quantiles = new Map(); // many tests have the same freedom

// The t that has this p on both sides.
export function studentT(p, freedom) {
  const key = `${p} ${freedom}`;
  if (!quantiles.has(key)) {
    let low = 0, high = 1;
    while (studentP(high, freedom) > p && high < 1e12) high *= 2;
    for (let i = 0; i < 200 && high - low > 1e-14 * high; i++) {
      const middle = (low + high) / 2;
      if (studentP(middle, freedom) > p) low = middle;
      else high = middle;
    }
    quantiles.set(key, (low + high) / 2);
  }
  return quantiles.get(key);
}

export function differenceOf(a, b) {
  const variance = a.variance + b.variance, sum = a.variance ** 2 / a.freedom + b.variance ** 2 / b.freedom;
  return { value: b.value - a.value, variance, freedom: sum > 0 ? variance ** 2 / sum : Infinity };
}

// Weighted Benjamini and Hochberg: sets `q` of tests with `p` and `weight`.
export function setRates(tests) {
  const sum = tests.reduce((all, t) => all + t.weight, 0), list = tests.map((test) => ({ test, p: (test.p * sum) / (test.weight * tests.length) }));
  list.sort((a, b) => a.p - b.p);
  let least = 1;
  for (let i = list.length; i-- > 0;) list[i].test.q = least = Math.min(least, (list[i].p * list.length) / (i + 1));
}

// ---- variance ------------------------------------------------------------------------------------------

const SLOTS_MIN = 16; // with less, the variance of blocks says nothing

// Of the ratio of two sums over blocks of `step` slots each.
function blockVariance(part, whole, step, ratio) {
  const blocks = Math.floor(part.length / step);
  let squares = 0, sum = 0;
  for (let i = 0; i < blocks; i++) {
    let rest = 0;
    for (let j = i * step; j < (i + 1) * step; j++) {
      rest += part[j] - ratio * whole[j];
      sum += whole[j];
    }
    squares += rest * rest;
  }
  return sum > 0 ? ((squares / (sum * sum)) * blocks) / (blocks - 1) : 0;
}

// Blocks are doubled until their variance grows by no more than its own error. The last two count, the larger one.
export function ratioEstimate(part, whole, ratio, independent) {
  if (part.length < SLOTS_MIN) return { value: ratio, variance: independent, freedom: Infinity };
  let step = 1, found = blockVariance(part, whole, 1, ratio);
  for (let settled = false; !settled && Math.floor(part.length / (2 * step)) >= SLOTS_MIN;) {
    const next = blockVariance(part, whole, 2 * step, ratio);
    settled = next <= found * (1 + 1 / Math.sqrt(Math.floor(part.length / (2 * step))));
    if (next > found) {
      found = next;
      step *= 2;
    }
  }
  if (found <= independent) return { value: ratio, variance: independent, freedom: Infinity };
  return { value: ratio, variance: found, freedom: Math.floor(part.length / step) - 1 };
}
