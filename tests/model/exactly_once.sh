#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: exactly_once.sh [--long] DIR
# Checks the model of calls that run at most once, exactly_once.pml, with spin,
# in DIR; then that what it checks can fail: each broken rule, and each claim
# that something never happens which does, must be found out. Without --long:
# one slot and two calls, in seconds, and some of the rules.
set -uo pipefail
script=$(realpath "${BASH_SOURCE[0]}")
# shellcheck disable=SC2034 # for lib.sh
model=${script%.sh}.pml
long=no
[ "${1:-}" != --long ] || { long=yes && shift; }
[ $# = 1 ] || {
	echo "usage: exactly_once.sh [--long] DIR" >&2
	exit 2
}
command -v spin >/dev/null || {
	echo "spin is not installed"
	exit 77
}
mkdir -p "$1" && cd "$1" || exit
. "${script%/*}/lib.sh"

small="-DCALLS=2 -DSLOTS=1 -DATTEMPTS=3"
fair="-DFAIR -DCALLS=2 -DSLOTS=1 -DATTEMPTS=6"
fair_two="-DFAIR -DCALLS=3 -DSLOTS=2 -DATTEMPTS=6"
two="-DCALLS=2 -DSLOTS=2 -DATTEMPTS=3"

holds "at most once, and the caller is told the truth" $small
holds "the same, and a restart of a durable service" \
	-DCALLS=2 -DSLOTS=1 -DATTEMPTS=2 -DRESTARTS=1 -DDURABLE
holds "every call ends answered" $fair
found_out BREAK_NOTE $small
found_out BREAK_SILENT $fair
if [ $long = yes ]; then
	holds "the same, with two slots" $two
	holds "the same, and connections made again" $small -DRECONNECTS=1
	holds "the same, and a restart of the server" $small -DRESTARTS=1
	holds "the same, durable" $small -DRESTARTS=1 -DDURABLE
	holds "every call ends answered, with two slots" $fair_two
	for rule in BREAK_KEEP BREAK_TRUST SEE_EXECUTED SEE_NOT_EXECUTED \
		SEE_UNKNOWN; do
		found_out $rule $small
	done
	found_out BREAK_LATE $two
	for rule in BREAK_REPEAT BREAK_STALE; do
		found_out $rule $small -DRECONNECTS=1
	done
	for rule in BREAK_RESTART BREAK_STRANGER; do
		found_out $rule $small -DRESTARTS=1
	done
	for rule in BREAK_RESENT BREAK_RELEASE BREAK_COMMIT BREAK_BELIEVE \
		SEE_REPLAY; do
		found_out $rule $small -DRESTARTS=1 -DDURABLE
	done
	found_out BREAK_ADDRESS $fair
	found_out BREAK_ACKED $fair_two
fi
none_forgotten "$script"
[ $bad = 0 ]
