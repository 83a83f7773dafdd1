# SPDX-License-Identifier: BSD-3-Clause
# bench/run's part about many clients of one server: bench/growth.c. For sourcing; uses
# row(), $BUILD and $bin.

growth_clients='1 10 100 1000 5000'
growth_seconds=5 # under load, and idle
growth_outage=5  # seconds

# Each line: what growth prints | the column of the table | its unit
growth_columns() {
	cat <<-'END'
	rate|calls/s|1/s
	server-ns|server, ns/call|ns
	client-ns|client, ns/call|ns
	server-bytes|server, bytes/client|bytes
	client-bytes|client, bytes/client|bytes
	idle|server idle, % of a core|%
	storm-median|first call, median, ms|ms
	storm-last|first call, last, ms|ms
	recovery-median|recovery, median, ms|ms
	recovery-last|recovery, last, ms|ms
	END
}

growth_measure() {
	local n key column unit values line head

	head="| clients"
	while IFS='|' read -r key column unit; do
		head+=" | $column"
	done < <(growth_columns)
	{
		echo "$head |"
		sed 's/[^|]\+/ --- /g' <<<"$head |"
	} >"$BUILD/bench-growth.md"
	for n in $growth_clients; do
		values=$("$bin/growth" "$n" $growth_seconds $growth_outage) || {
			echo "bench: left out: $n clients"
			continue
		}
		line="| $n"
		while IFS='|' read -r key column unit; do
			v=$(sed -n "s/^$key //p" <<<"$values")
			row "$n clients: $column" "$unit" "" "$v" "$v" "$v"
			line+=" | $v"
		done < <(growth_columns)
		echo "$line |" >>"$BUILD/bench-growth.md"
	done
	echo "bench: $BUILD/bench-growth.md"
}
