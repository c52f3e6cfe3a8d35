# SPDX-License-Identifier: BSD-2-Clause
"""app.py: a small shop that never sleeps; for docs/RUNTIMES.md."""
import json
import re
import zlib


class Order:
    def __init__(self, number):
        self.number = number
        self.items = [{"name": f"item {i}", "price": number * i % 97} for i in range(20)]

    def total(self):
        return sum(item["price"] for item in self.items)


def make_orders(count):
    return [Order(i) for i in range(count)]


def sort_orders(orders):
    return sorted(orders, key=lambda order: order.total())


def words(orders):
    for order in orders:
        for item in order.items:
            yield from re.findall(r"\w+", item["name"])


def index(orders):
    return {word: len(word) for word in words(orders)}


def pack(orders):
    return zlib.compress(json.dumps([order.items for order in orders]).encode(), 6)


def handle_request():
    orders = sort_orders(make_orders(200))
    return index(orders), pack(orders)


while True:
    handle_request()
