// SPDX-License-Identifier: BSD-2-Clause
// app.js: a small shop that never sleeps; for docs/RUNTIMES.md.
'use strict';

class Order {
  constructor(id) {
    this.id = id;
    this.items = Array.from({length: 20}, (_, i) => ({name: `item ${i}`, price: (id * i) % 97}));
  }

  total() {
    return this.items.reduce((sum, item) => sum + item.price, 0);
  }
}

function makeOrders(count) {
  return Array.from({length: count}, (_, id) => new Order(id));
}

function sortOrders(orders) {
  return orders.sort((a, b) => a.total() - b.total());
}

function renderPage(orders) {
  return orders.map((order) => `<li>${order.id}: ${order.total().toFixed(2)}</li>`).join('\n');
}

function parseAgain(orders) {
  return JSON.parse(JSON.stringify(orders)).length;
}

function handleRequest() {
  const orders = sortOrders(makeOrders(300));
  return renderPage(orders).length + parseAgain(orders);
}

for (;;)
  handleRequest();
