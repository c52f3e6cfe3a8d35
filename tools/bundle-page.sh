#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# bundle-page.sh WEB: prints a C header with the page of .html files in three arrays of bytes: page_head, then
# comes the profile, then page_middle, then machine code and sources, then page_tail.
#
# WEB/index.html has @STYLE@ and @SCRIPT@ in lines of their own. The script is the modules in the order of
# the list below, joined: `import` lines and the word `export` are taken out, so all names at the top of a
# module are names of the whole. Comments in lines of their own and indentation are left out as well. The
# page's Content-Security-Policy gets the hashes of both (@STYLE_HASH@, @SCRIPT_HASH@), so that nothing else
# in the page can ever be run.
set -euo pipefail

web=$1
modules="text data tree unnamed pattern owners filter colour canvas menu picture flame chart timeline heatmap table facts difference statistics selections wall help state shown boxes hover items share lines code rowlist codeview views theme change keys frame main"

fail() {
	echo "$0: $*" >&2
	exit 1
}

join_modules() {
	local module
	echo '"use strict";'
	for module in $modules; do
		sed -e '/^import /d' -e 's/^export //' -e '/^[[:blank:]]*\/\//d' -e 's/^[[:blank:]]*//' \
			-e '/^$/d' "$web/$module.js"
	done
}

hash_of() { # text, which a browser sees between two line ends
	printf '\n%s\n' "$1" | sha256sum | {
		read -r digits _
		# shellcheck disable=SC2059 # the format is the text: \x.. for each byte
		printf "$(sed 's/../\\x&/g' <<<"$digits")" | base64
	}
}

as_bytes() { # name
	echo "static const unsigned char $1[] = {"
	od -An -v -tu1 | sed 's/  */,/g; s/^,//; s/$/,/'
	echo "};"
}

for file in "$web"/*.js; do
	name=$(basename "$file" .js)
	[[ " $modules " == *" $name "* ]] || fail "$file is in no bundle: add it to the list in this script"
done
script=$(join_modules)
style=$(sed -e 's/^[[:blank:]]*//' -e '/^$/d' "$web/style.css")
! grep -qi '</s' <<<"$script$style" || fail "a closing tag inside of the script or the style"
page=$(sed -e "s|@STYLE_HASH@|$(hash_of "$style")|" -e "s|@SCRIPT_HASH@|$(hash_of "$script")|" "$web/index.html")
page=${page/@STYLE@/"$style"}
page=${page/@SCRIPT@/"$script"}
[[ $page == *@PROFILE@*@CODE@* ]] || fail "$web/index.html has no @PROFILE@ before a @CODE@"

echo "/* Made by tools/bundle-page.sh. */"
printf '%s' "${page%%@PROFILE@*}" | as_bytes page_head
page=${page#*@PROFILE@}
printf '%s' "${page%%@CODE@*}" | as_bytes page_middle
printf '%s\n' "${page#*@CODE@}" | as_bytes page_tail
