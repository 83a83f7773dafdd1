# SPDX-License-Identifier: BSD-3-Clause
# bench/run's part about many nodes in one process, and in one simulation,
# bench/many.c, and about many peers of one, bench/known.c. For sourcing; uses row(),
# instructions(), $runs, $BUILD and $bin.

many_nodes='100 400 1600'
many_clients=50000
many_idle=10000

many_row() { # NAME UNIT VALUE
	row "$1" "$2" "" "$3" "$3" "$3"
}

many_herd() { # TEXT ARGUMENT...
	local text=$1 values key column unit

	shift
	values=$("$bin/many" calls $many_clients "$@")
	while IFS='|' read -r key column unit; do
		many_row "$many_clients clients, $text: $column" "$unit" \
			"$(sed -n "s/^$key //p" <<<"$values")"
	done <<-'END'
	answered|answered|calls
	refused|certainly not executed|calls
	unknown|unknown|calls
	last|the last one, of virtual time|ms
	bytes|memory of each|bytes
	END
}

# many_known N MEMORY-AIM CPU-AIM: peers of one node, which are gone
many_known() {
	local i values key column unit aim

	values=$(for ((i = 0; i < runs; i++)); do "$bin/known" "$1" 10; done)
	while IFS='|' read -r key column unit aim; do
		row "$1 known: $column" "$unit" "$aim" \
			$(sed -n "s/^$key //p" <<<"$values" | sort -n |
				awk '{ v[NR] = $1 }
				END { print v[int((NR + 1) / 2)], v[1], v[NR] }')
	done <<-END
	allocated|memory of each, malloc'ed|bytes|$2
	resident|memory of each, resident|bytes|$2
	cpu|processor time of a node with nothing to do|us/s|$3
	END
}

many_measure() {
	local n loops values key column unit

	for loops in shared own; do
		for n in $many_nodes; do
			values=$("$bin/many" "$loops" "$n" | sed -n 's/^bytes //p')
			many_row "$n nodes, loops: $loops, memory of each" bytes \
				"$values"
		done
	done
	for n in 2 100 1000; do
		values=$(instructions --toggle-collect=measured \
			"$bin/many" pair "$n")
		many_row "a call between two of $n nodes on a loop" \
			instructions $((values / 1000))
	done
	for n in 100 1000; do
		values=$(instructions --toggle-collect=lnet_sim_run_all \
			"$bin/many" pings "$n")
		many_row "a simulated message, $n nodes" instructions \
			$((values / 40000))
	done
	values=$("$bin/many" idle $many_idle)
	while IFS='|' read -r key column unit; do
		many_row "$many_idle idle clients: $column" "$unit" \
			"$(sed -n "s/^$key //p" <<<"$values")"
	done <<-'END'
	connected|events in 200 s, connected|events
	gone|events in an hour, afterwards|events
	cpu|processor time of that hour|us
	END
	many_known 1 "" ""
	many_known 100000 "at most 1024" "as with 1"
	many_herd "64 B"
	many_herd "4 KiB at 10 MB/s" 4096 10000000
}
