# SPDX-License-Identifier: BSD-3-Clause
# bench/run's part about what keys cost: calls and bulk with each flavour that the
# library offers, beside none, beside gRPC with and without mutual TLS, and beside what
# "openssl speed" says of the cipher. For sourcing, after tcp.sh and rpc.sh.
#
# As there, each round measures all of a point within seconds, and ratios are taken
# within a round. A rate is the requests under way to the median time of one: on a
# machine that others use, too, this is what there is while nobody disturbs. Processor
# time is that of both processes, which wait; of it, less than for none is more than 1.

# text | size | depth | bulk, or nothing | unit, us being the time of one request, and
# "us of processor" what it takes | the aim of the ratio to none
flavours_points() {
	cat <<-'END'
	64 B, depth 1|64|1||us|
	64 B, depth 16|64|16||1/s|
	64 B, depth 64|64|64||1/s|>= 0.75
	64 B, depth 256|64|256||1/s|
	64 B, depth 64, waiting|64|64||us of processor|
	1 MiB read, depth 4, waiting|1048576|4|read|us of processor|
	1 MiB written, depth 4, waiting|1048576|4|write|us of processor|
	1 MiB read, depth 4|1048576|4|read|GB/s|
	1 MiB written, depth 4|1048576|4|write|GB/s|
	END
}

# Sets programs: lines of name | command.
flavours_prepare() {
	local flavour out

	programs=()
	dir=$(mktemp -d "$BUILD/bench-keys.XXXXXX")
	{
		"$tools/ulnet-keys" --dir "$dir" authority bench
		"$tools/ulnet-keys" --dir "$dir" node a
	} >/dev/null
	for flavour in $("$bin/rpc" --flavours); do
		if "$bin/rpc" --keys "$dir" --flavour "$flavour" --time 0.01 \
			>"$dir/said" 2>&1; then
			programs+=("$flavour|$bin/rpc --keys $dir --flavour $flavour")
		else
			echo "bench: left out: $flavour: $(tail -n 1 "$dir/said")"
		fi
	done
	"$top/scripts/install_deps" bench ||
		echo "bench: goes on with the libraries that are there"
	out=$bin/peer_grpc
	if pkg-config --exists grpc++ && rpc_compile "$out" peer_grpc.cc grpc++ \
		>"$out.log" 2>&1 </dev/null; then
		programs+=("gRPC|$out" "gRPC, mutual TLS|$out --keys $dir")
	else
		echo "bench: left out: gRPC"
	fi
}

# bytes/s of the cipher that both sides take where the processor has AES
flavours_cipher() { # BYTES
	taskset -c $(($(nproc) - 1)) openssl speed -mr -seconds 1 -bytes "$1" \
		-evp aes-128-gcm 2>/dev/null | sed -n 's/^+F:.*://p'
}

flavours_point() { # TEXT SIZE DEPTH BULK UNIT
	local text=$1 size=$2 depth=$3 bulk=$4 unit=$5 p name command number
	local median cpu none=0 mode=poll

	[ "$unit" != "us of processor" ] || mode=block

	for p in "${programs[@]}"; do
		IFS='|' read -r name command <<<"$p"
		[ -z "$bulk" ] || [[ $name != gRPC* ]] || continue
		# shellcheck disable=SC2086 # words on purpose
		undisturbed timeout 60 $command --size "$size" --depth "$depth" \
			--$mode --time 0.3 ${bulk:+--bulk "$bulk"}
		median=$(sed -n 's/^median //p' <<<"$number")
		cpu=$(sed -n 's/^cpu //p' <<<"$number")
		[ "$name" != none ] || none=$median
		awk -v text="$text: $name" -v us="$median" -v none="$none" \
			-v cpu="$cpu" -v unit="$unit" -v depth="$depth" -v size="$size" '
			BEGIN {
				n = depth * 1e6 / us
				if (unit == "us")
					n = us
				if (unit == "us of processor")
					n = cpu
				printf "%s|%.9g\n", text,
					unit == "GB/s" ? n * size / 1e9 : n
				printf "%s, more for each message|%.9g\n", text,
					(us - none) / 2
			}'
	done
}

flavours_round() {
	local text size depth bulk unit rest

	while IFS='|' read -r text size depth bulk unit rest; do
		flavours_point "$text" "$size" "$depth" "$bulk" "$unit"
	done < <(flavours_points)
	awk -v rate="$(flavours_cipher 64)" 'BEGIN { printf \
		"openssl speed: what seals a call of 64 B, and opens it|%.9g\n",
		4 * 64e6 / rate }'
	awk -v rate="$(flavours_cipher 1048576)" 'BEGIN { printf \
		"openssl speed: 1 MiB|%.9g\n", rate / 1e9 }'
}

flavours_rows() {
	local text size depth bulk unit aim p name none

	while IFS='|' read -r text size depth bulk unit aim; do
		for p in "${programs[@]}"; do
			name=${p%%|*}
			grep -q "^$text: $name|" "$values" || continue
			tcp_row "$text: $name" "$unit" ""
			[ "$name" != none ] && [[ $name != gRPC* ]] || continue
			if [ "$unit" = us ]; then
				tcp_row "$text: $name, more for each message" us "<= 1"
			elif [ "$unit" = "us of processor" ]; then
				tcp_row "$text: none" x "" "$text: $name" "none to this, $name"
			else
				tcp_row "$text: $name" x "$aim" "$text: none" "to none"
			fi
		done
	done < <(flavours_points)
	tcp_row "openssl speed: what seals a call of 64 B, and opens it" us ""
	tcp_row "openssl speed: 1 MiB" GB/s ""
	text="1 MiB written, depth 4"
	! grep -q "^$text: privacy|" "$values" ||
		tcp_row "$text: privacy" x "" "openssl speed: 1 MiB" "to the cipher"
}

flavours_measure() {
	local i programs dir

	flavours_prepare
	values=$(mktemp "$BUILD/bench-flavours.XXXXXX")
	echo "flavours on loopback: server core 0, client core $(($(nproc) - 1))," \
		"$runs rounds; both spin"
	: >"$values.disturbed"
	for ((i = 0; i < runs; i++)); do
		flavours_round >>"$values"
	done
	echo "$(wc -l <"$values.disturbed") measurements were disturbed by other" \
		"processes"
	flavours_rows
	rm -r "$values" "$values.disturbed" "$dir"
}
