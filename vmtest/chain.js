// SPDX-License-Identifier: BSD-2-Clause
// chain.js SECONDS: main calls outer, middle, inner and leaf, which works, and is called too seldom to be inlined.
'use strict';

function leaf() {
  const end = Date.now() + 50;
  let n = 0;
  while (Date.now() < end)
    for (let i = 0; i < 1000; i++)
      n = (n * 31 + i) | 0;
  return n;
}

function inner() {
  return leaf() + 1;
}

function middle() {
  return inner() + 1;
}

function outer() {
  return middle() + 1;
}

function main() {
  const end = Date.now() + Number(process.argv[2]) * 1000;
  let n = 0;
  while (Date.now() < end)
    n ^= outer();
  return n;
}

main();
