// SPDX-License-Identifier: BSD-2-Clause
//! spin SECONDS: sorts and hashes, some calls deep.
use std::collections::HashMap;
use std::time::{Duration, Instant};

#[inline(never)]
fn words(count: u64) -> HashMap<String, u64> {
    let mut map = HashMap::new();
    for i in 0..count {
        *map.entry((i.wrapping_mul(2654435761) % 977).to_string()).or_insert(0) += i;
    }
    map
}

#[inline(never)]
fn deeper(left: u32, count: u64) -> u64 {
    if left > 0 {
        return std::hint::black_box(deeper(left - 1, count)) + 1;
    }
    let mut list: Vec<_> = words(count).into_iter().collect();
    list.sort_by(|a, b| a.0.cmp(&b.0));
    list.iter().map(|(word, n)| word.len() as u64 ^ n).sum()
}

fn main() {
    let seconds: f64 = std::env::args().nth(1).and_then(|a| a.parse().ok()).expect("spin SECONDS");
    let (end, mut sum) = (Instant::now() + Duration::from_secs_f64(seconds), 0u64);
    while Instant::now() < end {
        sum = sum.wrapping_add(deeper(20, 5000));
    }
    println!("{sum}");
}
