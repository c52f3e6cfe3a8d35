// SPDX-License-Identifier: BSD-2-Clause

// profiles DIR: CPU profiles of Go's runtime of work of several kinds, DIR/go-NAME.pb.gz.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"runtime/pprof"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"
)

var sink int

func fibonacci(n int) int {
	if n < 2 {
		return n
	}
	return fibonacci(n-1) + fibonacci(n-2)
}

func sum[T int | float64](values []T) (s T) {
	for _, v := range values {
		s += v
	}
	return
}

func generic() {
	ints, floats := make([]int, 10000), make([]float64, 10000)
	sink += sum(ints) + int(sum(floats))
}

func sorted() {
	words := strings.Fields(strings.Repeat("f e d c b a ", 500))
	sort.Slice(words, func(i, j int) bool { return words[i] < words[j] })
}

func maps() {
	m := map[string]int{}
	for i := 0; i < 5000; i++ {
		m[fmt.Sprint(i%700)]++
	}
	sink += len(m)
}

func encoded() {
	text, _ := json.Marshal(map[string][]int{"a": make([]int, 1000), "b": {1, 2}})
	var back map[string][]int
	json.Unmarshal(text, &back)
}

var pattern = regexp.MustCompile(`(\w+)@(\w+)\.com`)

func matched() { sink += len(pattern.FindAllString(strings.Repeat("a@b.com, ", 300), -1)) }

func hashed() {
	h := sha256.Sum256(make([]byte, 1<<16))
	sink += int(h[0])
}

func packed() {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(bytes.Repeat([]byte("some text "), 2000))
	w.Close()
}

func recovered() {
	defer func() { recover() }()
	var nothing []int
	sink += fibonacci(12) + nothing[3]
}

func together() {
	var group sync.WaitGroup
	for i := 0; i < 4; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			fibonacci(20)
		}()
	}
	group.Wait()
}

func labelled() {
	pprof.Do(context.Background(), pprof.Labels("request", "a", "thread", "t"), func(context.Context) { fibonacci(20) })
}

func garbage() {
	var all []*[64]int
	for i := 0; i < 5000; i++ {
		all = append(all, new([64]int))
	}
	sink += len(all)
}

func cpuTime() time.Duration {
	var used syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func main() {
	work := map[string]func(){
		"fibonacci": func() { fibonacci(22) }, "generic": generic, "sorted": sorted, "maps": maps, "encoded": encoded,
		"matched": matched, "hashed": hashed, "packed": packed, "recovered": recovered, "together": together,
		"labelled": labelled, "garbage": garbage,
	}
	for name, f := range work {
		file, _ := os.Create(os.Args[1] + "/go-" + name + ".pb.gz")
		pprof.StartCPUProfile(file)
		for end := cpuTime() + 200*time.Millisecond; cpuTime() < end; {
			f()
		}
		pprof.StopCPUProfile()
		file.Close()
	}
}
