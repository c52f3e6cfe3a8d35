// SPDX-License-Identifier: BSD-2-Clause
//
// What a checker's command line is: DIR FILE…. Says what is wrong with which file, and exits with 1 if anything is.

const [directory, ...files] = process.argv.slice(2);
if (!directory || !files.length) {
	console.error(`usage: ${process.argv[1]} DIR FILE…`);
	process.exit(2);
}

export {directory};

export async function checkEachFile(check) {
	for (const file of files) {
		try {
			await check(file);
		} catch (error) {
			process.exitCode = 1; // exit() would cut off what a pipe has not taken yet
			console.error(`${file}: ${error.message}`);
		}
	}
}
