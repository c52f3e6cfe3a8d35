# SPDX-License-Identifier: BSD-2-Clause
"""Two versions of a program for `sysprof compare`: with "new" the discount of an order looks at all of its rows."""
import json
import sys

ROWS = 300
NEW = "new" in sys.argv


def read_order(number):
    return json.loads(json.dumps([{"price": (number * i) % 1024, "count": 1 + i % 8} for i in range(ROWS)]))


def sum_order(rows):
    return sum(row["price"] * row["count"] % 977 for row in rows)


def find_discount(rows):
    return max(row["count"] * row["price"] % 89 for row in (rows if NEW else rows[:ROWS // 4]))


def print_order(rows):
    return ", ".join(f"{row['count']} x {row['price']}" for row in rows[::3])


total = 0
for order in range(1500):
    items = read_order(order)
    total += sum_order(items) + find_discount(items) + len(print_order(items))
print(total)
