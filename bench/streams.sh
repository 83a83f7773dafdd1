# SPDX-License-Identifier: BSD-3-Clause
# bench/run's part about streams: messages of 64 bytes on one stream, which the service
# sends back, beside calls of that size and a stream of gRPC's; 256 are under way. For
# sourcing, after tcp.sh and rpc.sh; uses row(), $runs, and the programs in $bin. Each
# round measures all of them, one after the other.

streams_program() { # NAME MODE COMMAND
	local name=$1 mode=$2 key v

	undisturbed timeout 60 "$3" --size 64 --depth 256 --"$mode" \
		--time "$(awk "BEGIN { print $rpc_ms / 1000 }")"
	while read -r key v; do
		echo "$name, $mode, $key|$v"
	done <<<"$number"
}

streams_rows() { # MODE
	local mode=$1 name

	for name in calls stream "gRPC stream"; do
		! grep -q "^$name, $mode, rate|" "$values" || {
			tcp_row "$name, $mode, rate" 1/s ""
			tcp_row "$name, $mode, cpu" us ""
		}
	done
	tcp_row "stream, $mode, rate" x ">= 0.8" "calls, $mode, rate" "to calls"
	tcp_row "stream, $mode, cpu" x "" "calls, $mode, cpu" "to calls"
	! grep -q "^gRPC stream, $mode, rate|" "$values" || {
		tcp_row "stream, $mode, rate" x "> 1" "gRPC stream, $mode, rate" \
			"to gRPC's"
		tcp_row "stream, $mode, cpu" x "< 1" "gRPC stream, $mode, cpu" \
			"to gRPC's"
	}
}

streams_measure() {
	local i mode grpc=$bin/peer_grpc_stream

	"$top/scripts/install_deps" bench ||
		echo "bench: goes on with the libraries that are there"
	if ! pkg-config --exists grpc++ ||
		! rpc_compile "$grpc" peer_grpc_stream.cc grpc++ \
			>"$grpc.log" 2>&1 </dev/null; then
		echo "bench: left out: gRPC, it is not installed, or was not built"
		grpc=
	fi
	values=$(mktemp "$BUILD/bench-streams.XXXXXX")
	: >"$values.disturbed"
	for ((i = 0; i < runs; i++)); do
		for mode in poll block; do
			streams_program calls $mode "$bin/rpc"
			streams_program stream $mode "$bin/stream"
			[ -z "$grpc" ] ||
				streams_program "gRPC stream" $mode "$grpc"
		done
	done >>"$values"
	echo "$(wc -l <"$values.disturbed") measurements were disturbed by other" \
		"processes"
	streams_rows poll
	streams_rows block
	rm "$values" "$values.disturbed"
}
