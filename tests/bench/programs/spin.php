<?php
// SPDX-License-Identifier: BSD-2-Clause
// spin.php SECONDS: calls, converts, sorts.
function f($n)
{
	return $n < 2 ? $n : f($n - 1) + f($n - 2);
}

$end = microtime(true) + (float)$argv[1];
while (microtime(true) < $end) {
	f(16);
	$words = array_map('strval', range(1, 1000));
	sort($words);
}
