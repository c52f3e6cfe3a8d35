# SPDX-License-Identifier: BSD-2-Clause
# spin.pl SECONDS: calls, hashes, sorts.
use strict;
use warnings;
use Time::HiRes 'time';

sub f {
	my ($n) = @_;
	return $n < 2 ? $n : f($n - 1) + f($n - 2);
}

my $end = time + $ARGV[0];
while (time < $end) {
	f(14);
	my %words = map { $_ => 1 } 1 .. 1000;
	my @sorted = sort keys %words;
}
