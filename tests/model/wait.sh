#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: wait.sh [--long] DIR
# Checks the model of threads that poll and sleep, wait.pml, with spin, in DIR; then
# that each broken rule is found out.
set -uo pipefail
script=$(realpath "${BASH_SOURCE[0]}")
# shellcheck disable=SC2034 # for lib.sh
model=${script%.sh}.pml
long=no
[ "${1:-}" != --long ] || { long=yes && shift; }
[ $# = 1 ] || {
	echo "usage: wait.sh [--long] DIR" >&2
	exit 2
}
command -v spin >/dev/null || {
	echo "spin is not installed"
	exit 77
}
mkdir -p "$1" && cd "$1" || exit
. "${script%/*}/lib.sh"

holds "nobody sleeps for ever, and nobody is woken in vain"
holds "nobody polls for ever" -DENDLESS
found_out BREAK_COUNT -DENDLESS
found_out BREAK_CHANGED
found_out BREAK_SEEN -DENDLESS
found_out BREAK_LATE -DENDLESS
found_out BREAK_TAKEN -DENDLESS
found_out BREAK_EARLY -DENDLESS
found_out BREAK_LOCK
[ $long = no ] || holds "the same, with more changes" -DCHANGES=5
none_forgotten "$script"
[ $bad = 0 ]
