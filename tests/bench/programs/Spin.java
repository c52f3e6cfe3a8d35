// SPDX-License-Identifier: BSD-2-Clause
/** Spin SECONDS: calls and strings. */
public class Spin {
	static long f(int n) {
		return n < 2 ? n : f(n - 1) + f(n - 2);
	}

	public static void main(String[] arguments) {
		long end = System.nanoTime() + (long) (Double.parseDouble(arguments[0]) * 1e9), sum = 0;
		while (System.nanoTime() < end)
			sum += f(20) + String.valueOf(sum).hashCode();
		System.out.println(sum);
	}
}
