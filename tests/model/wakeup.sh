#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: wakeup.sh [--long] DIR
# Checks the model of the wake-ups of shared memory, wakeup.pml, with spin, in
# DIR; then that each broken rule is found out.
set -uo pipefail
script=$(realpath "${BASH_SOURCE[0]}")
# shellcheck disable=SC2034 # for lib.sh
model=${script%.sh}.pml
long=no
[ "${1:-}" != --long ] || { long=yes && shift; }
[ $# = 1 ] || {
	echo "usage: wakeup.sh [--long] DIR" >&2
	exit 2
}
command -v spin >/dev/null || {
	echo "spin is not installed"
	exit 77
}
mkdir -p "$1" && cd "$1" || exit
. "${script%/*}/lib.sh"

holds "nobody sleeps for ever, and nobody is woken in vain"
holds "the same, with room for one frame" -DCAP=1
found_out BREAK_TAIL
found_out BREAK_HEAD
found_out BREAK_WANTS
found_out BREAK_LOOK
found_out BREAK_CLAIM
found_out BREAK_AWAKE
found_out BREAK_LACK
found_out BREAK_READ
found_out BREAK_LESS
[ $long = no ] || holds "the same, with more frames" -DFRAMES=9 -DCAP=4
none_forgotten "$script"
[ $bad = 0 ]
