// SPDX-License-Identifier: BSD-2-Clause
//! profiled FILE: a profile of pprof-rs of its own work of two threads. Prints how many samples each function has as
//! innermost, as the profiler has counted them: `THREAD COUNT FUNCTION`.
use pprof::protos::Message;
use std::hint::black_box;

fn fibonacci(n: u64) -> u64 {
    if n < 2 { n } else { fibonacci(n - 1) + fibonacci(n - 2) }
}

fn sorted(n: u64) -> u64 {
    let mut words: Vec<String> = (0..n).map(|i| (i * 7919 % n).to_string()).collect();
    words.sort();
    words.len() as u64
}

fn spend(seconds: i64, work: impl Fn()) {
    let used = || {
        let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut t) };
        t.tv_sec * 1_000_000_000 + t.tv_nsec
    };
    let end = used() + seconds * 1_000_000_000;
    while used() < end {
        work();
    }
}

fn main() {
    let guard = pprof::ProfilerGuardBuilder::default().frequency(499).build().unwrap();
    let sorter = std::thread::Builder::new().name("sorter".into());
    let sorter = sorter.spawn(|| spend(1, || { black_box(sorted(black_box(3000))); })).unwrap();
    spend(1, || { black_box(fibonacci(black_box(20))); });
    sorter.join().unwrap();
    let report = guard.report().build().unwrap();
    for (stack, count) in &report.data {
        println!("{} {} {}", stack.thread_name, count, stack.frames[0][0].name());
    }
    let mut bytes = Vec::new();
    report.pprof().unwrap().write_to_vec(&mut bytes).unwrap();
    std::fs::write(std::env::args().nth(1).unwrap(), bytes).unwrap();
}
