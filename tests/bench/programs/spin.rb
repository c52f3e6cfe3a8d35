# SPDX-License-Identifier: BSD-2-Clause
# spin.rb SECONDS: calls, converts, sorts.
def f(n)
  n < 2 ? n : f(n - 1) + f(n - 2)
end

stop = Time.now + ARGV[0].to_f
while Time.now < stop
  f(16)
  (1..1000).map(&:to_s).sort
end
