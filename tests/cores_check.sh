#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The table of ARCHITECTURE.md, "How far CPTs go", is what bench/cores.sh makes of the
# budget of instructions; a tenth more or less is tolerated, so that not each change of
# the budget changes the table.
set -euo pipefail
top=$(cd "${srcdir:-.}" && pwd)
dir=$(mktemp -d "${TMPDIR:-/tmp}/ulnet-cores.XXXXXX")
trap 'rm -rf "$dir"' EXIT

"$top/bench/cores.sh" "$top/bench/budget.txt" >"$dir/now"
awk '/^## / { here = ($0 == "## How far CPTs go") }
	here && /^\|/' "$top/ARCHITECTURE.md" >"$dir/told"
awk -F'|' '
	NR == FNR { now[FNR] = $0; n = FNR; next }
	{
		seen++
		split(now[FNR], field, "|")
		for (i = 1; i <= NF; i++) {
			if ($i == field[i])
				continue
			if ($i + 0 > 0 && field[i] + 0 <= 1.1 * $i &&
			    field[i] + 0 >= 0.9 * $i)
				continue
			print "ARCHITECTURE.md: " $0
			print "bench/cores.sh:  " now[FNR]
			bad = 1
			break
		}
	}
	END {
		if (seen != n)
			print "ARCHITECTURE.md has " seen + 0 \
				" rows, bench/cores.sh makes " n
		exit bad || seen != n
	}' "$dir/now" "$dir/told"
