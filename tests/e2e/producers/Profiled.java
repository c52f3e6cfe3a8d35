// SPDX-License-Identifier: BSD-2-Clause
/** Work of two threads, for async-profiler. */
public class Profiled {
	static long fibonacci(int n) {
		return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
	}

	static long hashes() {
		long sum = 0;
		for (int i = 0; i < 2000000; i++)
			sum = sum * 31 + String.valueOf(i).hashCode();
		return sum;
	}

	public static void main(String[] args) throws Exception {
		Thread thread = new Thread(() -> hashes(), "hasher");
		thread.start();
		long sum = 0;
		for (int i = 0; i < 6; i++)
			sum += fibonacci(33);
		thread.join();
		System.out.println(sum);
	}
}
