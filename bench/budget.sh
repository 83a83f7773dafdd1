#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: bench/budget.sh PROGRAM [BUDGET]
# Counts the instructions of a call of 64 bytes, both sides together, by the folder
# of the code; those that the LND over RDMA has in it, in place of the one over TCP;
# those of a call on nodes with one CPT and with two; those of messages of a stream,
# beside such calls; and those of the choice of a path (by "core", beside PROGRAM). Of
# both LNDs only what is above the transport counts: not what the kernel does for sockets; and neither what
# simulated devices do in place of hardware (lnd/o2iblnd/simqp/), nor what passes work
# requests on to rdma-core, which does not run here. The program has a clock of its
# own, so that timers hardly count. Prints all this, in the form of a budget. With
# BUDGET, a file in that form, fails if a folder needs over 2 % more. Of libc and libev,
# whose code depends on the processor, 10 % are tolerated, and of folders with less than
# 50 instructions all up to 5 more.
set -euo pipefail
program=$1 budget=${2:-}
calls=6400
dir=$(mktemp -d "${TMPDIR:-/tmp}/ulnet-budget.XXXXXX")
trap 'rm -rf "$dir"' EXIT

counted() { # DEPTH [verbs]
	local depth=$1

	valgrind --tool=callgrind --callgrind-out-file="$dir/out" \
		--collect-atstart=no --toggle-collect=measured \
		"$program" "$depth" $calls "${@:2}" >"$dir/log" 2>&1 || {
		cat "$dir/log" >&2
		return 1
	}
	callgrind_annotate --threshold=100 --show-percs=no "$dir/out" |
		awk -v depth="$depth" -v calls=$calls '
		/^ *[0-9,]+ +[^ ]+:[^ ]/ {
			gsub(",", "", $1)
			layer = "system"
			# Not what ends a longer name: a tree may be called ulnet.
			if (match($2, /(^|[^a-z])(bench|secure|rpc|rpc\/[a-z]+(\/[a-z]+)?|lnet\/[a-z]+|include\/ulnet|base|lnd\/[a-z0-9]+lnd)\/[a-z_0-9]+\.[ch]:/))
				layer = substr($2, RSTART, RLENGTH)
			sub("^[^a-z]", "", layer)
			sub("/[^/]*:$", "", layer)
			sum[layer] += $1
			all += $1
		}
		END {
			for (l in sum)
				printf "%s %s %.0f\n", depth, l, sum[l] / calls
			printf "%s all %.0f\n", depth, all / calls
		}' | LC_ALL=C sort -k2
}

# A call over RDMA with DEPTH under way, without the bench, the simulator and libc. Nodes
# have CPTS CPTs; "away": the server's part is done by another CPT than the one to which
# the messages come, but no thread is woken up.
on_cpts() { # DEPTH CPTS [away]
	local depth=$1 n=$((calls / 2))

	valgrind --tool=callgrind --callgrind-out-file="$dir/out" \
		--collect-atstart=no --toggle-collect=measured \
		"$program" "$depth" $n verbs "${@:2}" >"$dir/log" 2>&1 || {
		cat "$dir/log" >&2
		return 1
	}
	callgrind_annotate --threshold=100 --show-percs=no "$dir/out" |
		awk -v what="cpts-$depth $2${3:+-$3}" -v calls=$n '
		/^ *[0-9,]+ +[^ ]+:[^ ]/ {
			gsub(",", "", $1)
			if ($2 ~ /(^|[^a-z])(rpc|lnet|base|lnd|include\/ulnet)\/[a-z_0-9\/]*\.[ch]:/ &&
			    $2 !~ /simqp\/|env_sim\.c:/)
				all += $1
		}
		END { printf "%s %.0f\n", what, all / calls }'
}

# All instructions of 64 bytes there and back, with 256 under way: by a call, or by two
# messages of a stream.
there_and_back() { # NAME [stream]
	local name=$1

	valgrind --tool=callgrind --callgrind-out-file=/dev/null \
		--collect-atstart=no --toggle-collect=measured \
		"$program" 256 $calls "${@:2}" 2>&1 |
		awk -v name="$name" -v calls=$calls '
		/Collected :/ {
			printf "back-256 %s %.0f\n", name, $NF / calls
			seen = 1
		}
		END { exit !seen }'
}

# The choice of a path among as many NIs on both sides.
chosen() { # RAILS
	local rails=$1 n=10000

	valgrind --tool=callgrind --callgrind-out-file=/dev/null \
		--toggle-collect=select_turn "$(dirname "$program")/core" \
		select $n "$rails" 2>&1 |
		awk -v rails="$rails" -v n=$n '
		/Collected :/ {
			printf "path %dx%d %.0f\n", rails, rails, $NF / n
			seen = 1
		}
		END { exit !seen }'
}

echo "# gcc $(gcc -dumpversion)"
echo "# depth layer instructions"
{
	counted 64
	counted 1
	counted 64 verbs | grep lnd/o2iblnd
	counted 1 verbs | grep lnd/o2iblnd
	for depth in 64 1; do
		on_cpts $depth 1
		on_cpts $depth 2
		on_cpts $depth 2 away
	done
	there_and_back call
	there_and_back stream stream
	chosen 1
	chosen 2
	chosen 16
} | tee "$dir/now"
[ -n "$budget" ] || exit 0

# Another compiler makes other code.
grep -qxF "# gcc $(gcc -dumpversion)" "$budget" || {
	echo "not compared: $budget is for $(sed -n '1s/^# //p' "$budget")"
	exit 77
}
awk '
	function name() {
		return ($1 ~ /^[a-z]/ ? $1 : "depth " $1) ", " $2
	}
	/^#/ { next }
	NR == FNR { budget[$1 " " $2] = $3; next }
	!(($1 " " $2) in budget) {
		print name() ": not in the budget"
		bad = 1
		next
	}
	{
		may = budget[$1 " " $2]
		may += may < 50 ? 5 : may * ($2 == "system" ? 0.10 : 0.02)
		if ($3 > may) {
			print name() ": " $3 " instructions, " \
				"budget " budget[$1 " " $2]
			bad = 1
		}
		seen++
	}
	$1 ~ /^cpts/ && $2 == 1 { one = $3 }
	# With several CPTs at most a tenth more; for a client elsewhere, if it has many
	# calls under way.
	$1 ~ /^cpts/ && $1 " " $2 != "cpts-1 2-away" && $3 > 1.1 * one {
		print name() ": " $3 " instructions, with one CPT " one
		bad = 1
	}
	$1 == "back-256" && $2 == "call" { call = $3 }
	# 0.8 of the rate
	$1 == "back-256" && $3 > call / 0.8 {
		print name() ": " $3 " instructions, of a call " call
		bad = 1
	}
	END { exit bad || !seen }' "$budget" "$dir/now"
