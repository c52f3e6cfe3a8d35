#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# git.sh DIR: packs the repository in DIR, shows and checks it.
set -eu

cd "$1"
git log -p --stat >/dev/null
git gc -q --aggressive --prune=now
git fsck --full >/dev/null 2>&1
git log -p --stat >/dev/null
