#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: scripts/numbers.sh [TREE [LOG]]
# How large the house is, and what it costs to look after it: rows of a table, as in
# CONTRIBUTING.md. TREE, a git checkout, may be of another revision (default: this
# one). Builds it in a folder of its own, without ccache, and says what processor time
# that takes. LOG: what its ./check printed.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tree=$(cd "${1:-$here}" && pwd) log=${2:-}
dir=$(mktemp -d "${TMPDIR:-/tmp}/ulnet-numbers.XXXXXX")
trap 'rm -rf "$dir"' EXIT

row() {
	printf '| %s | %s |\n' "$1" "$2"
}

files() { # FOLDER...: of C, in git
	git -C "$tree" ls-files -- "$@" | grep '\.[ch]$'
}

lines() { # FOLDER...
	(cd "$tree" && files "$@" | xargs cat) | wc -l
}

product=(base config include lnd lnet names rpc secure services sim tools)
git clone -q "$tree" "$dir/tree" # as it is committed
(cd "$dir/tree" && autoreconf -fi && mkdir build && cd build &&
	../configure CC=gcc) >"$dir/configure.log" 2>&1
{
	TIMEFORMAT='%U %S'
	time make -C "$dir/tree/build" -j"$(nproc)" all >"$dir/make.log" 2>&1
} 2>"$dir/time"
# Today's rules count, also for a tree that had none.
cp "$here/scripts/layers.rules" "$dir/tree/scripts"
"$here/scripts/layering_symbols.sh" "$dir/tree" "$dir/tree/build" \
	>"$dir/symbols" || true

# The length of the longest circle of files in a room, or of rooms.
circle() { # files|rooms
	sed -nE "s/^circle of ([0-9]+) $1.*/\1/p" "$dir/symbols" | sort -n |
		tail -n 1 | grep . || echo none
}

# The laboratory is for tests only, since it has a library of its own.
all=$(lines "${product[@]}") laboratory=0
! grep -q libulnetlab "$tree/Makefile.am" ||
	laboratory=$(lines sim lnd/simlnd lnd/o2iblnd/simqp 'base/env_sim*')
row "lines of C, product and laboratory" "$all"
row "lines of C in libraries and programs that users load" $((all - laboratory))
row "lines of C, tests and benchmarks" "$(lines tests bench examples)"
row "files of C, product and laboratory" "$(files "${product[@]}" | wc -l)"
row "rooms: folders of the product with C in them" \
	"$(files "${product[@]}" | sed 's,/[^/]*$,,' | sort -u | wc -l)"
row "public functions" "$("$here/scripts/public_functions.sh" \
	"$tree"/include/ulnet/*.h | grep -c '^extern ')"
row "programs of unit tests" \
	"$(grep -cE '^(unit|load)_tests \+?= %D' "$tree/tests/module.mk")"
row "uses by symbols that point up" \
	"$(grep -c ' may not use ' "$dir/symbols" || true)"
row "longest circle of rooms, by symbols" "$(circle rooms)"
row "longest circle of files in a room, by symbols" "$(circle files)"
row "processor time of a build (make all), s" \
	"$(awk '{ printf "%.0f", $1 + $2 }' "$dir/time")"
[ -z "$log" ] || row "./check, s of wall time; of processor time" \
	"$(sed -nE 's/^---- all: ([0-9]+) s, processor ([0-9]+) s.*/\1; \2/p' "$log")"
