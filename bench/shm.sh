# SPDX-License-Identifier: BSD-3-Clause
# bench/run's part about requests and replies in shared memory: ours, UCX and libfabric
# between two processes of this host. The latter two stand for Mercury, whose na+sm is
# not packaged. For sourcing, after tcp.sh and rpc.sh; uses row(), $runs, and the
# programs in $bin. What is compared is measured within seconds, in each round.
#
# Bounds, where there is one: bench/raw_shm, with two processes that do nothing else.

# Each line: text | mode | size | depth | bulk: read, or nothing | what the programs'
# line of that name is compared by | its unit | arguments of raw_shm, if there is a bound
# | by what its number is multiplied
shm_points() {
	local depth

	cat <<-'END'
	shm 64 B, depth 1, poll|poll|64|1||median|us|poll 64|1
	shm 64 B, depth 1, block|block|64|1||median|us|epoll 64|1
	shm 64 B, depth 64, poll|poll|64|64||rate|1/s||
	shm 64 B, depth 64, block|block|64|64||rate|1/s||
	END
	for depth in 1 4; do
		cat <<-END
		shm read 1 MiB, depth $depth, poll|poll|1048576|$depth|read|rate|GB/s|copy 1048576|1.048576e-3
		shm read 1 MiB, depth $depth, block|block|1048576|$depth|read|rate|GB/s|copy 1048576|1.048576e-3
		END
	done
}

# Those that can be measured: with one processor for both processes, who spins waits for
# the system to stop it.
shm_possible() {
	if [ "$(nproc)" -gt 1 ]; then
		shm_points
	else
		shm_points | grep '|block|'
	fi
}

shm_round() {
	local text mode size depth bulk metric unit raw scale

	while IFS='|' read -r text mode size depth bulk metric unit raw scale; do
		if [ -n "$raw" ]; then
			# shellcheck disable=SC2086 # words on purpose
			undisturbed timeout 60 "$bin/raw_shm" $raw $rpc_ms
			awk -v n="$number" -v s="$scale" -v what="$text: raw" \
				'BEGIN { printf "%s|%.9g\n", what, n * s }'
		fi
		rpc_point "$text" "$mode" "$size" "$depth" "$bulk" "$metric" \
			"$unit" --shm
	done < <(shm_possible)
}

shm_rows() {
	local text mode size depth bulk metric unit raw scale p name

	while IFS='|' read -r text mode size depth bulk metric unit raw scale; do
		[ -z "$raw" ] || tcp_row "$text: raw" "$unit" ""
		for p in "${programs[@]}"; do
			name=${p%%|*}
			tcp_row "$text: $name" "$unit" ""
			[ -z "$raw" ] ||
				tcp_row "$text: $name" x "" "$text: raw"
			[ "$metric" != median ] ||
				tcp_row "$text: $name, p99" us ""
			tcp_row "$text: $name, cpu" us ""
			[ "$name" = ulnet ] || tcp_row "$text: ulnet" x "" \
				"$text: $name" "to $name"
		done
	done < <(shm_possible)
}

shm_measure() {
	local i programs

	rpc_prepare '^(UCX|libfabric)[|]'
	echo "bench: left out: Mercury, there is no package of it"
	[ "$(nproc)" -gt 1 ] ||
		echo "bench: left out: what polls, there is one processor for both"
	values=$(mktemp "$BUILD/bench-shm.XXXXXX")
	: >"$values.disturbed"
	for ((i = 0; i < runs; i++)); do
		shm_round >>"$values"
	done
	echo "$(wc -l <"$values.disturbed") measurements were disturbed by other" \
		"processes"
	shm_rows
	rm "$values" "$values.disturbed"
}
