#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: caretaker.sh [--long] DIR
# Checks the model of a loop that is borrowed, caretaker.pml, with spin, in DIR; then
# that each broken rule is found out.
set -uo pipefail
script=$(realpath "${BASH_SOURCE[0]}")
# shellcheck disable=SC2034 # for lib.sh
model=${script%.sh}.pml
long=no
[ "${1:-}" != --long ] || { long=yes && shift; }
[ $# = 1 ] || {
	echo "usage: caretaker.sh [--long] DIR" >&2
	exit 2
}
command -v spin >/dev/null || {
	echo "spin is not installed"
	exit 77
}
mkdir -p "$1" && cd "$1" || exit
. "${script%/*}/lib.sh"

holds "all is seen to, by one thread at a time"
holds "the same, stopped at any time" -DEARLY
found_out BREAK_LOOK
found_out BREAK_TIMER
found_out BREAK_STOP -DEARLY
found_out BREAK_AGAIN
found_out BREAK_HUSH
found_out BREAK_LATE
found_out BREAK_HEARD
found_out BREAK_LOCK
[ $long = no ] || holds "the same, with more posts" -DPOSTS=4
none_forgotten "$script"
[ $bad = 0 ]
