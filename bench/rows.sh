# SPDX-License-Identifier: BSD-3-Clause
# Rows of a table, from numbers: for sourcing by the parts of bench/run that are programs
# of their own.

# value NAME FILE: of rpcping's JSON
value() {
	sed "s/.*\"$1\": \([0-9.]*\).*/\1/" "$2"
}

# median: of the sorted numbers on standard input
median() {
	awk '{ v[NR] = $1 }
		END { print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'
}

# sum NAME UNIT AIM VALUE...: a row
sum() {
	local name=$1 unit=$2 aim=$3 sorted

	shift 3
	sorted=$(printf '%s\n' "$@" | sort -n)
	echo "$name|$unit|$aim|$(median <<<"$sorted")|$(
		head -n 1 <<<"$sorted")|$(tail -n 1 <<<"$sorted")"
}
