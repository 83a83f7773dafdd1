#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: exactly_once.sh [--long] DIR
# Checks the model of calls that run at most once, exactly_once.pml, with spin,
# in DIR; then that what it checks can fail: each broken rule, and each claim
# that something never happens which does, must be found out. Without --long:
# one slot and two calls, in seconds, and some of the rules.
set -uo pipefail
script=$(realpath "${BASH_SOURCE[0]}")
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
bad=0

# explore -D...: looks at all states, up to the first that is wrong. Prints what
# was found; 0 all is well, 1 there is one, 2 it could not be done.
explore() {
	spin -a "$@" "$model" >said 2>&1 &&
		gcc -O1 -w -DSAFETY -DCOLLAPSE -DVECTORSZ=4096 -o pan pan.c \
			>>said 2>&1 &&
		timeout 3600 nice ./pan -m200000 >said 2>&1
	grep -E '^pan:1:' said && return 1
	! grep -E '^error:|Search not completed' said &&
		grep -q 'errors: 0$' said || return 2
	sed -nE 's/ *([0-9]+) states, stored.*/\1 states/p' said
}

# holds WHAT -D...
holds() {
	local what=$1 found

	shift
	if found=$(explore "$@"); then
		echo "holds, $found: $what"
		return
	fi
	echo "FAILED: $what: $found"
	tail -n 20 said
	bad=$((bad + 1))
}

# found_out RULE -D...: the model with that rule broken.
found_out() {
	local rule=$1 found

	shift
	found=$(explore "-D$rule" "$@")
	if [ $? = 1 ]; then
		echo "found out: $rule: $found"
		return
	fi
	echo "FAILED: nobody notices $rule: $found"
	bad=$((bad + 1))
}

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
# None is forgotten here.
for rule in $(grep -oE '\b(BREAK|SEE)_[A-Z_]*[A-Z]\b' "$model" | sort -u); do
	grep -qw "$rule" "$script" || {
		echo "FAILED: $rule is not tried"
		bad=$((bad + 1))
	}
done
[ $bad = 0 ]
