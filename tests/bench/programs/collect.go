// SPDX-License-Identifier: BSD-2-Clause

// collect SECONDS: makes trees and drops them, so that the garbage collector works too.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

type node struct{ left, right *node }

func tree(depth int) *node {
	if depth == 0 {
		return &node{}
	}
	return &node{tree(depth - 1), tree(depth - 1)}
}

func (n *node) count() int {
	if n.left == nil {
		return 1
	}
	return 1 + n.left.count() + n.right.count()
}

func main() {
	seconds, err := strconv.ParseFloat(os.Args[1], 64)
	if err != nil {
		panic(err)
	}
	end, total := time.Now().Add(time.Duration(seconds*float64(time.Second))), 0
	for time.Now().Before(end) {
		total += tree(14).count()
	}
	fmt.Println(total)
}
