# SPDX-License-Identifier: BSD-2-Clause
"""service.py: a shop as a WSGI application; for docs/WALL.md. gunicorn --threads 8 service:app"""
import json
import time
import zlib


def load_stock(count):
    time.sleep(0.005)  # the database's part
    return [{"number": i, "name": f"item {i}", "tags": ["new", "small"]} for i in range(count)]


def price(item):
    return len(item["name"]) * item["number"] % 97


def sort_by_price(stock):
    return sorted(stock, key=price)


def pack(stock):
    return zlib.compress(json.dumps(stock, indent=1).encode(), 6)


def app(environ, start):
    body = pack(sort_by_price(load_stock(3000)))
    start("200 OK", [("Content-Length", str(len(body)))])
    return [body]
